"""Asking the person at the terminal for consent to one call.

Only what is typed after the question counts, and only ``y`` or ``yes`` is a yes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import click

from toolsrv.background import in_thread
from toolsrv.cli.output import note
from toolsrv.consent import question

if TYPE_CHECKING:
    from toolsrv_runtime.calls.result import Consent


def can_ask() -> bool:
    """Whether there is a person to ask: a terminal to type at and one to read from."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


async def asked(wanted: Consent) -> bool:
    """Show a call and wait for the answer; cancelled, nobody waits for it any more."""
    return await in_thread(lambda: _answered(question(wanted)), name="toolsrv-consent")


def _answered(text: str) -> bool:
    note(text)
    _forget_typed()
    click.echo("Make this call? [y/N]: ", nl=False, err=True)
    # Not by sys.stdin: a thread that is left waiting there keeps the process from ending.
    said = os.read(sys.stdin.fileno(), 4096)
    if not said.endswith(b"\n"):
        click.echo(err=True)
    return said.strip().lower() in {b"y", b"yes"}


def _forget_typed() -> None:
    """Drop what was typed before there was a question."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    with contextlib.suppress(ImportError, OSError):
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)

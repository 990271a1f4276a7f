"""Asking the person at the terminal: for consent to one call, for one value.

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
from toolsrv.plain import plain

if TYPE_CHECKING:
    from toolsrv_runtime.calls.result import Consent
    from toolsrv_runtime.contract.questions import Question


def can_ask() -> bool:
    """Whether there is a person to ask: a terminal to type at and one to read from."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


async def asked(wanted: Consent) -> bool:
    """Show a call and wait for the answer; cancelled, nobody waits for it any more."""
    said = await in_thread(
        lambda: _typed(question(wanted), "Make this call? [y/N]: "), name="toolsrv-consent"
    )
    return said.lower() in {"y", "yes"}


async def asked_value(wanted: Question) -> str | None:
    """Show a question and wait for the value, None for an empty line; cancelled as ``asked``."""
    text = plain(f"{wanted.text} ({wanted.api_id})")
    said = await in_thread(
        lambda: _typed(text, "Value (an empty line for none): "), name="toolsrv-question"
    )
    return said or None


def _typed(text: str, prompt: str) -> str:
    """Return the line that is typed after a text and a prompt."""
    note(text)
    _forget_typed()
    click.echo(prompt, nl=False, err=True)
    # Not by sys.stdin: a thread that is left waiting there keeps the process from ending.
    said = os.read(sys.stdin.fileno(), 4096)
    if not said.endswith(b"\n"):
        click.echo(err=True)
    return said.decode("utf-8", "replace").strip()


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

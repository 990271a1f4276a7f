"""Terminal input: text from stdin, a person's consent to a call, a value.

Stdin is taken only where it is text. Only what is typed after a question counts, and only ``y`` or
``yes`` is a yes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from typing import TYPE_CHECKING

import click

from toolsrv.calls.consent import question
from toolsrv.cli.output import note
from toolsrv.plain import plain
from toolsrv.threads import in_thread
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.calls.result import Consent
    from toolsrv_runtime.contract.hints import Question

_ORDINARY = frozenset("\t\n\r\f\x1b")
_MOST = 4
"""One character in so many may be a control character; a file that is no text has more."""


def read_text() -> str:
    """Return all of standard input; closed is empty.

    Raises:
        UsageError: it is not UTF-8, or full of control characters.
    """
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 (byte {error.start})",
            hint="pipe text in; another encoding: iconv -t UTF-8",
        ) from error
    odd = sum(unicodedata.category(one) == "Cc" and one not in _ORDINARY for one in text)
    if odd * _MOST > len(text):
        raise UsageError("standard input is no text", hint="pipe text in, not a binary file")
    return text


def can_ask() -> bool:
    """Whether there is a person to ask: a terminal to type at and one to read from."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


async def ask_consent(wanted: Consent) -> bool:
    """Show a call and wait for the answer; cancelled, nobody waits for it any more."""
    said = await in_thread(
        lambda: _read_reply(question(wanted), "Make this call? [y/N]: "), name="toolsrv-consent"
    )
    return said.lower() in {"y", "yes"}


async def ask_value(wanted: Question) -> str | None:
    """Show a question and wait for the value, None for an empty line; cancelled as ``ask_consent``."""
    text = plain(f"{wanted.text} ({wanted.api_id})")
    said = await in_thread(
        lambda: _read_reply(text, "Value (an empty line for none): "), name="toolsrv-question"
    )
    return said or None


def _read_reply(text: str, prompt: str) -> str:
    """Return the line that is typed after a text and a prompt."""
    note(text)
    _discard_typeahead()
    click.echo(prompt, nl=False, err=True)
    # Not by sys.stdin: a thread that is left waiting there keeps the process from ending.
    said = os.read(sys.stdin.fileno(), 4096)
    if not said.endswith(b"\n"):
        click.echo(err=True)
    return said.decode("utf-8", "replace").strip()


def _discard_typeahead() -> None:
    """Drop what was typed before there was a question."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    with contextlib.suppress(ImportError, OSError):
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)

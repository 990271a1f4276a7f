"""Termination signals on every system, and their exit codes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def _present(*names: str) -> tuple[signal.Signals, ...]:
    """Return the signals of this system: SIGHUP is POSIX's, SIGBREAK (Ctrl-Break) Windows'."""
    return tuple(getattr(signal, one) for one in names if hasattr(signal, one))


ENDING_SIGNALS = _present("SIGTERM", "SIGHUP", "SIGBREAK")
SERVER_ENDING_SIGNALS = _present("SIGINT", "SIGTERM", "SIGBREAK")
"""What ends an MCP server in good order; a terminal that closes ends it at once."""


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt that knows the number of its signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal ended, as a shell tells it."""
    return 128 + number


def active_signals() -> list[signal.Signals]:
    """Return those of ``ENDING_SIGNALS`` that end a process now: nohup has SIGHUP ignored."""
    return [one for one in ENDING_SIGNALS if signal.getsignal(one) is signal.SIG_DFL]


def number_of(error: BaseException) -> int:
    """Return the signal behind an interrupt, also where click made an Abort of it."""
    for one in (error, error.__cause__):
        if isinstance(one, Interrupted):
            return one.number
    return signal.SIGINT


def call_on_signal(
    loop: asyncio.AbstractEventLoop, number: int, call: Callable[[int], object]
) -> None:
    """Have ``loop`` call ``call`` with the number of a signal that comes.

    Windows' event loops take no signal handlers, but wake up for those of the process.
    """
    try:
        loop.add_signal_handler(number, call, number)
    except NotImplementedError:
        signal.signal(number, lambda came, _frame: loop.call_soon_threadsafe(call, came))

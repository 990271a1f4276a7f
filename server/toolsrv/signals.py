"""The signals that end work as Ctrl-C does, and the exit code that tells which it was."""

from __future__ import annotations

import signal

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt that knows the number of its signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal ended, as a shell tells it."""
    return 128 + number


def heard() -> list[signal.Signals]:
    """Return those of ``ENDING`` that end a process now: nohup has SIGHUP ignored."""
    return [one for one in ENDING if signal.getsignal(one) is signal.SIG_DFL]


def number_of(error: BaseException) -> int:
    """Return the signal behind an interrupt, also where click made an Abort of it."""
    for one in (error, error.__cause__):
        if isinstance(one, Interrupted):
            return one.number
    return signal.SIGINT

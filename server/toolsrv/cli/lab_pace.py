"""How a training is shown while it runs: steps, loss, tokens a second, time left.

On a terminal a bar, elsewhere a line now and then. Knows no model.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from toolsrv.cli.output import console, note

if TYPE_CHECKING:
    from rich.progress import Progress

_NOTE_SECONDS = 20.0
_WINDOW_SECONDS = 120.0


class Pace(NamedTuple):
    """How fast a training is: tokens a second, and seconds until its end; None while unknown."""

    tokens_per_second: float | None
    seconds_left: float | None

    def told(self) -> str:
        """Return it in words, empty while unknown."""
        parts = []
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)


class PaceKeeper:
    """Reckons the pace from the last two minutes, so that a run that goes on is not misjudged."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, done: int, total: int, tokens: int) -> Pace:
        """Note that ``done`` of ``total`` steps and ``tokens`` are reached at ``now`` seconds."""
        self._seen.append((now, done, tokens))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW_SECONDS:
            self._seen.popleft()
        since, first, before = self._seen[0]
        passed = now - since
        if passed <= 0 or done <= first:
            return Pace(None, None)
        rate = (tokens - before) / passed if tokens > before else None
        return Pace(rate, (total - done) * passed / (done - first))


class TrainingBar:
    """Progress of a training on stderr; ``show`` is its callback."""

    def __init__(self) -> None:
        self._keeper = PaceKeeper()
        self._progress: Progress | None = None
        self._task: Any = None
        self._noted: float | None = None

    def __enter__(self) -> Self:
        screen = console(err=True)
        if screen.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            told = TextColumn("{task.fields[told]}")
            self._progress = Progress(
                TextColumn("training"), BarColumn(), MofNCompleteColumn(), told, console=screen
            )
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, done: int, total: int, loss: float, tokens: int) -> None:
        """Say how far it is: steps, loss, tokens seen."""
        now = time.monotonic()
        pace = self._keeper.add(now, done, total, tokens).told()
        told = f"loss {loss:.4f}" + (f", {pace}" if pace else "")
        if self._progress is not None:
            if self._task is None:
                self._task = self._progress.add_task("training", total=total, told=told)
            self._progress.update(self._task, completed=done, total=total, told=told)
        elif self._noted is None or now - self._noted > _NOTE_SECONDS or done == total:
            self._noted = now
            note(f"step {done} of {total}: {told}")


def duration(seconds: float) -> str:
    """Return a time in hours and minutes, or in seconds where it is short."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"

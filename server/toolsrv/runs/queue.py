"""Runs: one solve each, with a handle, its events, its end, and a place in the queue.

A few runs work at once, decoded together by one model; the others wait in line. Every state is
visible. Runs live in memory: finished ones are forgotten after a while (``on_end`` may keep them),
live ones are stopped when the server ends. Each has a journal from its start, which outlives a
process that is killed.
All methods belong to one event loop. Nothing here knows about MCP, terminals or models: the
solve itself is a callable.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol

from toolsrv_registry.errors import BusyError, NotFoundError, ToolsrvError
from toolsrv_runtime.outcome import Event, Outcome, Usage, is_followed
from toolsrv_runtime.stop import Stop

if TYPE_CHECKING:
    from toolsrv_runtime.solve import SolveOptions

RunStatus = Literal[
    "queued",
    "working",
    "answered",
    "replied",
    "partial",
    "needs_input",
    "gave_up",
    "cancelled",
    "failed",
    "interrupted",
]
SolveFunction = Callable[[str, "SolveOptions", Callable[[Event], None], Stop], Awaitable[Outcome]]
FaultReporter = Callable[[Exception], str]
EndCallback = Callable[["Run"], Awaitable[None]]
OpenJournal = Callable[["Run"], "Journal"]

PARALLEL = 4
MAX_LIVE = 32
MAX_KEPT = 64
MAX_EVENTS = 500
_UNKNOWN_S = 60.0
"""Seconds that a run takes, as long as none has ended."""
KEEP_S = 3600.0
STOP_S = 1.0
"""Seconds that a run gets to end by itself, with what it has, where the server ends."""
ON_END_S = 5.0
"""What is left of ``on_end`` then is given up: whoever ends a server does not wait for long."""


class Journal(Protocol):
    """Where a run is written while it lives; see ``runs.journal``. No method raises."""

    def add(self, event: Event) -> None:
        """Append an event."""

    def discard(self) -> None:
        """Remove what was written. Idempotent."""

    def leave(self) -> None:
        """Leave what was written, unless it is discarded, to be kept as an interrupted run."""


class NoJournal:
    """Journal of a run that is written nowhere."""

    def add(self, event: Event) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""


def new_run_id() -> str:
    """Return a handle that nobody can guess."""
    return f"run_{secrets.token_urlsafe(16)}"


class Run:
    """One solve, from its start to its end.

    ``events`` holds the latest ``MAX_EVENTS``; ``event_count`` counts all. ``outcome`` is there
    once the solve ended, ``error`` and ``hint`` when it failed, ``started`` and ``ended`` the times of
    it in UTC. ``version`` grows with every change. ``interrupted`` is an earlier run of the same task
    whose process ended first, "" without one.
    """

    def __init__(self, task: str, options: SolveOptions, run_id: str = "") -> None:
        self.id = run_id or new_run_id()
        self.task = task
        self.options = options
        self.stop = Stop()
        self.status: RunStatus = "queued"
        self.events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self.event_count = 0
        self.usage = Usage()
        self.outcome: Outcome | None = None
        self.error = ""
        self.hint = ""
        self.finished_at: float | None = None
        self.started = datetime.now(UTC)
        self.ended: datetime | None = None
        self.version = 0
        self.interrupted = ""
        self.journal: Journal = NoJournal()
        self._changed = asyncio.Event()

    @property
    def live(self) -> bool:
        """Whether the solve has not ended yet."""
        return self.finished_at is None

    async def changed(self, since: int, seconds: float) -> bool:
        """Wait for an event or change of status after ``since``; False when time ended first.

        ``since`` is the ``version`` that the caller looked at, so that nothing is missed between
        looking and waiting.
        """
        with contextlib.suppress(TimeoutError):
            if self.version == since:
                await asyncio.wait_for(self._changed.wait(), seconds)
            return True
        return False

    async def wait(self, seconds: float) -> bool:
        """Wait for the end of the solve; False when the time ended first."""
        end = time.monotonic() + seconds
        while self.live:
            left = end - time.monotonic()
            if left <= 0:
                return False
            await self.changed(self.version, left)
        return True

    def add_event(self, event: Event) -> None:
        """Take an event of the solve and wake everyone who waits; of a vote all are written."""
        self.journal.add(event)
        if not is_followed(event):
            return
        self.events.append(event)
        self.event_count += 1
        if event.kind == "budget":
            self.usage = event.usage
        self.touch()

    def touch(self) -> None:
        """Wake everyone who waits for a change."""
        self.version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Runs:
    """All runs of one server: starts them, lets ``parallel`` at a time work, forgets them."""

    def __init__(
        self,
        solve: SolveFunction,
        *,
        report: FaultReporter = str,
        on_end: EndCallback | None = None,
        journal: OpenJournal = lambda _: NoJournal(),
        parallel: int = PARALLEL,
        max_live: int = MAX_LIVE,
        keep_s: float = KEEP_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the solve, and ``report``: what to tell about an exception nobody expected.

        ``on_end`` is awaited for every run that began and has ended, by itself or cancelled, but
        not for what ``close`` has to break off: that has no outcome, and its journal stays. It
        discards the journal of a run that it has kept, and must not raise.
        """
        self._solve = solve
        self._journal = journal
        self._report = report
        self._on_end = on_end
        self._max_live = max_live
        self._keep_s = keep_s
        self._clock = clock
        self._runs: dict[str, Run] = {}
        self._tasks: dict[asyncio.Task[None], Run] = {}
        self._line: deque[Run] = deque()
        self._parallel = parallel
        self._places = asyncio.Semaphore(parallel)
        self._seconds: deque[float] = deque(maxlen=MAX_LIVE)

    def start(self, task: str, options: SolveOptions, run_id: str = "") -> Run:
        """Put a new run in line and return it at once; ``run_id`` is a new one where it is none.

        Raises:
            BusyError: Too many runs have not ended yet.
        """
        self._forget()
        live = sum(run.live for run in self._runs.values())
        if live >= self._max_live:
            raise BusyError(
                f"the server is busy: {live} runs have not ended yet, and no more are taken",
                hint=f"try again in about {self._next_end_s()} seconds, wait for one with get_run, "
                "or stop one with cancel_run",
            )
        run = Run(task, options, run_id)
        run.journal = self._journal(run)
        self._runs[run.id] = run
        self._line.append(run)
        worker = asyncio.create_task(self._whole(run), name=run.id)
        self._tasks[worker] = run
        worker.add_done_callback(self._tasks.pop)
        return run

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            NotFoundError: No such run: never started here, or forgotten since.
        """
        self._forget()
        if run := self._runs.get(run_id):
            return run
        raise NotFoundError(
            f"unknown run {run_id[:80]!r}",
            hint=f"use a run_id from solve_task; ended runs are kept {self._keep_s:.0f} s",
        )

    def all(self) -> tuple[Run, ...]:
        """Return the runs that are remembered, in the order of their start."""
        self._forget()
        return tuple(self._runs.values())

    def cancel(self, run_id: str) -> Run:
        """Ask a run to stop at the next token; an ended run stays as it is."""
        run = self.get(run_id)
        run.stop.set()
        if run in self._line:  # it has not begun: nothing to wait for
            self._line.remove(run)
            self._finish(run, "cancelled")
            run.journal.discard()
            for other in self._line:
                other.touch()
        return run

    def position(self, run: Run) -> int:
        """Return how many runs must end before this one begins; 0 when it works or has ended."""
        return self._line.index(run) + int(self._places.locked()) if run in self._line else 0

    def _next_end_s(self) -> int:
        """Return in how many seconds a run should end, by those that have ended."""
        known = statistics.median(self._seconds) if self._seconds else _UNKNOWN_S
        return math.ceil(min(max(known / self._parallel, 1.0), KEEP_S))

    async def close(self) -> None:
        """Stop every run, with what it has, and wait until the solves have let go of the model.

        A run that goes on for ``STOP_S`` seconds is broken off. For those that have ended
        ``on_end`` is waited for, up to ``ON_END_S`` seconds.
        """
        for run in [run for run in self._runs.values() if run.live]:
            self.cancel(run.id)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        live = [worker for worker, run in self._tasks.items() if run.live]
        for worker in live:
            worker.cancel()
        await asyncio.gather(*live, return_exceptions=True)
        if ended := list(self._tasks):
            _, late = await asyncio.wait(ended, timeout=ON_END_S)
            for worker in late:
                worker.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _whole(self, run: Run) -> None:
        try:
            await self._work(run)
            if self._on_end is not None and (run.outcome or run.error):
                await self._on_end(run)
            else:
                run.journal.discard()
        finally:
            run.journal.leave()

    async def _work(self, run: Run) -> None:
        try:
            async with self._places:
                if run not in self._line:
                    return
                self._line.remove(run)
                run.status = "working"
                for other in (run, *self._line):
                    other.touch()
                began = self._clock()
                run.outcome = await self._solve(run.task, run.options, run.add_event, run.stop)
                self._seconds.append(self._clock() - began)
            run.usage = run.outcome.usage
            self._finish(run, run.outcome.status)
        except ToolsrvError as error:
            run.error, run.hint = error.message, error.hint
            self._finish(run, "failed")
        except asyncio.CancelledError:
            self._finish(run, "cancelled")
            raise
        except Exception as error:  # noqa: BLE001 - the error handler of a run: reported and kept
            run.error = self._report(error)
            self._finish(run, "failed")

    def _finish(self, run: Run, status: RunStatus) -> None:
        run.status = status
        run.finished_at = self._clock()
        run.ended = datetime.now(UTC)
        run.touch()

    def _forget(self) -> None:
        ended = sorted(
            (run for run in self._runs.values() if not run.live),
            key=lambda run: run.finished_at or 0.0,
        )
        old = self._clock() - self._keep_s
        surplus = len(ended) - MAX_KEPT
        for index, run in enumerate(ended):
            if index < surplus or (run.finished_at or 0.0) <= old:
                del self._runs[run.id]

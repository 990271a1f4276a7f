"""Admission control: how many searches and calls work at once, and how long others wait in line.

More searches at once than cores only take the processor from each other, and from the event loop.
Most of a search is the matcher's reading of its hits; a search that had to wait, that many others
wait for, or that comes in a crowd while others use the matcher, leaves it out, so that a burst is
answered late by little instead of by minutes.

What would wait longer than ``MOST_WAIT_S`` is refused at once, and what has waited so long is refused
then: a client that is told when to come back does better than one whose request hangs.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from toolsrv.threads import start_in_thread
from toolsrv_registry.errors import BusyError
from toolsrv_registry.host_resources import usable_cores

T = TypeVar("T")
PATIENCE_S = 0.075
"""Seconds after which a search that waited for its place is in haste."""
LINE = 1
"""Searches that wait for each place; where more do, nobody takes their time."""
CROWD = 5
"""Searches a second for each place; where more come, the matcher is for those that find half of the
places free. With one core that is all of them.
"""
MOST_WAIT_S = 8.0
"""Seconds in line; a search has the rest of the 12 in which it is answered for its work."""
MOST_HINT_S = 30.0
"""Seconds after which whoever is refused is told to try again, at most."""
CALLS = 100
"""Calls at once: as many as there are connections."""
BUSY = (
    "ordered by the ranker alone, as the server is busy: search again for an order that the "
    "matcher has read"
)
_FIRST_S = 0.02
"""Seconds of one work, as long as nothing is known: a search in haste, with what is around it."""
_AROUND = 2.0
"""What a search takes on the whole, as a multiple of its thread's CPU time: the protocol costs the rest."""
_KNOWN = 31
"""Latest works whose median is the time that one takes; a few that load something do not count."""


class Admission:
    """The places for one kind of work of one server; all methods belong to its event loop."""

    def __init__(self, places: int | None = None, *, what: str = "searches") -> None:
        """Take how many work at once, by default as many as there are usable cores."""
        self._count = places or usable_cores()
        self._what = what
        self._free = asyncio.Semaphore(self._count)
        self._most = LINE * self._count
        self._waiting = 0
        self._working = 0
        self._arrivals: deque[float] = deque(maxlen=CROWD * self._count + 1)
        self._seconds = deque([_FIRST_S] * _KNOWN, maxlen=_KNOWN)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[str]:
        """Wait for a place and hold it; yield why the work is in haste, "" where it is not.

        Raises:
            BusyError: the wait is too long.
        """
        haste = await self._enter()
        began = time.monotonic()
        try:
            yield haste
        finally:
            self._leave(time.monotonic() - began)

    async def in_thread(self, work: Callable[[str], T]) -> T:
        """Do blocking work in a thread once there is a place; ``work`` is given why it is in haste.

        The place is held until the thread ends. Where the waiting task is cancelled, the thread runs
        on and its result is dropped: others must not take its core meanwhile.

        Raises:
            BusyError: the wait is too long.
        """
        haste = await self._enter()
        took: list[float] = []

        def timed() -> T:
            began = time.thread_time()  # not wall time, which a burst of requests makes long
            try:
                return work(haste)
            finally:
                took.append(_AROUND * (time.thread_time() - began))

        try:
            thread = start_in_thread(timed)
        except BaseException:
            self._leave()
            raise

        def ended(done: asyncio.Future[T]) -> None:
            if not done.cancelled():
                done.exception()  # seen, should nobody wait for it any more
            self._leave(*took)

        thread.add_done_callback(ended)
        return await asyncio.shield(thread)

    def _wait_s(self) -> float:
        """Return how many seconds the next one waits in line, as far as can be foreseen."""
        return self._waiting * statistics.median(self._seconds) / self._count

    async def _enter(self) -> str:
        if (foreseen := self._wait_s()) > MOST_WAIT_S:
            raise self._refusal(foreseen)
        began = time.monotonic()
        self._arrivals.append(began)
        self._waiting += 1
        try:
            async with asyncio.timeout(MOST_WAIT_S):
                await self._free.acquire()
        except TimeoutError:
            raise self._refusal(max(MOST_WAIT_S, self._wait_s())) from None
        finally:
            self._waiting -= 1
        late = time.monotonic() - began > PATIENCE_S
        crowded = self._is_crowded(began) and self._working >= max(1, self._count // 2)
        self._working += 1
        return BUSY if late or crowded or self._waiting > self._most else ""

    def _is_crowded(self, now: float) -> bool:
        """Whether more than ``CROWD`` for each place came within the last second."""
        full = len(self._arrivals) == self._arrivals.maxlen
        return full and now - self._arrivals[0] < 1.0

    def _leave(self, *took: float) -> None:
        self._working -= 1
        self._seconds.extend(took)
        self._free.release()

    def _refusal(self, wait_s: float) -> BusyError:
        return BusyError(
            f"the server is busy with other {self._what}",
            hint=f"try again in about {math.ceil(max(1.0, min(wait_s, MOST_HINT_S)))} seconds",
        )

"""Places for searches: as many work at once as there are cores, in haste where others wait.

More threads than cores only take the processor from each other, and from the event loop. Most of a
search is the matcher's reading of its hits; a search that had to wait, or that many others wait for,
leaves it out, so that a burst is answered late by little instead of by minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolsrv_registry.host_resources import usable_cores

PATIENCE_S = 0.075
"""Seconds after which a search that waited for its place is in haste."""
LINE = 1
"""Searches that wait for each place; where more do, nobody takes their time."""
BUSY = (
    "ordered by the ranker alone, as the server is busy: search again for an order that the "
    "matcher has read"
)


class SearchPlaces:
    """The places of one server; all methods belong to its event loop."""

    def __init__(self, places: int | None = None) -> None:
        """Take how many searches work at once; the usable cores by default."""
        count = places or usable_cores()
        self._places = asyncio.Semaphore(count)
        self._most = LINE * count
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[str]:
        """Wait for a place and hold it; yield why the search is in haste, "" where it is not."""
        began = time.monotonic()
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            late = time.monotonic() - began > PATIENCE_S
            yield BUSY if late or self._waiting > self._most else ""
        finally:
            self._places.release()

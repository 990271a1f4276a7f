"""Calls that a person was asked about and that outlived their request.

A client may cut a request off while its person still reads the question. So the request ends in
time, the question stays open, and one yes makes the call once; the same call repeated gets what
came of it. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from mcp.types import InputRequiredResult

from toolsrv_runtime.calls.result import CallResult

KEPT = 100
KEEP_S = 600.0
"""So long a question stays open, and what came of its call is kept for a repeat."""

Made = CallResult | InputRequiredResult


class LateCall:
    """One call on its way; ``asked`` is what it came to without a person's consent."""

    def __init__(self, make: Callable[[LateCall], Awaitable[Made]]) -> None:
        self.asked: CallResult | None = None
        self.until = 0.0
        self.task: asyncio.Future[Made] = asyncio.ensure_future(make(self))


class LateCalls:
    """Calls whose request has ended, by what was to be called, for whoever repeats the call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, LateCall] = OrderedDict()

    def take(self, key: str) -> LateCall | None:
        """Return a call that was kept, once; None where there is none."""
        self._drop_old()
        return self._kept.pop(key, None)

    def keep(self, key: str, call: LateCall) -> None:
        """Keep a call whose request has ended; it is withdrawn after ``KEEP_S`` seconds."""
        call.until = self._clock() + KEEP_S
        call.task.add_done_callback(_seen)
        if (other := self._kept.pop(key, None)) is not None:
            other.task.cancel()
        self._kept[key] = call
        asyncio.get_running_loop().call_later(KEEP_S, self._drop_old)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].task.cancel()

    def _drop_old(self) -> None:
        now = self._clock()
        for key in [key for key, call in self._kept.items() if call.until <= now]:
            self._kept.pop(key).task.cancel()


def _seen(task: asyncio.Future[Made]) -> None:
    """Take the exception of a call that nobody repeats; whoever does gets it raised."""
    if not task.cancelled():
        task.exception()

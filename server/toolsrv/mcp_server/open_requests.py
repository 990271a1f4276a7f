"""Requests of a client on stdio that have no answer yet, for whoever ends the session."""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable, Mapping
from typing import Any

NEVER_ANSWERED = frozenset({"subscriptions/listen"})
"""A stream that lasts as long as the session."""
LOOK_S = 0.2
"""Between two looks whether anybody still reads."""
UNSEEN_S = 30.0
"""So long answers are waited for where the system does not tell that nobody reads them."""


class OpenRequests:
    """The ids of requests without an answer; ``gone`` tells whether nobody reads answers any more."""

    def __init__(self, gone: Callable[[], bool | None]) -> None:
        self._gone = gone
        self._ids: set[int | str] = set()
        self._changed = asyncio.Event()

    def note(self, message: Mapping[str, Any]) -> None:
        """Take note of a message of the client: a request is open, one that it takes back is not."""
        method, known = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            params = message.get("params")
            self.close(params.get("requestId") if isinstance(params, dict) else None)
        elif isinstance(method, str) and known is not None and method not in NEVER_ANSWERED:
            self._ids.add(known)

    def close(self, known: object) -> None:
        """Take note that a request has its answer, or needs none."""
        if isinstance(known, int | str) and known in self._ids:
            self._ids.discard(known)
            self._changed.set()

    async def answered(self) -> None:
        """Wait until every request has its answer, or nobody reads it."""
        end = asyncio.get_running_loop().time() + UNSEEN_S
        while self._ids:
            gone = self._gone()
            if gone or (gone is None and asyncio.get_running_loop().time() > end):
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK_S)


def nobody_reads(out: int) -> bool | None:
    """Return whether the other end of a pipe is closed; None where the system does not tell."""
    if not hasattr(select, "poll"):
        return None
    look = select.poll()
    look.register(out, 0)  # errors are told without being asked for
    try:
        return bool(look.poll(0))
    except OSError:
        return None

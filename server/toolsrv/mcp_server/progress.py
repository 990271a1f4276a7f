"""Progress while a request waits: at least every ``HEARTBEAT_S`` seconds, numbers increasing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.server.mcpserver import Context

from toolsrv.runs import Run
from toolsrv_registry import wellformed

T = TypeVar("T")
HEARTBEAT_S = 4.0
ANSWER_S = 22.0
"""Seconds in which a call answers unless its caller wants to wait: clients cut it at 30."""


class Progress:
    """Progress of one request: its own count, silent when the client did not ask for it."""

    def __init__(self, context: Context[None, Any]) -> None:
        self._context = context
        self._count = 0

    async def tell(self, text: str) -> None:
        """Send the next notification."""
        self._count += 1
        await self._context.report_progress(float(self._count), None, wellformed.text(text))

    async def during(self, work: Awaitable[T], text: str, seconds: float) -> T:
        """Wait for ``work``, at most ``seconds``, with a heartbeat.

        Raises:
            TimeoutError: It takes longer, and is cancelled (a thread runs on).
        """
        task = asyncio.ensure_future(work)
        end = time.monotonic() + seconds
        try:
            while True:
                left = end - time.monotonic()
                done, _ = await asyncio.wait({task}, timeout=max(0.0, min(left, HEARTBEAT_S)))
                if done:
                    return task.result()
                if left <= 0:
                    raise TimeoutError
                await self.tell(text)
        finally:
            task.cancel()

    async def follow(self, run: Run, seconds: float, phase: Callable[[Run], str]) -> None:
        """Wait until the run ends or ``seconds`` are over; tell each new phase, and a heartbeat."""
        end = time.monotonic() + seconds
        told, told_at = "", 0.0
        while run.live and (left := end - time.monotonic()) > 0:
            seen, text = run.version, phase(run)
            beat = told_at + HEARTBEAT_S - time.monotonic()
            if text != told or beat <= 0:
                await self.tell(text)
                told, told_at = text, time.monotonic()
                beat = HEARTBEAT_S
            await run.changed(seen, min(left, beat))

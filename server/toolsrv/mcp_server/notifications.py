"""MCP notifications: progress of a request, and changes that clients subscribe to.

Progress is sent at least every ``HEARTBEAT_S`` seconds, with increasing numbers. Changes of runs
and tools are looked for only while somebody listens (``subscriptions/listen``, from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from toolsrv.mcp_server.tasks_extension import TASKS, declared, serving_task
from toolsrv.runs.queue import Run, Runs
from toolsrv.views.runs import RUN_URI
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

    async def report(self, text: str) -> None:
        """Send the next notification; a task has its message instead."""
        if (task := serving_task.get()) is not None:
            task.set_message(text)
            return
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
                await self.report(text)
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
                await self.report(text)
                told, told_at = text, time.monotonic()
                beat = HEARTBEAT_S
            await run.changed(seen, min(left, beat))


RUNS_S = 0.5
"""Between two looks at the runs: a run that works changes with every token."""
TOOLS_EVERY = 10
"""The catalogs are looked at every so many times."""


class SubscriptionBus(InMemorySubscriptionBus):
    """A bus that knows whether anybody listens."""

    def __init__(self) -> None:
        super().__init__()
        self._listening = 0
        self.heard = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register a listener; return what removes it."""
        remove = super().subscribe(listener)
        self._listening += 1
        self.heard.set()
        left = [remove]

        def unsubscribe() -> None:
            if left:
                left.pop()()
                self._listening -= 1
                if not self._listening:
                    self.heard.clear()

        return unsubscribe


async def publish_changes(
    bus: SubscriptionBus, runs: Runs, described: Callable[[], Awaitable[tuple[str, ...]]]
) -> None:
    """Publish what changes, for as long as the server runs.

    ``described`` returns how the tools are described now.
    """
    while True:
        await bus.heard.wait()
        seen = {run.id: run.version for run in runs.all()}
        words, looks = await described(), 0
        while bus.heard.is_set():
            await asyncio.sleep(RUNS_S)
            now = {run.id: run.version for run in runs.all()}
            if now.keys() != seen.keys():
                await bus.publish(ResourcesListChanged())
            for run_id in (one for one in now if now[one] != seen.get(one)):
                await bus.publish(ResourceUpdated(uri=RUN_URI.format(run_id=run_id)))
            seen, looks = now, looks + 1
            if looks % TOOLS_EVERY == 0 and (latest := await described()) != words:
                words = latest
                await bus.publish(ToolsListChanged())


class CapabilitiesMiddleware:
    """Middleware: promises a client what it gets.

    Prompts are the same for as long as the server runs. The tasks extension is promised to a
    client that declares it.
    """

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Handle a message."""
        result = await call_next(ctx)
        if ctx.method in {"server/discover", "initialize"} and isinstance(result, dict):
            able = result.get("capabilities", {})
            if ctx.method == "server/discover" and able.get("prompts"):
                able["prompts"]["listChanged"] = False
            if not declared(ctx):
                able.get("extensions", {}).pop(TASKS, None)
        return result

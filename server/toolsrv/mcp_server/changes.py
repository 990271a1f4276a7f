"""Changes that clients subscribe to: runs, the list of them, and what the tools say of the catalogs.

Published where ``subscriptions/listen`` is served, from 2026-07-28 on, and looked for only while
somebody listens. Earlier clients are not promised any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from toolsrv.run_views import RUN_URI
from toolsrv.runs import Runs

RUNS_S = 0.5
"""Between two looks at the runs: a run that works changes with every token."""
TOOLS_EVERY = 10
"""The catalogs are looked at every so many times."""


class Bus(InMemorySubscriptionBus):
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
    bus: Bus, runs: Runs, described: Callable[[], Awaitable[tuple[str, ...]]]
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


class HonestCapabilities:
    """Middleware: prompts are the same for as long as the server runs, and no change is promised."""

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Handle a message."""
        result = await call_next(ctx)
        if ctx.method == "server/discover" and isinstance(result, dict):
            prompts = result.get("capabilities", {}).get("prompts")
            if prompts:
                prompts["listChanged"] = False
        return result

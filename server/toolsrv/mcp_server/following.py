"""From a request to its run, and from the run to what the request is answered with.

Where the client's own model is used, the run's questions are put to the client meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult

from toolsrv.mcp_server import sampling, texts
from toolsrv.mcp_server.progress import Progress
from toolsrv.mcp_server.rim import failure, success
from toolsrv.plain import clean_task
from toolsrv.run_views import RunView, phase, run_view
from toolsrv.runs import Run, Runs

if TYPE_CHECKING:
    from toolsrv_runtime.options import SolveOptions

Ctx = Context[None, Any]


class Following:
    """Starts runs and follows them, for the client that asked."""

    def __init__(self, runs: Runs, clients: sampling.Sampling | None) -> None:
        """Take the runs, and the clients' models where those are used."""
        self._runs = runs
        self._clients = clients

    def begin(self, ctx: Ctx, task: str, options: SolveOptions) -> Run:
        """Start a run, or go on with the one that a repeated call belongs to."""
        if self._clients is not None:
            sampling.require(ctx)
            run_id, _ = sampling.resumed(ctx)
            if run_id:
                return self._runs.get(run_id)
        return self._runs.start(clean_task(task), options)

    async def follow(
        self, ctx: Ctx, run: Run, seconds: float
    ) -> CallToolResult | InputRequiredResult:
        """Return a run's end, how far it is after ``seconds``, or a question for the client."""
        if self._clients is None:
            await self.watch(ctx, run, seconds)
            return self.told(run)
        asked = await self._serve(ctx, run, seconds, self._clients)
        return self.told(run) if asked is None else asked

    async def _serve(
        self, ctx: Ctx, run: Run, seconds: float, clients: sampling.Sampling
    ) -> InputRequiredResult | None:
        """Watch a run and put its questions to the client; return one that goes by returning."""
        rounds = sampling.resumed(ctx)[1]
        question = clients.model(run.stop).question
        if question is not None and (response := sampling.response(ctx)) is not None:
            question.answer(response)
        end = time.monotonic() + seconds
        while run.live:
            watching = asyncio.ensure_future(self.watch(ctx, run, end - time.monotonic()))
            asking = asyncio.ensure_future(clients.asked(run.stop))
            try:
                await asyncio.wait({watching, asking}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                watching.cancel()
                asking.cancel()
            if not asking.done() or asking.cancelled():
                break
            if not sampling.by_returning(ctx):
                await Progress(ctx).during(sampling.put(ctx, asking.result()), "asking your model")
            elif rounds < sampling.MOST_ROUNDS:
                return sampling.returned(run.id, rounds, asking.result())
            else:
                break
        return None

    async def watch(self, ctx: Ctx, run: Run, seconds: float) -> None:
        """Wait for a run's end, at most ``seconds``, and tell the client what it does."""
        await Progress(ctx).follow(run, seconds, lambda one: phase(one, self._runs.position(one)))

    def told(self, run: Run) -> CallToolResult:
        """Return a run as it is now."""
        return ended(run_view(run, self._runs.position(run)))


def ended(view: RunView) -> CallToolResult:
    """Return a run as a result; one that failed is an error."""
    if view.status == "failed":
        return failure(view.reason, view.next_step, view)
    return success(texts.run_text(view), view)

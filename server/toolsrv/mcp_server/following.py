"""From a request to its run, and from the run to what the request is answered with.

What the run asks (a person's consent, the client's own model) is put to the client meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult

from toolsrv.mcp_server import questions, sampling, texts
from toolsrv.mcp_server.consent import can_ask
from toolsrv.mcp_server.progress import Progress
from toolsrv.mcp_server.rim import failure, success
from toolsrv.mcp_server.run_consent import RunConsents
from toolsrv.plain import clean_task
from toolsrv.run_views import RunView, phase, run_view
from toolsrv.runs import Run, Runs

if TYPE_CHECKING:
    from toolsrv_runtime.options import SolveOptions

Ctx = Context[None, Any]
POLL_S = 0.05


class Following:
    """Starts runs and follows them, for the client that asked."""

    def __init__(
        self, runs: Runs, consents: RunConsents, clients: sampling.Sampling | None
    ) -> None:
        """Take the runs, what they ask persons, and the clients' models where those are used."""
        self._runs = runs
        self._consents = consents
        self._clients = clients

    def begin(self, ctx: Ctx, task: str, options: SolveOptions) -> Run:
        """Start a run, or go on with the one that a repeated call belongs to."""
        if self._clients is not None:
            sampling.require(ctx)
        if run_id := questions.resumed(ctx).run_id:
            return self._runs.get(run_id)
        run = self._runs.start(clean_task(task), options)
        if can_ask(ctx):
            self._consents.open(run.stop, run.task)
        return run

    async def follow(
        self, ctx: Ctx, run: Run, seconds: float
    ) -> CallToolResult | InputRequiredResult:
        """Return a run's end, how far it is after ``seconds``, or a question for the client."""
        back = questions.resumed(ctx)
        rounds = back.rounds if back.run_id == run.id else 0
        questions.hand_in(ctx, self._question(ctx, run))
        end = time.monotonic() + seconds
        while run.live:
            question = await self._next(ctx, run, end - time.monotonic())
            if question is None:
                break
            if not questions.by_returning(ctx):
                await self._put(ctx, run, question)
            elif rounds < questions.MOST_ROUNDS:
                return questions.returned(run.id, rounds, question)
            else:
                break
        return self.told(run)

    def _question(self, ctx: Ctx, run: Run) -> questions.Question | None:
        """Return what a run waits for that this client can answer."""
        asked: questions.Question | None = None
        if self._clients is not None:
            asked = self._clients.model(run.stop).question
        if asked is None and can_ask(ctx):
            asked = self._consents.question(run.stop)
        return asked if asked is not None and asked.open and not asked.held else None

    async def _next(self, ctx: Ctx, run: Run, seconds: float) -> questions.Question | None:
        """Wait for a question; None where the run ends or ``seconds`` are over first."""
        watching = asyncio.ensure_future(self.watch(ctx, run, seconds))
        try:
            while not watching.done():
                if (question := self._question(ctx, run)) is not None:
                    return question
                # Set by the solve, in whichever thread or task it waits.
                await asyncio.wait({watching}, timeout=POLL_S)
            watching.result()
            return None
        finally:
            watching.cancel()

    async def _put(self, ctx: Ctx, run: Run, question: questions.Question) -> None:
        """Ask the client, for as long as the run waits for an answer."""
        question.held = True
        asking = asyncio.ensure_future(Progress(ctx).during(question.put(ctx), question.saying))
        try:
            while not asking.done() and run.live and question.open:
                await asyncio.wait({asking}, timeout=POLL_S)
            if asking.done():
                asking.result()
        finally:
            asking.cancel()
            question.held = False

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

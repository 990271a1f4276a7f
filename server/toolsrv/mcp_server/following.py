"""Follow a run on behalf of a request: start, wait, progress, result.

What the run asks (a person's consent, the client's own model) is put to the client meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult, ResourceLink

from toolsrv.mcp_server import elicitation, sampling
from toolsrv.mcp_server.call_resources import CallFiles, link
from toolsrv.mcp_server.elicitation import RunConsents, can_ask
from toolsrv.mcp_server.notifications import Progress
from toolsrv.mcp_server.results import failure, success
from toolsrv.mcp_server.tasks_extension import TaskState, serving_task
from toolsrv.plain import clean_task
from toolsrv.runs.queue import Run, Runs
from toolsrv.views.runs import RUN_URI, RunView, phase, run_view

if TYPE_CHECKING:
    from toolsrv_runtime.options import SolveOptions

Ctx = Context[None, Any]
POLL_S = 0.05
log = logging.getLogger(__name__)


class RunFollower:
    """Starts runs and follows them, for the client that asked.

    ``waits_on``: the client can ask no more, so that it is told of a run's end and not of its
    handle.
    """

    def __init__(
        self,
        runs: Runs,
        consents: RunConsents,
        clients: sampling.Sampling | None,
        files: CallFiles,
    ) -> None:
        """Take the runs, what they ask persons, and the clients' models where those are used.

        ``files`` are those that the calls of runs brought.
        """
        self._files = files
        self._runs = runs
        self._consents = consents
        self._clients = clients
        self._asking: set[asyncio.Future[None]] = set()
        self.waits_on = False

    def begin(self, ctx: Ctx, task: str, options: SolveOptions) -> Run:
        """Start a run, or go on with the one that a repeated call belongs to."""
        if self._clients is not None:
            sampling.require(ctx)
        serving = serving_task.get()
        if run_id := elicitation.resumption(ctx).run_id:
            return self._runs.get(run_id)
        run = self._runs.start(clean_task(task), options, serving.id if serving else "")
        if serving is not None:
            serving.stop = partial(self._runs.cancel, run.id)
        if can_ask(ctx):
            self._consents.open(run.stop, run.task)
        return run

    async def follow(
        self, ctx: Ctx, run: Run, seconds: float
    ) -> CallToolResult | InputRequiredResult:
        """Return a run's end, how far it is after ``seconds``, or a question for the client.

        A question that is open then stays with the client: its answer counts, whether or not a
        request follows the run by then. A task has its run's end in any case.
        """
        serving = serving_task.get()
        back = elicitation.resumption(ctx)
        rounds = back.rounds if back.run_id == run.id else 0
        elicitation.deliver_answer(ctx, self._question(ctx, run))
        end = math.inf if serving else time.monotonic() + seconds
        while run.live:
            question = await self._next(ctx, run, end - time.monotonic())
            if question is None:
                break
            if serving is not None or not elicitation.answers_by_repeat(ctx):
                await self._put(ctx, run, question, end - time.monotonic())
            elif rounds < elicitation.MOST_ROUNDS:
                return elicitation.input_required(run.id, rounds, question)
            else:
                break
        if self.waits_on:
            await self.watch(ctx, run, math.inf)
        return self.result(run)

    def _question(self, ctx: Ctx, run: Run) -> elicitation.ClientQuestion | None:
        """Return what a run waits for that this client can answer."""
        asked: elicitation.ClientQuestion | None = None
        if self._clients is not None:
            asked = self._clients.question(run.stop, ctx)
        if asked is None and can_ask(ctx):
            asked = self._consents.question(run.stop)
        return asked if asked is not None and asked.open and not asked.held else None

    async def _next(self, ctx: Ctx, run: Run, seconds: float) -> elicitation.ClientQuestion | None:
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

    async def _put(
        self, ctx: Ctx, run: Run, question: elicitation.ClientQuestion, seconds: float
    ) -> None:
        """Ask the client and wait for its answer, at most ``seconds``; then it is asked still."""
        question.held = True
        asking = asyncio.ensure_future(_ask(ctx, run, question))
        self._asking.add(asking)
        asking.add_done_callback(self._ask_client)
        try:
            await Progress(ctx).during(asyncio.shield(asking), question.saying, max(0.0, seconds))
        except asyncio.CancelledError:  # the client took the request back, and the question with it
            asking.cancel()
            raise
        except TimeoutError:
            pass

    def _ask_client(self, asking: asyncio.Future[None]) -> None:
        self._asking.discard(asking)
        if not asking.cancelled() and (error := asking.exception()) is not None:
            log.debug("a question could not be put: %r", error)  # raised where a request waits

    async def watch(self, ctx: Ctx, run: Run, seconds: float) -> None:
        """Wait for a run's end, at most ``seconds``, and tell the client what it does."""
        await Progress(ctx).follow(run, seconds, lambda one: phase(one, self._runs.position(one)))

    def result(self, run: Run) -> CallToolResult:
        """Return a run as it is now."""
        view = run_view(run, self._runs.position(run))
        question = self._consents.question(run.stop)
        if run.live and question is not None and question.open and question.held:
            view.next_step = f"{_QUESTION_OPEN}; {view.next_step}"
        return run_result(self._files.of_run(view))


async def _ask(ctx: Ctx, run: Run, question: elicitation.ClientQuestion) -> None:
    """Put a question to the client, for as long as the run waits for an answer."""
    serving = serving_task.get()
    asking = question.put(ctx) if serving is None else _ask_by_task(serving, question)
    putting = asyncio.ensure_future(asking)
    try:
        while not putting.done() and run.live and question.open:
            await asyncio.wait({putting}, timeout=POLL_S)
        if putting.done():
            putting.result()
    finally:
        putting.cancel()
        question.held = False


async def _ask_by_task(serving: TaskState, question: elicitation.ClientQuestion) -> None:
    responses = await serving.ask({question.key: question.request()})
    question.answer(responses[question.key])


def run_result(view: RunView) -> CallToolResult:
    """Return a run as a result; one that failed is an error. The whole of an ended one is linked."""
    told = failure(view) if view.status == "failed" else success(view)
    if view.more:
        told.content.append(run_link(view.run_id))
    return told


def run_link(run_id: str, task: str = "") -> ResourceLink:
    """Return the content block that names the resource of an ended run."""
    title = f"Run: {task}" if task else "The whole run"
    return link(RUN_URI.format(run_id=run_id), "run", title, "application/json")


_QUESTION_OPEN = "the user has a question of this run open and has not answered it yet"

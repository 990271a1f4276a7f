"""The eight tools. Each uses the workbench and returns its result as text and as data.

The catalog that ships runs on this machine. Imported ones are called over the network, and what may
change something only with a person's consent.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import BaseModel, ConfigDict, Field

from toolsrv import operations
from toolsrv.calls.files import FileSavingCaller
from toolsrv.calls.uploads import with_files, within
from toolsrv.mcp_server import elicitation, sampling
from toolsrv.mcp_server.admission import CALLS, Admission
from toolsrv.mcp_server.call_resources import CallFiles, CallResponses, blocks, link
from toolsrv.mcp_server.elicitation import (
    CallConsents,
    CallOutcome,
    PendingCall,
    PendingCalls,
    RunConsents,
)
from toolsrv.mcp_server.following import RunFollower, run_link, run_result
from toolsrv.mcp_server.notifications import ANSWER_S, Progress
from toolsrv.mcp_server.resources import EndedRuns
from toolsrv.mcp_server.results import RESULT_BYTES, failure, success
from toolsrv.mcp_server.run_pages import RunsView, ShowView, node_part, runs_view, tree_part
from toolsrv.mcp_server.tasks_extension import TaskTool, serving_task
from toolsrv.plain import plain
from toolsrv.runs.queue import Runs, new_run_id
from toolsrv.runs.records import continued_task
from toolsrv.threads import in_thread
from toolsrv.trees.shown import shown_record
from toolsrv.views.apis import RESPONSE_LIMIT, CallView, DescribeView, Detail, MissingView
from toolsrv.views.runs import RunView, continue_step, record_view
from toolsrv.views.search import SearchView
from toolsrv_registry.errors import BusyError, NotFoundError
from toolsrv_runtime.calls.result import CallResult, declined_result

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_registry.api import Api


class SolveChoices(BaseModel):
    """What ``options`` of ``solve_task`` may say; None is left to the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    continues: Annotated[
        str | None, Field(description="run_id whose answer and results the task goes on from.")
    ] = None
    strategy: Annotated[
        Literal["dfsdt", "dfs", "react", "cot", "plan"] | None,
        Field(
            description="Tree search, ranked, one chain, chains until one answers, or a tree for "
            "each subtask."
        ),
    ] = None
    switches: Annotated[
        list[Literal["plan", "progressive", "constraints", "self-check"]] | None,
        Field(description="Of a chat model; [] for none."),
    ] = None
    votes: Annotated[
        int | None, Field(ge=1, le=16, description="Solves at once; the most supported answer.")
    ] = None
    category: Annotated[str | None, Field(description="Only APIs of this category.")] = None
    max_calls: Annotated[int | None, Field(ge=1, le=10_000)] = None
    max_model_calls: Annotated[int | None, Field(ge=1, le=100_000)] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    width: Annotated[int | None, Field(ge=1, le=8)] = None
    depth: Annotated[int | None, Field(ge=3, le=96)] = None
    chains: Annotated[int | None, Field(ge=1, le=32, description="Most of cot.")] = None
    candidates: Annotated[int | None, Field(ge=1, le=32)] = None
    seed: Annotated[int | None, Field(ge=0, le=2**32 - 1)] = None
    verify: Annotated[
        bool | None, Field(description="Read the answer again; it may be rejected once.")
    ] = None


T = TypeVar("T")
Ctx = Context[None, Any]
WAIT_S = 20.0
"""Seconds that solve_task and get_run wait for a run; some clients cut a call off at 30."""
_CUT = "many clients cut a call off at 30."
Wait = Annotated[float, Field(ge=0, le=600, description=f"Seconds to wait for the end; {_CUT}")]
RunId = Annotated[str, Field(description="From solve_task.")]


class Tools:
    """The tools' functions; signatures become the published schemas.

    A call answers within ``answer_s`` seconds unless its caller wants to wait longer, a search
    after ``meaning_s`` by words alone.
    """

    answer_s = ANSWER_S
    meaning_s = 12.0

    def __init__(
        self,
        bench: Workbench,
        runs: Runs,
        consents: RunConsents,
        clients: sampling.Sampling | None = None,
    ) -> None:
        """Take the workbench, the runs, what they ask, and the clients' models where used."""
        self._bench = bench
        self._runs = runs
        self._kept = EndedRuns(runs, bench.settings.data_dir)
        self.files = CallFiles(bench.settings.data_dir)
        self.responses = CallResponses()
        self._following = RunFollower(runs, consents, clients, self.files)
        self._consents = CallConsents()
        self.searches = Admission()
        self.calls = Admission(CALLS, what="calls")
        self._word_searches = Admission()
        self._late = PendingCalls()

    def on_last_line(self) -> None:
        """Note that no further request comes: who waits for a run now waits for its end."""
        self._following.waits_on = True

    async def search_apis(
        self,
        ctx: Ctx,
        query: Annotated[str, Field(max_length=20_000, description="What is needed, in words.")],
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        category: Annotated[str | None, Field(description="Only this category.")] = None,
        tool: Annotated[str | None, Field(description="Only this tool.")] = None,
        catalog: Annotated[str | None, Field(description="Only this catalog.")] = None,
        detail: Annotated[
            Detail, Field(description="names: ids only. full: with parameters.")
        ] = "summary",
        offset: Annotated[
            int, Field(ge=0, le=1_000, description="next_offset of the page before.")
        ] = 0,
        include_dead: Annotated[
            bool, Field(description="Also APIs that failed when last checked.")
        ] = False,
        callable_only: Annotated[
            bool, Field(description="Only APIs that can be called now.")
        ] = False,
    ) -> Annotated[CallToolResult, SearchView]:
        """Search."""
        progress = Progress(ctx)

        def search(without_vectors: str = "", without_matcher: str = "") -> SearchView:
            return operations.search(
                self._bench,
                query,
                limit=limit,
                offset=offset,
                category=category,
                tool=tool,
                catalog=catalog,
                detail=detail,
                include_dead=include_dead,
                callable_only=callable_only,
                without_vectors=without_vectors,
                without_matcher=without_matcher,
            )

        in_turn = self.searches.in_thread(lambda haste: search(without_matcher=haste))
        try:
            view = await progress.during(in_turn, "opening the catalog", self.meaning_s)
        except (TimeoutError, BusyError) as error:
            ready = await in_thread(lambda: self._bench.is_searchable)
            if ready and isinstance(error, BusyError):
                raise
            # Whoever waits for the index has the places of searches until it is there.
            why = "it took too long" if ready else "the search index is being made ready"
            loading = f"{why}: words only; {self._later()}"
            by_words = self._word_searches.in_thread(lambda _: search(loading))
            view = await self._opened(progress, by_words, self.answer_s - self.meaning_s)
        return success(view)

    async def describe_apis(
        self,
        ctx: Ctx,
        ids: Annotated[
            list[str], Field(min_length=1, max_length=20, description="Ids from search_apis.")
        ],
        schema: Annotated[
            bool, Field(description="With the whole JSON Schema of the arguments, if it has room.")
        ] = False,
    ) -> Annotated[CallToolResult, DescribeView]:
        """Describe."""
        described = in_thread(lambda: self._describe(ids, schema=schema))
        view = await self._opened(Progress(ctx), described)
        return success(view) if view.apis else failure(view)

    async def call_api(
        self,
        ctx: Ctx,
        id: Annotated[str, Field(description="Id from search_apis.")],  # noqa: A002 - wire name
        arguments: Annotated[
            dict[str, Any], Field(description="Parameter names and values, as described.")
        ] = {},  # noqa: B006 - published as the default, never changed
        response_limit: Annotated[
            int,
            Field(
                ge=100,
                le=RESPONSE_LIMIT,
                description="Most characters of the response; a longer one is cut.",
            ),
        ] = 4_000,
        response_offset: Annotated[
            int,
            Field(ge=0, description="next_offset of a cut response: its rest, without a new call."),
        ] = 0,
    ) -> Annotated[CallToolResult, CallView] | InputRequiredResult:
        """Call."""
        progress = Progress(ctx)
        # Who allows a call more time by the setting call_seconds waits for it.
        end = time.monotonic() + max(self.answer_s, self._bench.settings.call_seconds + 2.0)
        find = within(self._bench.settings.upload_folder)

        def opened() -> tuple[Api, FileSavingCaller, dict[str, Any]]:
            api = self._bench.api(id)
            settings = self._bench.settings
            caller = FileSavingCaller(
                self._bench.caller(), settings.data_dir, settings.download_bytes
            )
            return api, caller, with_files(api, arguments, find)

        api, caller, arguments = await self._opened(progress, in_thread(opened))
        key = json.dumps([api.id, arguments], sort_keys=True)
        if response_offset:
            view = self.responses.part(key, response_offset, response_limit)
            return self._answered(view, response_limit)
        call = self._late.pop(key) or PendingCall(
            lambda call: self._made(ctx, caller, api, arguments, call)
        )
        try:
            left = end - time.monotonic()
            result = await progress.during(asyncio.shield(call.task), f"waiting for {api.id}", left)
        except asyncio.CancelledError:  # the client took the request back, and a question with it
            call.task.cancel()
            raise
        except TimeoutError:
            result = self._unfinished(key, call, api, arguments)
        if isinstance(result, InputRequiredResult):
            return result
        files = self.files.of_call(result)
        view = self.responses.view(key, result, response_limit, files)
        told = self._answered(view, response_limit)
        told.content.extend(blocks(result.files, view.files))
        return told

    def _answered(self, view: CallView, response_limit: int) -> CallToolResult:
        """Return what a call brought, or the part of it that was asked for."""
        limit = max(RESULT_BYTES, 4 * response_limit) if response_limit > 4_000 else RESULT_BYTES
        told = success(view, limit) if view.ok else failure(view, limit)
        if view.resource:
            told.content.append(link(view.resource, "call-response", "Whole response"))
        return told

    async def solve_task(
        self,
        ctx: Ctx,
        task: Annotated[str, Field(description="The whole task in plain words.")],
        wait_s: Annotated[
            float | None,
            Field(ge=0, le=600, description=f"Seconds to wait before a run_id comes back; {_CUT}"),
        ] = None,
        max_seconds: Annotated[
            float | None, Field(gt=0, le=86_400, description="What the solve may take.")
        ] = None,
        options: Annotated[
            SolveChoices | None,
            Field(description="How to solve, where the settings are not right."),
        ] = None,
        answer_to: Annotated[
            str | None,
            Field(description="run_id that ended as needs_input; task is the user's answer."),
        ] = None,
    ) -> Annotated[CallToolResult, RunView] | InputRequiredResult:
        """Solve."""
        chosen = (options or SolveChoices()).model_dump()
        continues = chosen.pop("continues")
        how = self._bench.options(**chosen, max_seconds=max_seconds)
        if answer_to is not None and not elicitation.resumption(ctx).run_id:
            record = await self._opened(Progress(ctx), self._kept.record(answer_to))
            task = continued_task(record, task)
            continues = continues or (record.outcome and record.outcome.continues)
        if continues and not elicitation.resumption(ctx).run_id:
            earlier = await self._opened(Progress(ctx), self._kept.earlier(continues))
            how = how.model_copy(update={"earlier": earlier})
        run = self._following.begin(ctx, task, how)
        seconds = WAIT_S if wait_s is None else wait_s
        try:
            if not (run.event_count or continues):
                run.interrupted = await self._kept.interrupted(run.task)
            return await self._following.follow(ctx, run, seconds)
        except asyncio.CancelledError:  # the client took the request back
            self._runs.cancel(run.id)
            raise

    async def get_run(
        self, ctx: Ctx, run_id: RunId, wait_s: Wait = WAIT_S
    ) -> Annotated[CallToolResult, RunView] | InputRequiredResult:
        """Wait."""
        if run := self._kept.remembered(run_id):
            return await self._following.follow(ctx, run, wait_s)
        record = await self._opened(Progress(ctx), self._kept.record(run_id))
        return run_result(self.files.of_run(record_view(record)))

    async def show_run(
        self,
        ctx: Ctx,
        run_id: RunId,
        node: Annotated[
            int | None,
            Field(ge=0, description="Only what the call of this node (0 or more) returned, whole."),
        ] = None,
        offset: Annotated[int, Field(ge=0, description="next_offset of the part before.")] = 0,
    ) -> Annotated[CallToolResult, ShowView]:
        """Show."""
        if node is not None:
            response = self._kept.response(run_id, node, offset, SHOWN_CHARACTERS)
            return success(node_part(await self._opened(Progress(ctx), response)))
        record = await self._opened(Progress(ctx), self._kept.record(run_id))
        step = continue_step(record) if record.status == "interrupted" else ""
        told = success(tree_part(shown_record(record), offset, step))
        told.content.append(run_link(record.id))
        return told

    async def list_runs(
        self,
        ctx: Ctx,
        task: Annotated[str, Field(description="Only runs whose task has these words.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> Annotated[CallToolResult, RunsView]:
        """List."""
        found = await self._opened(Progress(ctx), self._kept.recent(limit, plain(task)))
        return success(runs_view(found))

    async def cancel_run(self, ctx: Ctx, run_id: RunId) -> Annotated[CallToolResult, RunView]:
        """Stop."""
        if not (run := self._kept.remembered(run_id)):
            record = await self._opened(Progress(ctx), self._kept.record(run_id))
            return run_result(self.files.of_run(record_view(record)))
        self._runs.cancel(run.id)
        await self._following.watch(ctx, run, CANCEL_WAIT_S)
        return self._following.result(run)

    async def _made(
        self,
        ctx: Ctx,
        caller: FileSavingCaller,
        api: Api,
        arguments: dict[str, Any],
        call: PendingCall,
    ) -> CallOutcome:
        """Make a call, and where it needs a person's consent ask and make it on a yes."""
        async with self.calls.place():
            result = await caller.call(api, arguments)
        if result.consent is not None:
            call.asked = result
            answer = await self._consents.ask(ctx, result.consent)
            if isinstance(answer, InputRequiredResult):
                return answer
            if answer:
                async with self.calls.place():
                    result = await caller.call(api, arguments, consent=result.consent)
            elif answer is False:
                result = declined_result(result)
        return result

    def _unfinished(
        self, key: str, call: PendingCall, api: Api, arguments: dict[str, Any]
    ) -> CallResult:
        """Return what is known of a call whose request has no more time.

        With a question open it goes on and waits for the same call; any other is cancelled.
        """
        if call.asked is not None:
            self._late.keep(key, call)
            return call.asked.model_copy(update={"hint": UNANSWERED})
        call.task.cancel()
        from toolsrv_runtime.calls.exchange import IDEMPOTENT

        return CallResult(
            api_id=api.id,
            arguments=arguments,
            url=api.url,
            status=0,
            response=None,
            error=f"no answer within {self.answer_s:g} seconds",
            source="live",
            seconds=self.answer_s,
            kind="timed_out",
            hint="try again, or choose another API"
            if api.method in IDEMPOTENT
            else "it may have been carried out: look before calling it again",
        )

    async def _opened(
        self, progress: Progress, work: Awaitable[T], seconds: float | None = None
    ) -> T:
        """Wait for work on the catalog.

        Raises:
            BusyError: It takes too long for one request.
        """
        try:
            left = self.answer_s if seconds is None else seconds
            if serving_task.get() is not None:
                left = TASK_OPENING_S
            return await progress.during(work, "opening the catalog", left)
        except TimeoutError as error:
            raise BusyError("the catalog is still being opened", hint=self._later()) from error

    def _later(self) -> str:
        """Return when to ask again for what is being built or opened."""
        left = self._bench.index_seconds() or LATER_S
        return f"ask again in about {max(LATER_S, left):.0f} seconds"

    def _describe(self, ids: list[str], *, schema: bool) -> DescribeView:
        apis, missing = [], []
        for one in ids:
            try:
                apis.append(operations.describe(self._bench, one, schema=schema))
            except NotFoundError as error:
                missing.append(MissingView(id=one[:200], error=error.message, hint=error.hint))
        return DescribeView(apis=tuple(apis), not_found=tuple(missing))


UNANSWERED = (
    "the user is asked about this call and has not answered yet: repeat call_api with the same id "
    "and arguments for what comes of it; without a yes nothing is sent"
)
LATER_S = 10.0
TASK_OPENING_S = 600.0
"""A task waits so long for the catalog to open: nobody cuts it off."""
SHOWN_CHARACTERS = 4_000
"""Of a response that ``show_run`` shows a part of."""
CANCEL_WAIT_S = 5.0
TASK_TOOLS = {"solve_task": TaskTool(1.0, new_run_id), "call_api": TaskTool(5.0)}
"""Tools whose calls become tasks for clients that have tasks; a solve's task is its run."""

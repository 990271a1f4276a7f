"""The seven tools. Each does its work at the workbench and says the result twice: text and data.

The catalog that ships runs on this machine; imported ones are called over the network, and what may
change something only with a person's consent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import Field

from toolsrv.background import in_thread
from toolsrv.mcp_server import sampling, texts
from toolsrv.mcp_server.consent import Consents
from toolsrv.mcp_server.following import Following, ended
from toolsrv.mcp_server.kept import Kept
from toolsrv.mcp_server.progress import Progress
from toolsrv.mcp_server.rim import failure, success
from toolsrv.mcp_server.run_consent import RunConsents
from toolsrv.plain import plain
from toolsrv.run_views import RunView, record_view
from toolsrv.runs import Runs
from toolsrv.search_view import SearchView, search_view
from toolsrv.trees.shown import ShownRun, brief, shown_record
from toolsrv.views import (
    CallView,
    DescribeView,
    Detail,
    MissingView,
    api_view,
    call_view,
)
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.calls.result import declined

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

Ctx = Context[None, Any]
Wait = Annotated[float, Field(ge=0, le=600, description="Seconds to wait for the end.")]
RunId = Annotated[str, Field(description="From solve_task.")]


class Tools:
    """The tools' functions; signatures become the published schemas."""

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
        self._kept = Kept(runs, bench.settings.data_dir)
        self._following = Following(runs, consents, clients)
        self._consents = Consents()

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
    ) -> Annotated[CallToolResult, SearchView]:
        """Search."""
        text = plain(query).strip()
        if not text:
            raise UsageError("the query is empty", hint="say what the API should do")
        result = await Progress(ctx).during(
            in_thread(
                lambda: self._bench.search(
                    text,
                    limit,
                    offset=offset,
                    category=category,
                    tool=tool,
                    catalog=catalog,
                    include_dead=include_dead,
                )
            ),
            "opening the catalog",
        )
        view = search_view(result, detail)
        return success(texts.search_text(view), view)

    async def describe_apis(
        self,
        ctx: Ctx,
        ids: Annotated[
            list[str], Field(min_length=1, max_length=20, description="Ids from search_apis.")
        ],
    ) -> Annotated[CallToolResult, DescribeView]:
        """Describe."""
        view = await Progress(ctx).during(
            in_thread(lambda: self._describe(ids)), "opening the catalog"
        )
        text = texts.describe_text(view)
        if view.apis:
            return success(text, view)
        return failure(view.not_found[0].error, view.not_found[0].hint, view)

    async def call_api(
        self,
        ctx: Ctx,
        id: Annotated[str, Field(description="Id from search_apis.")],  # noqa: A002 - wire name
        arguments: Annotated[
            dict[str, Any], Field(description="Parameter names and values, as described.")
        ] = {},  # noqa: B006 - published as the default, never changed
    ) -> Annotated[CallToolResult, CallView] | InputRequiredResult:
        """Call."""
        progress = Progress(ctx)
        opened = in_thread(lambda: (self._bench.api(id), self._bench.caller()))
        api, caller = await progress.during(opened, "opening the catalog")
        waits = f"waiting for {api.id}"
        result = await progress.during(caller.call(api, arguments), waits)
        if result.consent is not None:
            answer = await self._consents.ask(ctx, result.consent)
            if isinstance(answer, InputRequiredResult):
                return answer
            if answer:
                again = caller.call(api, arguments, consent=result.consent)
                result = await progress.during(again, waits)
            elif answer is False:
                result = declined(result)
        view = call_view(result)
        text = texts.call_text(view)
        return success(text, view) if view.ok else failure(text, view=view)

    async def solve_task(
        self,
        ctx: Ctx,
        task: Annotated[str, Field(description="The whole task in plain words.")],
        wait_s: Annotated[
            float | None,
            Field(ge=0, le=600, description="Seconds to wait before a run_id comes back."),
        ] = None,
        strategy: Annotated[
            Literal["dfsdt", "dfs", "react", "cot"] | None,
            Field(description="Tree search, ranked, one chain, or chains until one answers."),
        ] = None,
        category: Annotated[str | None, Field(description="Only APIs of this category.")] = None,
        max_seconds: Annotated[float | None, Field(gt=0, le=86_400)] = None,
        max_calls: Annotated[int | None, Field(ge=1, le=10_000)] = None,
        max_model_calls: Annotated[int | None, Field(ge=1, le=100_000)] = None,
        max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000)] = None,
        width: Annotated[int | None, Field(ge=1, le=8)] = None,
        depth: Annotated[int | None, Field(ge=3, le=96)] = None,
        chains: Annotated[int | None, Field(ge=1, le=32, description="Most of cot.")] = None,
        candidates: Annotated[int | None, Field(ge=1, le=9)] = None,
        seed: Annotated[int | None, Field(ge=0, le=2**32 - 1)] = None,
        verify: Annotated[
            bool | None, Field(description="Read the answer again; it may be rejected once.")
        ] = None,
    ) -> Annotated[CallToolResult, RunView] | InputRequiredResult:
        """Solve."""
        options = self._bench.options(
            strategy=strategy,
            category=category,
            max_seconds=max_seconds,
            max_calls=max_calls,
            max_model_calls=max_model_calls,
            max_tokens=max_tokens,
            width=width,
            depth=depth,
            chains=chains,
            candidates=candidates,
            seed=seed,
            verify=verify,
        )
        run = self._following.begin(ctx, task, options)
        seconds = self._bench.settings.wait_s if wait_s is None else wait_s
        try:
            return await self._following.follow(ctx, run, seconds)
        except asyncio.CancelledError:  # the client took the request back
            self._runs.cancel(run.id)
            raise

    async def get_run(
        self, ctx: Ctx, run_id: RunId, wait_s: Wait = 45.0
    ) -> Annotated[CallToolResult, RunView] | InputRequiredResult:
        """Wait."""
        if run := self._kept.remembered(run_id):
            return await self._following.follow(ctx, run, wait_s)
        return ended(record_view(await self._kept.record(run_id)))

    async def show_run(self, run_id: RunId) -> Annotated[CallToolResult, ShownRun]:
        """Show."""
        run = brief(shown_record(await self._kept.record(run_id)))
        return success(texts.tree_text(run), run)

    async def cancel_run(self, ctx: Ctx, run_id: RunId) -> Annotated[CallToolResult, RunView]:
        """Stop."""
        run = self._runs.cancel(run_id)
        await self._following.watch(ctx, run, CANCEL_WAIT_S)
        return self._following.told(run)

    def _describe(self, ids: list[str]) -> DescribeView:
        apis, missing = [], []
        checks = self._bench.registry().store.checks
        for one in ids:
            try:
                api = self._bench.api(one)
            except NotFoundError as error:
                missing.append(MissingView(id=one[:200], error=error.message, hint=error.hint))
                continue
            apis.append(api_view(api, checks([api]).get(api.id)))
        return DescribeView(apis=tuple(apis), not_found=tuple(missing))


CANCEL_WAIT_S = 5.0

"""The MCP server: its parts, its warm-up, its error handler.

Nothing heavy is loaded here: the first client gets its answer to ``tools/list`` first, then a
thread opens the catalog and, when it is small, the model. Every error becomes one tool error
without a traceback. An error that the model can correct says what to change; a fault names its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server import CacheHint, MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Resource,
    ToolAnnotations,
)
from mcp.types import Tool as ToolEntry
from pydantic import AnyUrl, ValidationError

import toolsrv
from toolsrv import faults, operations
from toolsrv.calls.consent import worth_asking
from toolsrv.mcp_server.admission import Admission
from toolsrv.mcp_server.call_resources import add_call_responses, add_files
from toolsrv.mcp_server.descriptions import (
    descriptions,
    instructions,
    publish_input,
    publish_output,
)
from toolsrv.mcp_server.elicitation import RunConsents
from toolsrv.mcp_server.messages import WellFormedResults
from toolsrv.mcp_server.notifications import (
    CapabilitiesMiddleware,
    SubscriptionBus,
    publish_changes,
)
from toolsrv.mcp_server.prompts import add_completions, add_prompts
from toolsrv.mcp_server.resources import (
    EndedRuns,
    add_apis,
    add_responses,
    add_runs,
    keep_ended_run,
    recent_runs,
)
from toolsrv.mcp_server.results import refusal, refused, with_ignored_arguments
from toolsrv.mcp_server.run_app import add_pages, app_meta, run_app
from toolsrv.mcp_server.run_tasks import RunTasks
from toolsrv.mcp_server.sampling import Sampling
from toolsrv.mcp_server.tasks_extension import TasksExtension
from toolsrv.mcp_server.tools import TASK_TOOLS, WAIT_S, Tools
from toolsrv.model_list import SAMPLING
from toolsrv.plain import one_line
from toolsrv.runs.journal import keep_interrupted, open_journal
from toolsrv.runs.queue import Runs
from toolsrv.solve_options import option_defaults
from toolsrv.threads import in_thread
from toolsrv_registry.catalog_state import catalog_state
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.host_resources import FREE_MEMORY_HINT, is_memory_error
from toolsrv_runtime.outcome import Event, Outcome
from toolsrv_runtime.profiles import REMOTE
from toolsrv_runtime.stop import Stop

if TYPE_CHECKING:
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    from toolsrv.workbench import Workbench
    from toolsrv_runtime.solve import SolveOptions

log = logging.getLogger(__name__)
CLIENT_ARGUMENTS = frozenset({"wait_for_previous"})
"""Arguments that clients add for themselves and pass on: Gemini CLI to every call."""


class ToolsrvServer(MCPServer[None]):
    """An ``MCPServer`` that refuses misspelt arguments and tells errors in one line."""

    runs: Runs
    kept: EndedRuns
    consents: RunConsents
    searches: Admission
    calls: Admission
    fault_folder: Path
    close_runs: Callable[[], Coroutine[Any, Any, None]]
    read_file: Callable[[str], list[ReadResourceContents] | None]
    on_listed: Callable[[], None] | None = None
    describe: Callable[[], dict[str, str]]
    described_for: str | None
    recent_runs: Callable[[], Coroutine[Any, Any, list[Resource]]]
    on_last_line: Callable[[], None]

    async def serve_streams(
        self, inbox: ReadStream[SessionMessage | Exception], outbox: WriteStream[SessionMessage]
    ) -> None:
        """Serve one client, in the era that it opens with, until its messages end."""
        server = self._lowlevel_server
        await server.run(inbox, outbox, server.create_initialization_options())

    async def list_tools(self) -> list[ToolEntry]:
        """Return the tools, and tell that a client has them."""
        await self.described()
        tools = await super().list_tools()
        if self.on_listed is not None:
            self.on_listed()
        return tools

    async def described(self) -> tuple[str, ...]:
        """Return the tools' descriptions, brought up to date where the catalogs have changed."""
        state = await in_thread(lambda: catalog_state(self.fault_folder))
        if state is not None and state != self.described_for:
            descriptions = await in_thread(self.describe)
            self.described_for = state
            for tool in self._tool_manager.list_tools():
                tool.description = descriptions[tool.name]
        return tuple(tool.description for tool in self._tool_manager.list_tools())

    async def list_resources(self) -> list[Resource]:
        """Return recent runs and the view of a run; everything else is found by its template."""
        return [*await self.recent_runs(), *await super().list_resources()]

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[None, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt.

        Raises:
            MCPError: There is no such prompt, or an argument is missing.
        """
        prompts = {one.name: one for one in await super().list_prompts()}
        if name not in prompts:
            known = ", ".join(prompts)
            raise MCPError(INVALID_PARAMS, f"unknown prompt {name[:80]!r}; there are: {known}")
        taken = prompts[name].arguments or []
        given = {key: value for key, value in (arguments or {}).items() if value not in (None, "")}
        if missing := [one.name for one in taken if one.required and one.name not in given]:
            raise MCPError(INVALID_PARAMS, f"argument {missing[0]!r}: field required")
        known_given = {one.name: given[one.name] for one in taken if one.name in given}
        return await super().get_prompt(name, known_given, context)

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource; a file that a call brought has a media type of its own."""
        found = self.read_file(str(uri))
        return await super().read_resource(uri, context) if found is None else found

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error is a result with ``is_error``."""
        tools = {tool.name: tool for tool in await super().list_tools()}
        if name not in tools:
            return refusal(f"unknown tool {name[:80]!r}", f"tools: {', '.join(tools)}")
        schema = tools[name].input_schema
        known = {*schema["properties"], *CLIENT_ARGUMENTS}
        unknown = [key for key in arguments if key not in known]
        if problem := _misspelled_argument(unknown, arguments, schema):
            return problem
        given = _known_arguments(arguments, schema)
        try:
            result = await super().call_tool(name, given, context)
        except ToolError as error:
            result = self._error_result(error)
        if isinstance(result, InputRequiredResult):
            return result
        return with_ignored_arguments(result, [one_line(key, 80) for key in unknown[:20]])

    def _error_result(self, error: ToolError) -> CallToolResult:
        match error.__cause__:
            case ToolsrvError() as cause:
                return refused(cause)
            case ValidationError() as cause:
                return refusal(_rejected(cause))
            case Exception() as cause if is_memory_error(cause):
                return refusal(
                    f"memory ran short: {cause or type(cause).__name__}", FREE_MEMORY_HINT
                )
            case Exception() as cause:
                line = faults.summary(cause, self.fault_folder)
                log.error(line)
                return refusal(line)
            case _:
                return refusal(str(error))


def _misspelled_argument(
    unknown: Iterable[str], arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> CallToolResult | None:
    """Return the refusal of an argument that is another one's name misspelt, or stands in an object."""
    properties = schema["properties"]
    known = ", ".join(properties)
    missing = [key for key in schema.get("required", ()) if key not in arguments]
    for key in unknown:
        said = f"unknown argument {key[:80]!r}"
        for name, one in properties.items():
            if key in one.get("properties", {}):
                return refusal(said, f"it stands in the object {name!r}")
        if near := difflib.get_close_matches(key, properties, n=1):
            others = "".join(
                f"; argument {one!r}: field required" for one in missing if one != near[0]
            )
            return refusal(f"{said}{others}", f"did you mean {near[0]!r}? arguments: {known}")
    return None


def _known_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a tool has and that are given.

    Clients fill what they have no value for with null or "", and one id stands for a list of it.
    """
    given = {}
    for key, one in schema["properties"].items():
        value = arguments.get(key)
        if key not in arguments or (value in (None, "") and key not in schema.get("required", ())):
            continue
        if one.get("type") == "array" and isinstance(value, str):
            value = [value]
        elif "properties" in one and isinstance(value, dict):
            value = {name: inner for name, inner in value.items() if inner not in (None, "")}
        given[key] = value
    return given


def _rejected(error: ValidationError) -> str:
    parts = []
    for one in error.errors(include_url=False)[:5]:
        place = ".".join(str(part) for part in one["loc"])
        got = json.dumps(one["input"], ensure_ascii=False, default=repr)
        given = "" if one["type"] == "missing" else f" (got {one_line(got, 60)})"
        said = one["msg"].partition(" or instance of ")[0]
        parts.append(f"argument {place!r}: {said[:1].lower()}{said[1:]}{given}")
    return "; ".join(parts)


WARM_AT_LATEST_S = 5.0
"""When no client has listed the tools by then, the warm-up starts anyway."""
WARM_PAUSE_S = 0.2
"""Between the answer to ``tools/list`` and the warm-up, so that the answer is out of the door."""

_READ = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_SOLVE = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
_CALL = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
_SOLVE_LIVE = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)
"""Where imported catalogs are called over the network. By itself a solve changes nothing; a call
that may is made on a person's yes, asked by elicitation with that very call shown."""
_STOP = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_DAY_MS = 24 * 3600 * 1000


def build_server(bench: Workbench, *, warm: bool = True) -> ToolsrvServer:
    """Return the server over a workbench, which stays the caller's to close."""
    clients = Sampling() if bench.settings.model == SAMPLING else None
    consents = RunConsents()
    runs = Runs(
        lambda *given: _solve(bench, clients, consents, *given),
        report=lambda error: faults.summary(error, bench.settings.data_dir),
        parallel=bench.settings.parallel,
        on_end=lambda run: keep_ended_run(run, bench.settings.data_dir, bench.settings.keep_runs),
        journal=lambda run: open_journal(
            bench.settings, run.id, run.task, run.options, log.warning
        ),
    )
    bus = SubscriptionBus()
    state = catalog_state(bench.settings.data_dir)  # before the domains: a change is seen twice
    domains = bench.domains()
    tools = Tools(bench, runs, consents, clients)
    kept = EndedRuns(runs, bench.settings.data_dir)
    tasks = TasksExtension(TASK_TOOLS, RunTasks(runs, kept, tools.files))
    server = ToolsrvServer(
        "toolsrv",
        title="toolsrv",
        description="Finds APIs and solves whole tasks with a local model.",
        instructions=instructions(domains, bench.settings),
        version=toolsrv.__version__,
        tools=_tools(
            tools,
            descriptions(domains, bench.settings),
            option_defaults(bench.settings) | {"wait_s": WAIT_S},
            live=worth_asking(bench.settings),
        ),
        cache_hints={"tools/list": CacheHint(ttl_ms=_DAY_MS, scope="public")},
        lifespan=_lifespan(bench, runs, bus, tasks, warm=warm),
        extensions=[tasks, run_app()],
        log_level="WARNING",
        middleware=[WellFormedResults(), CapabilitiesMiddleware()],
        subscriptions=bus,
    )
    server.describe, server.described_for = partial(_descriptions, bench), state
    server.runs, server.kept, server.consents = runs, kept, consents
    server.searches, server.calls = tools.searches, tools.calls
    server.fault_folder = bench.settings.data_dir
    server.close_runs = runs.close

    def on_last_line() -> None:
        tools.on_last_line()
        tasks.on_last_line()

    server.on_last_line = on_last_line
    server.read_file = tools.files.read
    server.recent_runs = partial(recent_runs, kept)
    add_responses(server, kept)
    add_runs(server, kept)
    add_pages(server, kept)
    add_apis(server, bench)
    add_prompts(server, kept)
    add_completions(server, bench, kept)
    add_files(server)
    add_call_responses(server, tools.responses)
    return server


def _descriptions(bench: Workbench) -> dict[str, str]:
    return descriptions(bench.domains(), bench.settings)


def _tools(
    tools: Tools, descriptions: dict[str, str], defaults: dict[str, Any], *, live: bool
) -> list[Tool]:
    functions: list[tuple[Callable[..., Any], str, ToolAnnotations]] = [
        (tools.search_apis, "Search APIs", _READ),
        (tools.describe_apis, "Describe APIs", _READ),
        (tools.call_api, "Call an API", _CALL if live else _READ),
        (tools.solve_task, "Solve a task", _SOLVE_LIVE if live else _SOLVE),
        (tools.get_run, "Get a run", _READ),
        (tools.cancel_run, "Cancel a run", _STOP),
        (tools.show_run, "Show a run", _READ),
        (tools.list_runs, "List runs", _READ),
    ]
    # Get_run and cancel_run have what solve_task has; show_run has one of two things.
    published = (tools.search_apis, tools.describe_apis, tools.call_api, tools.solve_task)
    entries = []
    for function, title, hints in functions:
        entry = Tool.from_function(
            function,
            title=title,
            description=descriptions[function.__name__],
            annotations=hints,
            meta=app_meta(function.__name__),
        )
        entry.parameters["additionalProperties"] = False
        publish_input(entry.parameters, defaults)
        output = entry.fn_metadata.output_schema or {}
        publish_output(output)
        if function not in published:
            del output["properties"]
        entries.append(entry)
    return entries


def _lifespan(
    bench: Workbench, runs: Runs, bus: SubscriptionBus, calls: TasksExtension, *, warm: bool
) -> Callable[[MCPServer[None]], contextlib.AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(server: MCPServer[None]) -> AsyncIterator[None]:
        listed = asyncio.Event()
        if isinstance(server, ToolsrvServer):
            server.on_listed = listed.set
        tasks = [asyncio.create_task(_warm(bench, listed))] if warm else []
        if isinstance(server, ToolsrvServer):
            changing = publish_changes(bus, runs, server.described)
            tasks.append(asyncio.create_task(changing))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            with anyio.CancelScope(shield=True):  # also where the server itself is cancelled
                await runs.close()
                await calls.close()

    return lifespan


async def _warm(bench: Workbench, listed: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(listed.wait(), WARM_AT_LATEST_S)
    await asyncio.sleep(WARM_PAUSE_S)
    try:
        await in_thread(lambda: keep_interrupted(bench.settings.data_dir))
        await in_thread(bench.warm, name="toolsrv-warm")
    except ToolsrvError as error:  # told again, as a tool error, when a request needs it
        log.warning("warm-up: %s (%s)", error.message, error.hint)


async def _solve(
    bench: Workbench,
    clients: Sampling | None,
    consents: RunConsents,
    task: str,
    options: SolveOptions,
    on_event: Callable[[Event], None],
    stop: Stop,
) -> Outcome:
    return await operations.solve(
        bench,
        task,
        options,
        on_event=on_event,
        stop=stop,
        model=None if clients is None else (clients.model(stop), REMOTE),
        confirm=consents.ask(stop),
        ask_value=consents.ask_value(stop),
    )

"""Puts the server together: tools, words, runs, and the warm-up in the background.

Nothing heavy is loaded here: the first client gets its answer to ``tools/list`` first, then a
thread opens the catalog and, when it is small, the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server import CacheHint, MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

import toolsrv
from toolsrv import faults
from toolsrv.background import in_thread
from toolsrv.consent import worth_asking
from toolsrv.mcp_server import schemas, words
from toolsrv.mcp_server.call_files import add_files
from toolsrv.mcp_server.call_responses import add_call_responses
from toolsrv.mcp_server.changes import Bus, HonestCapabilities, publish_changes
from toolsrv.mcp_server.completions import add_completions
from toolsrv.mcp_server.kept import Kept, keep
from toolsrv.mcp_server.messages import WellFormedResults
from toolsrv.mcp_server.prompts import add_prompts
from toolsrv.mcp_server.resources import add_apis, add_responses, add_runs, recent_runs
from toolsrv.mcp_server.rim import ToolsrvServer
from toolsrv.mcp_server.run_consent import RunConsents
from toolsrv.mcp_server.sampling import Sampling
from toolsrv.mcp_server.tools import Tools
from toolsrv.models import SAMPLING
from toolsrv.runs import Runs
from toolsrv_registry.catalog_state import catalog_state
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.events import Event
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profile import REMOTE
from toolsrv_runtime.stop import Stop

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_runtime.solve import SolveOptions

log = logging.getLogger(__name__)
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
        on_end=lambda run: keep(run, bench.settings.data_dir, bench.settings.keep_runs),
    )
    bus = Bus()
    state = catalog_state(bench.settings.data_dir)  # before the domains: a change is seen twice
    domains = bench.domains()
    tools = Tools(bench, runs, consents, clients)
    server = ToolsrvServer(
        "toolsrv",
        title="toolsrv",
        description="Finds APIs and solves whole tasks with a local model.",
        instructions=words.instructions(domains, bench.settings),
        version=toolsrv.__version__,
        tools=_tools(
            tools,
            words.descriptions(domains, bench.settings),
            bench.settings.model_dump(mode="json"),
            live=worth_asking(bench.settings),
        ),
        cache_hints={"tools/list": CacheHint(ttl_ms=_DAY_MS, scope="public")},
        lifespan=_lifespan(bench, runs, bus, warm=warm),
        log_level="WARNING",
        middleware=[WellFormedResults(), HonestCapabilities()],
        subscriptions=bus,
    )
    server.describe, server.described_for = partial(_descriptions, bench), state
    server.fault_folder = bench.settings.data_dir
    server.close_runs = runs.close
    server.on_last_line = tools.on_last_line
    server.read_file = tools.files.read
    kept = Kept(runs, bench.settings.data_dir)
    server.recent_runs = partial(recent_runs, kept)
    add_responses(server, kept)
    add_runs(server, kept)
    add_apis(server, bench)
    add_prompts(server, kept)
    add_completions(server, bench, kept)
    add_files(server)
    add_call_responses(server, tools.responses)
    return server


def _descriptions(bench: Workbench) -> dict[str, str]:
    return words.descriptions(bench.domains(), bench.settings)


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
        )
        entry.parameters["additionalProperties"] = False
        schemas.publish_input(entry.parameters, defaults)
        output = entry.fn_metadata.output_schema or {}
        schemas.publish_output(output)
        if function not in published:
            del output["properties"]
        entries.append(entry)
    return entries


def _lifespan(
    bench: Workbench, runs: Runs, bus: Bus, *, warm: bool
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

    return lifespan


async def _warm(bench: Workbench, listed: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(listed.wait(), WARM_AT_LATEST_S)
    await asyncio.sleep(WARM_PAUSE_S)
    try:
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
    await in_thread(lambda: bench.check_category(options.category))
    model = None if clients is None else (clients.model(stop), REMOTE)
    ask = consents.ask(stop)
    solver = await in_thread(lambda: bench.solver(model, asks=ask is not None))
    if not worth_asking(bench.settings):
        ask = None
    return await solver.solve(
        task,
        options,
        on_event=on_event,
        stop=stop,
        ask=ask,
        ask_value=consents.ask_value(stop),
    )

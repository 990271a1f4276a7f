"""The tasks extension over stdio and HTTP: a solve is a task, and its run's handle is the task's id."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from toolsrv.mcp_server.tasks_extension import TaskTool
from toolsrv.mcp_server.tools import TASK_TOOLS

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
CLIENT = runpy.run_path(str(HERE / "task_client.py"))
SCRIPTED = runpy.run_path(str(HERE / "scripted_server.py"))
WRITING = runpy.run_path(str(HERE / "writing.py"))
TASKS, TasksClient = CLIENT["TASKS"], CLIENT["TasksClient"]
ask, begun, until_ended = CLIENT["ask"], CLIENT["begun"], CLIENT["until_ended"]
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
SLOW = {"task": "a SLOW one"}


@asynccontextmanager
async def on_stdio(
    folder: Path, mode: str = "auto", *, tasks: bool = True, **further: Any
) -> AsyncIterator[Any]:
    """Yield a client of a scripted server process of its own."""
    from mcp import Client, StdioServerParameters

    settings = further.pop("settings", {})
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[str(HERE / "scripted_server.py"), "stdio"],
        env={"TOOLSRV_DATA_DIR": str(folder), **SOURCES, **settings},
    )
    extensions = [TasksClient()] if tasks else []
    async with Client(parameters, mode=mode, extensions=extensions, **further) as one:
        yield one


@asynccontextmanager
async def on_http(server: Any) -> AsyncIterator[Any]:
    """Yield a client of a server on HTTP."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(server.url, http_client=http), extensions=[TasksClient()]
        ) as one,
    ):
        yield one


async def test_a_solve_is_a_task_whose_id_finds_its_run_and_whose_message_says_how_far_it_is(
    ready_dir: Path,
) -> None:
    async with on_stdio(ready_dir) as one:
        created = await begun(one, "solve_task", {**SLOW, "max_seconds": 6})
        told = await ask(one.session, "get", created.id)
        listed = (await one.call_tool("list_runs", {})).structured_content["runs"]
        ended = await until_ended(one.session, created.id)
        run = (await one.call_tool("get_run", {"run_id": created.id})).structured_content
    assert created.id.startswith("run_")
    assert (told["status"], told["taskId"]) == ("working", created.id)
    assert told["statusMessage"]
    assert isinstance(told["ttlMs"], int)
    assert created.id in [line["run_id"] for line in listed]
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"]["run_id"] == created.id
    assert run["status"] == ended["result"]["structuredContent"]["status"] == "partial"


@asynccontextmanager
async def in_memory(folder: Path, person: Any = None, **settings: str) -> AsyncIterator[Any]:
    """Yield a client of a scripted server in this process."""
    from mcp import Client

    from toolsrv.mcp_server.server import build_server
    from toolsrv.settings import load

    bench = SCRIPTED["scripted_bench"](load({"data_dir": str(folder), **settings}).settings)
    server = build_server(bench, warm=False)
    extensions = [TasksClient()]
    async with Client(server, extensions=extensions, elicitation_callback=person) as one:
        yield one
    await bench.aclose()


async def test_a_call_within_its_grace_period_is_answered_directly(
    ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASK_TOOLS, "solve_task", TaskTool(120.0))
    async with in_memory(ready_dir) as one:
        quick = await begun(one, "solve_task", {"task": "easy"})
        wrong = await begun(one, "solve_task", {"task": "x", "options": {"strategy": "no such"}})
    assert quick.structured_content["status"] == "answered"
    assert wrong.is_error


async def test_a_long_call_of_an_api_is_a_task_with_the_result_of_the_call(
    ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASK_TOOLS, "call_api", TaskTool(0.0))
    given = {"id": "Data/country_facts/capital_city", "arguments": {"country": "Peru"}}
    async with in_memory(ready_dir) as one:
        created = await begun(one, "call_api", given)
        ended = await until_ended(one.session, created.id)
        whole = await one.call_tool("call_api", given)  # the client polls by itself
    assert created.id.startswith("task_")
    assert ended["result"]["structuredContent"]["response"]["capital"] == "Lima"
    assert whole.structured_content["response"]["capital"] == "Lima"


async def test_a_client_that_does_not_declare_tasks_sees_none_of_them(ready_dir: Path) -> None:
    async with on_stdio(ready_dir, tasks=False) as one:
        promised = one.server_capabilities.extensions or {}
        given = {**SLOW, "wait_s": 1.5, "max_seconds": 6}
        run = (await one.call_tool("solve_task", given)).structured_content
        with pytest.raises(MCPError) as refused:
            await ask(one.session, "get", run["run_id"])
    assert TASKS not in promised
    assert run["status"] in {"queued", "working"}
    assert refused.value.error.code == -32021


async def test_a_client_of_the_earlier_era_sees_none_of_them(ready_dir: Path) -> None:
    async with on_stdio(ready_dir, "legacy") as one:
        promised = one.server_capabilities.extensions or {}
        given = {**SLOW, "wait_s": 1.5, "max_seconds": 6}
        run = (await one.call_tool("solve_task", given)).structured_content
    assert TASKS not in promised
    assert run["status"] in {"queued", "working"}


@pytest.mark.nightly
async def test_the_first_answers_of_a_start_differ_for_clients_with_and_without_tasks(
    ready_dir: Path,
) -> None:
    promised = []
    for tasks in (True, False, True, False):
        async with on_stdio(ready_dir, tasks=tasks) as one:
            promised.append(TASKS in (one.server_capabilities.extensions or {}))
    assert promised == [True, False, True, False]


async def test_a_cancelled_task_stops_its_run(ready_dir: Path) -> None:
    async with on_stdio(ready_dir) as one:
        created = await begun(one, "solve_task", SLOW)
        await ask(one.session, "cancel", created.id)
        told = await until_ended(one.session, created.id)
        run = await one.call_tool("get_run", {"run_id": created.id, "wait_s": 100})
        await ask(one.session, "cancel", created.id)  # an ended one stays as it is
    assert told["status"] == "cancelled"
    assert run.structured_content["status"] == "cancelled"


async def test_a_task_that_nobody_knows_is_an_invalid_parameter(ready_dir: Path) -> None:
    async with on_stdio(ready_dir) as one:
        for method in ("get", "update", "cancel"):
            with pytest.raises(MCPError) as refused:
                await ask(one.session, method, "run_nobody")
            assert refused.value.error.code == -32602


async def test_a_run_outlives_its_connection_and_is_found_again_by_its_task(
    ready_dir: Path, start_http: Callable[[dict[str, str]], Any]
) -> None:
    server = start_http({"TOOLSRV_DATA_DIR": str(ready_dir)})
    async with on_http(server) as one:
        created = await begun(one, "solve_task", {**SLOW, "max_seconds": 6})
    async with on_http(server) as other:
        ended = await until_ended(other.session, created.id)
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"]["run_id"] == created.id


async def test_a_task_is_found_again_by_the_next_server_on_the_folder(ready_dir: Path) -> None:
    async with on_stdio(ready_dir) as one:
        created = await begun(one, "solve_task", {**SLOW, "max_seconds": 4})
        before = await until_ended(one.session, created.id)
        broken_off = await begun(one, "solve_task", SLOW)
    async with on_stdio(ready_dir) as later:
        after = await ask(later.session, "get", created.id)
        stopped = await ask(later.session, "get", broken_off.id)
        await ask(later.session, "cancel", created.id)
    assert after["status"] == before["status"] == "completed"
    assert after["result"]["structuredContent"]["run_id"] == created.id
    assert stopped["status"] == "cancelled"


@pytest.fixture
def host(ready_dir: Path) -> Iterator[Any]:
    """A host whose API wants a person's consent."""
    with WRITING["FaultyHost"]() as one:
        WRITING["serve"](one, ready_dir)
        yield one


@pytest.mark.parametrize(("action", "made"), [("accept", True), ("decline", False)])
async def test_a_task_asks_for_consent_and_goes_on_with_the_answer(
    host: Any, ready_dir: Path, action: str, made: bool
) -> None:
    person = WRITING["always"]("decline")  # never asked directly
    settings = {"TOOLSRV_OWN_HOSTS": host.url.removeprefix("http://")}
    async with on_stdio(ready_dir, settings=settings, elicitation_callback=person) as one:
        given = {"task": WRITING["TASK"].format(word="alpha"), "options": {"category": "Notes"}}
        created = await begun(one, "solve_task", given)
        asked = await until_ended(one.session, created.id)
        (key, request), *further = asked["inputRequests"].items()
        answer = {"action": action, "content": {"ok": True}}
        await ask(one.session, "update", created.id, inputResponses={"no such": answer})
        await ask(one.session, "update", created.id, inputResponses={key: answer})
        ended = await until_ended(one.session, created.id)
    assert not further
    assert request["method"] == "elicitation/create"
    assert "POST 127.0.0.1:" in request["params"]["message"]
    assert (ended["status"], host.written) == ("completed", ['{"text":"alpha"}'] * made)
    assert not person.asked


@pytest.mark.parametrize(("action", "made"), [("accept", True), ("decline", False)])
async def test_a_long_call_that_needs_consent_asks_by_its_task(
    host: Any, ready_dir: Path, monkeypatch: pytest.MonkeyPatch, action: str, made: bool
) -> None:
    monkeypatch.setitem(TASK_TOOLS, "call_api", TaskTool(0.0))
    person = WRITING["always"]("decline")  # never asked directly
    own = host.url.removeprefix("http://")
    async with in_memory(ready_dir, person, own_hosts=own) as one:
        given = {"id": "Notes/notes/write", "arguments": {"text": "beta"}}
        created = await begun(one, "call_api", given)
        asked = await until_ended(one.session, created.id)
        keys = list(asked["inputRequests"])
        with pytest.raises(MCPError):
            await ask(one.session, "update", created.id, inputResponses={keys[0]: {"no": "answer"}})
        answer = {"action": action, "content": {"ok": True}}
        await ask(one.session, "update", created.id, inputResponses={keys[0]: answer})
        ended = await until_ended(one.session, created.id)
    assert (asked["status"], len(keys)) == ("input_required", 1)
    assert (ended["status"], host.written) == ("completed", ['{"text":"beta"}'] * made)
    assert not person.asked


@pytest.mark.nightly
def test_the_requests_of_a_pipe_are_answered_with_the_end_as_nobody_can_poll(
    ready_dir: Path,
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "pipe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
    call = {
        "name": "solve_task",
        "arguments": {**SLOW, "max_seconds": 4},
        "_meta": meta,
    }
    line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    done = subprocess.run(
        [sys.executable, str(HERE / "scripted_server.py"), "stdio"],
        input=json.dumps(line) + "\n",
        env=os.environ | {"TOOLSRV_DATA_DIR": str(ready_dir)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers = [json.loads(one) for one in done.stdout.splitlines()]
    result = next(one["result"] for one in answers if one.get("id") == 1)
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["status"] == "partial"

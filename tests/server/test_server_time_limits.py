"""Clients cut a call off at 30 seconds: until then every call answers or hands something out."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolsrv.mcp_server.notifications import ANSWER_S
from toolsrv.mcp_server.server import build_server
from toolsrv.mcp_server.tools import WAIT_S, Tools
from toolsrv.settings import Settings, load
from toolsrv.workbench import Workbench
from toolsrv_runtime.calls.caller import Caller

pytestmark = pytest.mark.anyio
Connect = Callable[[], AbstractAsyncContextManager[Any]]
HERE = Path(__file__).parent
HELPERS = runpy.run_path(str(HERE / "writing.py"))
Person = HELPERS["Person"]
check: Callable[[Any], None] = runpy.run_path(str(HERE / "halves.py"))["check"]
TASK: str = HELPERS["TASK"]
WRITE = {"id": "Notes/notes/write", "arguments": {"text": "alpha"}}
_SPEC = importlib.util.spec_from_file_location("own_conftest", HERE / "conftest.py")
assert _SPEC is not None
assert _SPEC.loader is not None


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of a second where the program has some twenty."""
    monkeypatch.setattr(Tools, "answer_s", 1.0)
    monkeypatch.setattr(Tools, "meaning_s", 0.3)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What blocking work waits for; open when the test ends."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def host(ready_dir: Path) -> Iterator[Any]:
    with HELPERS["FaultyHost"]() as one:
        HELPERS["serve"](one, ready_dir)
        yield one


async def text_and_data(client: Any, name: str, arguments: dict[str, Any]) -> tuple[str, Any, Any]:
    """Return text, data and flag of a call that must end in time."""
    with anyio.fail_after(20):
        result = await client.call_tool(name, arguments)
    check(result)
    return result.content[0].text, result.structured_content, result.is_error


def test_the_defaults_leave_room_below_the_shortest_limit() -> None:
    assert WAIT_S <= 20
    assert Settings().call_seconds + 2 <= ANSWER_S < 25
    assert Tools.meaning_s < Tools.answer_s == ANSWER_S


@pytest.mark.parametrize("transport", ["memory"])
async def test_descriptions_say_what_clients_drop_from_schemas(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in tools.values():
        for name, one in tool.input_schema["properties"].items():
            assert "anyOf" not in one, name
            assert one["type"], name
            for key in ("minimum", "maximum", "default"):
                if (value := one.get(key)) not in (None, "", {}):
                    assert str(value).lower().removesuffix(".0") in one["description"], name
    waits = [tools[name].input_schema["properties"]["wait_s"] for name in ("get_run", "solve_task")]
    for one in waits:
        assert "default 20" in one["description"]
        assert "at 30" in one["description"]
        assert one["maximum"] == 600
    solve = tools["solve_task"].input_schema["properties"]
    assert "default 120" in solve["max_seconds"]["description"]


@pytest.mark.parametrize("transport", ["memory"])
async def test_an_argument_of_the_client_itself_is_ignored(connect: Connect) -> None:
    extra = {"wait_for_previous": True}
    async with connect() as client:
        found = await client.call_tool("search_apis", {"query": "time", **extra})
        assert not found.is_error
        assert "ignored_arguments" not in found.structured_content
        for name, arguments in (
            ("describe_apis", {"ids": [found.structured_content["hits"][0]["id"]]}),
            ("solve_task", {"task": "quick"}),
        ):
            assert not (await client.call_tool(name, arguments | extra)).is_error
        other = await client.call_tool("search_apis", {"query": "time", "colour": "red"})
        assert not other.is_error
        assert other.structured_content["ignored_arguments"] == ["colour"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("transport", ["memory"])
async def test_a_search_while_the_index_is_built_is_answered_by_words(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    whole = Workbench.searchable
    built = threading.Event()

    def building(self: Workbench) -> Any:
        self._build = (time.monotonic() - 1000, 1000, 1045)  # 45 seconds, for a minute from now on
        gate.wait()
        made = whole(self)
        built.set()
        return made

    monkeypatch.setattr(Workbench, "searchable", building)
    monkeypatch.setattr(Tools, "answer_s", 15.0)  # words take no second, but this may be a busy day
    async with connect() as client:
        query = {"query": "convert a time between time zones"}
        text, data, failed = await text_and_data(client, "search_apis", query)
        assert not failed
        assert data["hits"][0]["id"] == "Location/world_clock/convert_time"
        assert "words only; ask again in about 4" in data["degraded"]
        assert data["degraded"] in text
        gate.set()
        assert await anyio.to_thread.run_sync(built.wait, 120)
        monkeypatch.setattr(Tools, "meaning_s", 14.0)
        _, data, _ = await text_and_data(client, "search_apis", query)
        assert data["degraded"] == ""


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("transport", ["memory"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_apis", {"query": "time"}),
        ("describe_apis", {"ids": ["Location/world_clock/time_difference"]}),
        ("call_api", {"id": "Location/world_clock/time_difference"}),
    ],
)
async def test_a_catalog_that_opens_slowly_says_when_to_ask_again(
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    gate: threading.Event,
    tool: str,
    arguments: dict[str, Any],
) -> None:
    whole = Workbench.registry

    def opening(self: Workbench) -> Any:
        gate.wait()
        return whole(self)

    monkeypatch.setattr(Workbench, "registry", opening)
    async with connect() as client:
        text, data, failed = await text_and_data(client, tool, arguments)
        assert failed
        assert "still being opened" in data["error"]
        assert "ask again in about 10 seconds" in data["hint"]
        assert data["hint"] in text
        gate.set()


@pytest.mark.parametrize("transport", ["memory"])
async def test_a_solve_while_everything_loads_hands_out_its_run(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    whole = Workbench.registry

    def opening(self: Workbench) -> Any:
        gate.wait()
        return whole(self)

    monkeypatch.setattr(Workbench, "registry", opening)
    async with connect() as client:
        _, data, failed = await text_and_data(client, "solve_task", {"task": "x", "wait_s": 0.2})
        assert not failed
        assert data["status"] == "working"
        assert data["run_id"] in data["next_step"]
        ended = await text_and_data(client, "cancel_run", {"run_id": data["run_id"]})
        assert ended[1]["run_id"] == data["run_id"]
        gate.set()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("transport", ["memory"])
async def test_a_host_that_never_answers_is_timed_out(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = asyncio.Event()

    async def silent(*_: Any, **__: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    monkeypatch.setenv("TOOLSRV_CALL_SECONDS", "0.1")
    async with connect() as client:
        call = {"id": "Location/world_clock/time_difference"}
        with monkeypatch.context() as patient:  # opening the catalog may take longer than a second
            patient.setattr(Tools, "answer_s", 18.0)
            await client.call_tool("call_api", {**call, "arguments": {"other": 1}})
        monkeypatch.setattr(Caller, "call", silent)
        text, data, failed = await text_and_data(client, "call_api", call)
        assert failed
        assert (data["kind"], data["status"]) == ("timed_out", 0)
        assert "timed_out" in text
        with anyio.fail_after(60):
            await cancelled.wait()


class Thinking:
    """A person who reads a question until ``decide``."""

    def __init__(self) -> None:
        self.decide = anyio.Event()
        self.answers = Person(self._says)

    async def _says(self, _question: str) -> str:
        await self.decide.wait()
        return "accept"


@pytest.mark.usefixtures("short")
async def test_a_call_whose_question_is_open_ends_and_its_repeat_gets_the_response(
    host: Any, ready_dir: Path
) -> None:
    from mcp import Client

    person = Thinking()
    own = host.url.removeprefix("http://")
    given = {"data_dir": str(ready_dir), "own_hosts": own, "call_seconds": 5.0}
    async with AsyncExitStack() as stack:
        bench = Workbench(load(given).settings)
        stack.push_async_callback(bench.aclose)
        client = await stack.enter_async_context(
            Client(
                build_server(bench, warm=False),
                mode="legacy",
                elicitation_callback=person.answers,
            )
        )
        for _ in range(2):
            text, data, failed = await text_and_data(client, "call_api", WRITE)
            assert failed
            assert data["kind"] == "needs_consent"
            assert "repeat call_api" in data["hint"]
            assert data["hint"] in text
        assert host.written == []
        person.decide.set()
        _, data, failed = await text_and_data(client, "call_api", WRITE)
        assert (failed, data["status"]) == (False, 200)
        assert host.written == ['{"text":"alpha"}']
        assert len(person.answers.asked) == 1
        await text_and_data(client, "call_api", WRITE)  # one yes is for one call
        assert len(person.answers.asked) == 2


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_a_solve_whose_question_is_open_hands_out_its_run(
    host: Any, ready_dir: Path, over: str
) -> None:
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    assert _SPEC is not None
    assert _SPEC.loader is not None
    servers = importlib.util.module_from_spec(_SPEC)
    sys.modules["own_conftest"] = servers
    _SPEC.loader.exec_module(servers)
    person = Thinking()
    settings = {
        "TOOLSRV_DATA_DIR": str(ready_dir),
        "TOOLSRV_OWN_HOSTS": host.url.removeprefix("http://"),
    }
    script = str(HERE / "scripted_server.py")
    async with AsyncExitStack() as stack:
        server: Any
        if over == "stdio":
            server = StdioServerParameters(
                command=sys.executable, args=[script, "stdio"], env=settings | servers.SOURCES
            )
        else:
            process = servers.http_server(
                [sys.executable, script, "http"], env={**os.environ, **settings}
            )
            stack.callback(servers.end, process.process)
            headers = {"Authorization": f"Bearer {process.token}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            server = streamable_http_client(process.url, http_client=http)
        client = await stack.enter_async_context(
            Client(server, mode="legacy", elicitation_callback=person.answers)
        )
        await client.call_tool("solve_task", {"task": "warm up", "wait_s": 60})
        task = {"task": TASK.format(word="alpha"), "options": {"category": "Notes"}, "wait_s": 60}
        asked = {"run_id": (await client.call_tool("solve_task", task | {"wait_s": 0}))
                 .structured_content["run_id"]}  # fmt: skip
        data: dict[str, Any] = {}
        for _ in range(60):  # until the question is there
            _, data, _ = await text_and_data(client, "get_run", asked | {"wait_s": 0.5})
            if person.answers.asked:
                break
        text, data, failed = await text_and_data(client, "get_run", asked | {"wait_s": 0.5})
        assert not failed
        assert data["status"] == "working"
        assert "POST 127.0.0.1:" in data["phase"]
        assert "the user has a question of this run open" in data["next_step"]
        assert data["next_step"] in text
        person.decide.set()
        _, data, _ = await text_and_data(client, "get_run", asked | {"wait_s": 15})
        assert (data["status"], data["evidence"][0]["status"]) == ("answered", 200)
        assert host.written == ['{"text":"alpha"}']
        assert len(person.answers.asked) == 1

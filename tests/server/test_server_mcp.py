"""The MCP tools through real clients: in memory, over stdio and over HTTP, in both eras."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolsrv.settings import Settings, load

pytestmark = pytest.mark.anyio
Connect = Callable[[], AbstractAsyncContextManager[Any]]


def text_of(result: Any) -> str:
    assert all(one.type == "resource_link" for one in result.content[1:])
    text: str = result.content[0].text
    return text


async def first_api(client: Any) -> str:
    found = await client.call_tool("search_apis", {"query": "convert a time between time zones"})
    api_id: str = found.structured_content["hits"][0]["id"]
    return api_id


async def test_the_eight_tools_are_listed_with_schemas_and_honest_hints(
    connect: Connect, era: str
) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "search_apis",
            "describe_apis",
            "call_api",
            "solve_task",
            "get_run",
            "cancel_run",
            "show_run",
            "list_runs",
        ]
        for tool in tools.values():
            assert tool.title
            assert tool.description
            assert tool.output_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert "ctx" not in tool.input_schema["properties"]
            assert not {"$ref", "anyOf", "null"} & set(
                re.findall(r"[$\w]+", str(tool.input_schema))
            )
            assert tool.annotations.destructive_hint is (tool.name == "call_api")
            assert tool.annotations.open_world_hint is (tool.name in {"call_api", "solve_task"})
        every = [one.model_dump(by_alias=True, exclude_none=True) for one in tools.values()]
        assert len(json.dumps(every, ensure_ascii=False)) < 11_000  # some 2,460 tokens
        assert tools["call_api"].annotations.read_only_hint is False
        assert tools["cancel_run"].annotations.read_only_hint is False
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else "2026-07-28")
        assert 0 < len((client.instructions or "").encode()) <= 2048


async def test_a_model_searches_describes_and_calls(connect: Connect) -> None:
    async with connect() as client:
        found = await client.call_tool(
            "search_apis", {"query": "convert a time between time zones", "limit": 3}
        )
        assert not found.is_error
        hits = found.structured_content["hits"]
        assert len(hits) == 3
        assert all(hit["id"] in text_of(found) for hit in hits)
        named = await client.call_tool("search_apis", {"query": "colour", "detail": "names"})
        assert named.structured_content["hits"][0]["description"] == ""

        shown = await client.call_tool("describe_apis", {"ids": [hits[0]["id"], "no/such/api"]})
        assert [api["id"] for api in shown.structured_content["apis"]] == [hits[0]["id"]]
        assert shown.structured_content["not_found"][0]["id"] == "no/such/api"

        api = shown.structured_content["apis"][0]
        assert f"Request: GET {api['url']}" in text_of(shown)
        called = await client.call_tool("call_api", {"id": api["id"], "arguments": api["example"]})
        data = called.structured_content
        assert data["source"] == "offline"
        assert data["status"] > 0
        assert called.is_error is not data["ok"]
        assert f"status {data['status']}" in text_of(called)


async def test_what_a_model_can_mend_is_a_tool_error_that_says_how(connect: Connect) -> None:
    async with connect() as client:
        api_id = await first_api(client)
        for tool, arguments, must_say in (
            ("call_api", {"id": "no/such/api", "arguments": {}}, "no/such/api"),
            ("call_api", {"id": api_id, "arguments": {"nope": 1}}, "nope"),
            ("call_api", {"id": api_id, "arguments": {}}, "missing"),
            ("call_api", {"id": api_id, "arguments": [1]}, "arguments"),
            ("describe_apis", {"ids": ["no/such/api"]}, "no/such/api"),
            ("describe_apis", {"ids": []}, "ids"),
            ("search_apis", {"query": "x", "category": "Nonsense"}, "Nonsense"),
            ("search_apis", {"query": "x", "limit": 99}, "limit"),
            ("search_apis", {"query": " \x07 "}, "empty"),
            ("search_apis", {"query": "x", "limitt": 3}, "limitt"),
            ("search_apis", {}, "query"),
            ("solve_task", {"task": "  "}, "empty"),
            ("solve_task", {"task": "long " * 20_000}, "20,000"),
            ("solve_task", {"task": "x", "options": {"category": "Nonsense"}}, "Nonsense"),
            ("solve_task", {"task": "x", "options": {"strategy": "guess"}}, "options.strategy"),
            ("solve_task", {"task": "x", "options": {"strategi": "cot"}}, "options.strategi"),
            ("solve_task", {"task": "x", "strategy": "cot"}, "'options'"),
            ("get_run", {"run_id": "run_nope"}, "run_nope"),
            ("cancel_run", {"run_id": "run_nope"}, "run_nope"),
            ("no_such_tool", {}, "no_such_tool"),
        ):
            result = await client.call_tool(tool, arguments)
            said = text_of(result)
            assert result.is_error, (tool, arguments)
            assert must_say in said, (tool, arguments, said)
            assert "Traceback" not in said
            assert "pydantic" not in said


@pytest.mark.parametrize("transport", ["memory"])
async def test_what_clients_fill_in_for_nothing_is_not_given(connect: Connect) -> None:
    async with connect() as client:
        nothing = {"limit": None, "category": "", "catalog": None, "detail": "", "offset": None}
        found = await client.call_tool("search_apis", {"query": "time zones", **nothing})
        plain = await client.call_tool("search_apis", {"query": "time zones"})
        assert found.structured_content == plain.structured_content
        api_id = found.structured_content["hits"][0]["id"]
        described = await client.call_tool("describe_apis", {"ids": api_id})
        assert described.structured_content["apis"][0]["id"] == api_id
        options = {"strategy": "", "width": None, "category": ""}
        solved = await client.call_tool(
            "solve_task", {"task": "LOOKUP the answer", "options": options, "answer_to": ""}
        )
        assert solved.structured_content["answer"] == "It is 42."


@pytest.mark.parametrize("transport", ["memory"])
async def test_a_refusal_says_null_and_names_what_is_missing_too(connect: Connect) -> None:
    async with connect() as client:
        for tool, arguments, said in (
            ("get_run", {"run_id": None}, "(got null)"),
            ("search_apis", {"query": ["a", None]}, '(got ["a", null])'),
            ("call_api", {"argumentz": {}}, "'id': field required"),
            ("solve_task", {"task": "x", "options": 5}, "'options': input should be a valid dict"),
        ):
            assert said in text_of(await client.call_tool(tool, arguments)), tool


async def test_a_task_is_solved_with_evidence_while_progress_is_told(connect: Connect) -> None:
    told: list[tuple[float, str]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        del total
        told.append((progress, message or ""))

    async with connect() as client:
        result = await client.call_tool(
            "solve_task", {"task": "LOOKUP the answer"}, progress_callback=on_progress
        )
        data = result.structured_content
        assert not result.is_error
        assert data["status"] == "answered"
        assert data["answer"] == "It is 42."
        assert data["evidence"][0]["api_id"]
        assert "It is 42." in text_of(result)
        assert data["evidence"][0]["api_id"] in text_of(result)
        numbers = [number for number, _ in told]
        assert numbers
        assert numbers == sorted(set(numbers))
        again = await client.call_tool("get_run", {"run_id": data["run_id"]})
        assert again.structured_content["answer"] == "It is 42."


async def test_giving_up_is_told_as_such(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("solve_task", {"task": "HOPELESS case"})
        assert result.structured_content["status"] == "gave_up"
        assert result.structured_content["next_step"]


async def test_a_run_outlives_the_wait_and_is_cancelled_by_its_handle(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("solve_task", {"task": "warm up"})
        handed = await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0.3})
        run_id = handed.structured_content["run_id"]
        assert handed.structured_content["status"] in ("working", "queued")
        assert run_id in text_of(handed)

        others = [
            await client.call_tool("solve_task", {"task": "SLOW too", "wait_s": 0})
            for _ in range(Settings().parallel - 1)
        ]
        queued = await client.call_tool("solve_task", {"task": "next", "wait_s": 0})
        assert queued.structured_content["status"] == "queued"
        assert queued.structured_content["queue_position"] >= 1

        still = await client.call_tool("get_run", {"run_id": run_id, "wait_s": 0.2})
        assert still.structured_content["status"] == "working"
        ended = await client.call_tool("cancel_run", {"run_id": run_id})
        assert ended.structured_content["status"] == "cancelled"

        waiting = {"run_id": queued.structured_content["run_id"], "wait_s": 30}
        after = await client.call_tool("get_run", waiting)
        assert after.structured_content["status"] == "answered"
        for other in others:
            await client.call_tool("cancel_run", {"run_id": other.structured_content["run_id"]})


async def test_taking_a_request_back_frees_the_model_at_the_next_token(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("solve_task", {"task": "warm up"})
        with anyio.move_on_after(1.0) as scope:
            await client.call_tool("solve_task", {"task": "SLOW one"})
        assert scope.cancelled_caught
        started = time.monotonic()
        result = await client.call_tool("solve_task", {"task": "quick", "wait_s": 30})
        assert result.structured_content["status"] == "answered"
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("transport", ["memory"], indirect=True)
async def test_a_long_wait_is_never_silent(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolsrv.mcp_server import notifications

    assert notifications.HEARTBEAT_S <= 5
    monkeypatch.setattr(notifications, "HEARTBEAT_S", 0.1)
    told: list[float] = []

    async def on_progress(number: float, total: float | None, message: str | None) -> None:
        del total
        assert message
        told.append(number)

    async with connect() as client:
        await client.call_tool("solve_task", {"task": "warm up"})
        arguments = {"task": "SLOW one", "wait_s": 1.0}
        await client.call_tool("solve_task", arguments, progress_callback=on_progress)
    assert len(told) >= 6
    assert told == sorted(set(told))


async def test_other_requests_are_answered_while_a_caller_is_made(
    ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp import Client

    from toolsrv.mcp_server.server import build_server
    from toolsrv.workbench import Workbench

    bench = Workbench(load({"data_dir": str(ready_dir), "mode": "replay"}).settings)
    making, answered = asyncio.Event(), threading.Event()
    loop, make, in_time = asyncio.get_running_loop(), bench.caller, []

    def slow() -> Any:  # as where another process holds the recordings
        loop.call_soon_threadsafe(making.set)
        in_time.append(answered.wait(10))
        return make()

    monkeypatch.setattr(bench, "caller", slow)
    async with Client(build_server(bench, warm=False)) as client:
        call = {"id": "Location/world_clock/time_difference", "arguments": {}}
        calling = asyncio.ensure_future(client.call_tool("call_api", call))
        await making.wait()
        assert (await client.list_tools()).tools
        answered.set()
        assert (await calling).structured_content["source"] == "recorded"
    assert in_time == [True]
    await bench.aclose()


@pytest.mark.parametrize("transport", ["memory"], indirect=True)
async def test_no_more_runs_are_taken_than_the_limit(connect: Connect) -> None:
    from toolsrv.runs.queue import MAX_LIVE

    async with connect() as client:
        for _ in range(MAX_LIVE):
            await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0})
        refused = await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0})
        assert refused.is_error
        assert "cancel_run" in text_of(refused)

"""Ended runs over MCP: kept on disk, shown as a tree, whole responses as a resource."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio
Connect = Callable[[], AbstractAsyncContextManager[Any]]


async def solved(client: Any) -> tuple[str, int]:
    """Solve a task with one call; return the run and the node of the call."""
    result = await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
    view = result.structured_content
    return view["run_id"], view["evidence"][0]["node"]


async def test_an_ended_run_is_shown_and_its_whole_response_read(connect: Connect) -> None:
    async with connect() as client:
        run_id, node = await solved(client)
        shown = await client.call_tool("show_run", {"run_id": run_id})
        assert not shown.is_error
        text = shown.content[0].text
        assert f"#{node} after #0" in text
        kinds = [one["kind"] for one in shown.structured_content["nodes"]]
        assert kinds[0] == "root"
        assert kinds[-1] == "answer"
        uri = f"toolsrv://runs/{run_id}/responses/{node}"
        assert uri.removesuffix(str(node)) in text
        templates = (await client.list_resource_templates()).resource_templates
        assert {one.name for one in templates} == {
            "response",
            "run",
            "run-page",
            "api",
            "file",
            "call-response",
        }
        whole = (await client.read_resource(uri)).contents[0].text
        head = (await client.read_resource(f"{uri}?limit=5")).contents[0].text
        tail = (await client.read_resource(f"{uri}?offset=5")).contents[0].text
        assert whole
        assert head + tail == whole


async def test_a_run_of_yesterday_is_there_tomorrow(connect: Connect) -> None:
    async with connect() as client:
        run_id, node = await solved(client)
        before = await client.call_tool("get_run", {"run_id": run_id})
        uri = f"toolsrv://runs/{run_id}/responses/{node}"
        response = (await client.read_resource(uri)).contents[0].text
    async with connect() as client:  # another process, or the same where it lives on
        after = await client.call_tool("get_run", {"run_id": run_id})
        assert after.structured_content == before.structured_content
        assert not (await client.call_tool("show_run", {"run_id": run_id})).is_error
        assert (await client.read_resource(uri)).contents[0].text == response


@pytest.mark.parametrize("transport", ["memory"])
async def test_a_handle_must_be_whole(connect: Connect) -> None:
    async with connect() as client:
        run_id, node = await solved(client)
    async with connect() as client:
        for name in (run_id[:-1], "last", "run_", "run_%", ""):
            for tool in ("get_run", "show_run"):
                assert (await client.call_tool(tool, {"run_id": name})).is_error
        with pytest.raises(Exception, match="no finished run"):
            await client.read_resource(f"toolsrv://runs/{run_id[:-1]}/responses/{node}")


@pytest.mark.parametrize("transport", ["memory"])
async def test_what_has_no_response_says_which_nodes_do(connect: Connect) -> None:
    async with connect() as client:
        run_id, node = await solved(client)
        with pytest.raises(Exception, match=f"nodes with a response: {node}"):
            await client.read_resource(f"toolsrv://runs/{run_id}/responses/0")
        slow = await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0})
        live = slow.structured_content["run_id"]
        told = await client.call_tool("show_run", {"run_id": live})
        assert told.is_error
        assert "has not ended" in told.content[0].text
        await client.call_tool("cancel_run", {"run_id": live})


@pytest.mark.parametrize("transport", ["memory"])
async def test_a_store_that_cannot_be_written_loses_no_answer(
    ready_dir: Path, connect: Connect
) -> None:
    from toolsrv.runs.store import RUNS_FILE

    (ready_dir / RUNS_FILE).write_bytes(b"damaged" * 1000)
    async with connect() as client:
        run_id, node = await solved(client)
        assert not (await client.call_tool("show_run", {"run_id": run_id})).is_error
        uri = f"toolsrv://runs/{run_id}/responses/{node}"
        assert (await client.read_resource(uri)).contents[0].text

"""Several whole solves at once by the model that ships, through a real MCP client and server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolsrv.settings import load

pytestmark = pytest.mark.anyio

TASKS = {
    "What is the capital of Peru?": "Lima",
    "Is 7919 a prime number?": "7919",
    "What is 2026 in binary?": "11111101010",
    "How do I call Japan by phone?": "+81",
}
LONG = (
    "What is the capital of Japan, when does the sun rise there tomorrow, "
    "and how do I call the country by phone?"
)


@asynccontextmanager
async def client(folder: Path) -> AsyncIterator[Any]:
    """A client of a server with the model that ships, both in this process."""
    from mcp import Client

    from toolsrv.mcp_server.server import build_server
    from toolsrv.workbench import Workbench

    bench = Workbench(load({"data_dir": str(folder)}).settings)
    try:
        async with Client(build_server(bench, warm=False), mode="auto") as one:
            yield one
    finally:
        await bench.aclose()


async def solve(client: Any, task: str) -> dict[str, Any]:
    """Return what a solve came to; it is waited for as long as it takes."""
    result = await client.call_tool("solve_task", {"task": task, "wait_s": 45})
    found: dict[str, Any] = result.structured_content
    while found["status"] in ("queued", "working"):
        again = await client.call_tool("get_run", {"run_id": found["run_id"], "wait_s": 45})
        found = again.structured_content
    return found


async def all_at_once(client: Any, tasks: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each task came to, all of them solved at once."""
    found: dict[str, dict[str, Any]] = {}

    async def one(task: str) -> None:
        found[task] = await solve(client, task)

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(one, task)
    return found


async def test_four_solves_at_once_say_what_each_says_alone(ready_dir: Path) -> None:
    async with client(ready_dir) as one:
        together = await all_at_once(one, list(TASKS))
        alone = {task: await solve(one, task) for task in TASKS}
    for task, answer in TASKS.items():
        assert together[task]["status"] == "answered"
        assert answer in together[task]["answer"]
        assert together[task]["answer"] == alone[task]["answer"]


async def test_a_cancelled_solve_leaves_the_others_as_they_are(ready_dir: Path) -> None:
    tasks = list(TASKS)[:3]
    async with client(ready_dir) as one:
        await solve(one, tasks[0])  # model and index are loaded
        begun = await one.call_tool("solve_task", {"task": LONG, "wait_s": 0})
        run_id = begun.structured_content["run_id"]
        found: dict[str, dict[str, Any]] = {}

        async def others() -> None:
            found.update(await all_at_once(one, tasks))

        async with anyio.create_task_group() as group:
            group.start_soon(others)
            ended = await one.call_tool("cancel_run", {"run_id": run_id})
        assert ended.structured_content["status"] == "cancelled"
        again = await solve(one, LONG)
    for task in tasks:
        assert found[task]["status"] == "answered"
        assert TASKS[task] in found[task]["answer"]
    assert again["status"] == "answered"
    assert "Tokyo" in again["answer"]
    assert "+81" in again["answer"]

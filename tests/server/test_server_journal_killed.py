"""Processes that are killed, or whose disk is full, in the middle of runs: what others find of these."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.server_processes import HELLO, INITIALIZED, Wire, end, opened, spawn

from toolsrv.runs.journal import JOURNALS, keep_interrupted, open_runs
from toolsrv.runs.records import earlier_runs
from toolsrv.settings import load

HERE = Path(__file__).parent
SCRIPTED = str(HERE / "scripted_server.py")
CALL = 'CALL capital_city_for_country_facts {"country": "Peru"} to name the capital city of Peru'
TASK = f"{CALL}, SLOW"
SOLVE_AND_SAY = """
import asyncio, runpy, sys
from toolsrv.settings import load
from toolsrv.toolbox import AsyncToolbox
bench = runpy.run_path(sys.argv[1])["scripted_bench"](load().settings)
def said(event):
    print(event.kind, flush=True)
async def main():
    async with AsyncToolbox.from_workbench(bench) as toolbox:
        await toolbox.solve(sys.argv[2], on_event=said)
asyncio.run(main())
"""


@pytest.fixture
def start(ready_dir: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a process on the test's data folder."""
    assert ready_dir.is_dir()
    started: list[subprocess.Popen[str]] = []

    def process(*command: str) -> subprocess.Popen[str]:
        started.append(spawn(sys.executable, *command, stderr=subprocess.DEVNULL))
        return started[-1]

    yield process
    for one in started:
        end(one)


@pytest.fixture
def serve(
    start: Callable[..., subprocess.Popen[str]], wire: Wire
) -> Callable[[], subprocess.Popen[str]]:
    """Return a function that starts a scripted server and opens it."""

    return lambda: opened(start(SCRIPTED, "stdio"), wire)


def tool(process: subprocess.Popen[str], wire: Wire, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    answer = wire(process, {"id": 7, "method": "tools/call", "params": params})
    result: dict[str, Any] = answer["result"]
    return result


def until_called(process: subprocess.Popen[str], wire: Wire, task: str = TASK) -> str:
    """Begin a solve and return its run once its first call has come back."""
    view = tool(process, wire, "solve_task", task=task, wait_s=0)["structuredContent"]
    while not view["phase"].startswith("reading"):
        view = tool(process, wire, "get_run", run_id=view["run_id"], wait_s=0)["structuredContent"]
    run_id: str = view["run_id"]
    return run_id


def test_a_run_whose_server_is_killed_is_kept_and_another_goes_on_from_it(
    serve: Callable[[], subprocess.Popen[str]], wire: Wire, run: Callable[..., Result]
) -> None:
    first = serve()
    run_id = until_called(first, wire)
    end(first)
    second = serve()
    listed = tool(second, wire, "list_runs", task="capital city")["structuredContent"]["runs"]
    assert [(one["run_id"], one["status"], one["task"]) for one in listed] == [
        (run_id, "interrupted", TASK)
    ]
    view = tool(second, wire, "get_run", run_id=run_id)["structuredContent"]
    assert view["status"] == "interrupted"
    assert view["evidence"][0]["response"]["capital"] == "Lima"
    assert run_id in view["next_step"]
    shown = tool(second, wire, "show_run", run_id=run_id)["structuredContent"]
    assert [one["kind"] for one in shown["nodes"]][:2] == ["root", "call"]
    node = shown["nodes"][1]["id"]
    whole = tool(second, wire, "show_run", run_id=run_id, node=node)["structuredContent"]["text"]
    assert "Lima" in whole
    again = tool(
        second, wire, "solve_task", task=f"QUICK: {CALL}", wait_s=60, options={"continues": run_id}
    )["structuredContent"]  # fmt: skip
    assert again["status"] == "answered"
    assert again["evidence"][0]["response"]["capital"] == "Lima"
    assert again["usage"]["calls"] == 0  # its call had been made
    assert second.stdin is not None
    second.stdin.close()
    assert second.wait(timeout=60) == 0
    assert not list((load().settings.data_dir / JOURNALS).iterdir())
    told = run("run", "show", run_id)
    assert f"toolsrv solve --continue {run_id}" in told.output
    assert {one["status"] for one in json.loads(run("run", "list", "--json").stdout)} == {
        "interrupted",
        "answered",
    }


def test_a_client_that_asks_for_the_same_task_again_hears_of_the_interrupted_run(
    serve: Callable[[], subprocess.Popen[str]], wire: Wire
) -> None:
    first = serve()
    run_id = until_called(first, wire)
    end(first)
    second = serve()
    view = tool(second, wire, "solve_task", task=TASK, wait_s=0)["structuredContent"]
    assert run_id in " ".join(view["notes"])
    other = tool(second, wire, "solve_task", task=CALL, wait_s=60)["structuredContent"]
    assert other["notes"] == []


def test_a_run_that_waits_in_line_is_not_lost_either(
    serve: Callable[[], subprocess.Popen[str]], wire: Wire
) -> None:
    first = serve()
    runs = [
        tool(first, wire, "solve_task", task=f"SLOW number {number}", wait_s=0)["structuredContent"]
        for number in range(6)
    ]
    assert runs[-1]["status"] == "queued"
    dropped = tool(first, wire, "cancel_run", run_id=runs[-2]["run_id"])["structuredContent"]
    assert dropped["status"] == "cancelled"
    end(first)
    second = serve()
    listed = tool(second, wire, "list_runs")["structuredContent"]["runs"]
    assert {(one["task"], one["status"]) for one in listed} == {
        (f"SLOW number {number}", "interrupted") for number in (0, 1, 2, 3, 5)
    }
    view = tool(second, wire, "get_run", run_id=runs[-1]["run_id"])["structuredContent"]
    assert view["next_step"] == "solve the task again"


def test_what_another_server_works_on_is_left_alone_until_that_is_killed(
    serve: Callable[[], subprocess.Popen[str]], wire: Wire
) -> None:
    first, second = serve(), serve()
    run_id = until_called(first, wire)
    assert tool(second, wire, "list_runs")["structuredContent"]["runs"] == []
    refused = tool(second, wire, "get_run", run_id=run_id)
    assert refused["isError"]
    assert "another server works on it" in refused["content"][0]["text"]
    view = tool(first, wire, "get_run", run_id=run_id, wait_s=0)["structuredContent"]
    assert view["status"] == "working"
    end(first)
    view = tool(second, wire, "get_run", run_id=run_id)["structuredContent"]
    assert view["status"] == "interrupted"


def test_a_solve_of_a_program_that_is_killed_is_kept(
    start: Callable[..., subprocess.Popen[str]], ready_dir: Path
) -> None:
    process = start("-c", SOLVE_AND_SAY, SCRIPTED, TASK)
    assert process.stdout is not None
    while process.stdout.readline() != "observation\n":
        assert process.poll() is None
    end(process)
    with open_runs(ready_dir) as store:
        record = store.get("last")
        (earlier,) = earlier_runs(store.whole, record.id)
    assert (record.status, record.task) == ("interrupted", TASK)
    assert earlier.interrupted
    assert earlier.calls[0].response["capital"] == "Lima"


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_server_on_a_full_disk_answers_and_says_once_that_a_run_could_be_lost(
    ready_dir: Path,
) -> None:
    assert ready_dir.is_dir()
    call = {"name": "solve_task", "arguments": {"task": CALL, "wait_s": 100}}
    lines = (HELLO, INITIALIZED, {"id": 9, "method": "tools/call", "params": call})
    done = subprocess.run(
        [sys.executable, SCRIPTED, "stdio"],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in lines),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
        preexec_fn=_no_room,
    )
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines()) if "id" in one}
    assert answers[9]["result"]["structuredContent"]["status"] == "answered"
    assert done.stderr.count("would be lost") == 1
    assert "Traceback" not in done.stderr
    assert keep_interrupted(ready_dir) == 0  # nothing of it could be written
    assert list((ready_dir / JOURNALS).iterdir()) == []

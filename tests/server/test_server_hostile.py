"""What a server lives with: another on its folder, jumping clocks, huge requests, hostile pages."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server_processes import HELLO

from toolsrv.mcp_server.run_pages import run_lines
from toolsrv.runs.records import RunRecord
from toolsrv.runs.store import RunStore, keep_run

HERE = Path(__file__).parent
SCRIPTED = str(HERE / "scripted_server.py")
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
LARGE = "a large request " * 330_000
"""More than 5 MB."""
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24


@asynccontextmanager
async def client(folder: Path) -> Any:
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(
        command=sys.executable,
        args=[SCRIPTED, "stdio"],
        env={"TOOLSRV_DATA_DIR": str(folder), **SOURCES},
    )
    async with Client(parameters) as one:
        yield one


async def called(one: Any, name: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await one.call_tool(name, arguments)).structured_content
    return found


@pytest.mark.anyio
async def test_two_servers_on_one_folder_both_work_and_know_of_each_others_runs(
    ready_dir: Path,
) -> None:
    import anyio

    async with client(ready_dir) as one, client(ready_dir) as other:
        ended: list[dict[str, Any]] = []

        async def listed(who: Any) -> set[str]:
            return {run["run_id"] for run in (await called(who, "list_runs"))["runs"]}

        async def work(who: Any, name: str) -> None:
            for number in range(3):
                assert (await called(who, "search_apis", query="sunrise"))["hits"]
                task = f"LOOKUP for {name} {number}"
                ended.append(await called(who, "solve_task", task=task, wait_s=120))

        async with anyio.create_task_group() as both:
            both.start_soon(work, one, "one")
            both.start_soon(work, other, "other")
        ids = {run["run_id"] for run in ended}
        for who in (one, other):
            for _ in range(200):  # a run is kept just after its answer is given
                if ids <= await listed(who):
                    break
                await anyio.sleep(0.05)
            assert ids <= await listed(who)
            for run_id in ids:
                assert (await called(who, "get_run", run_id=run_id))["status"] == "answered"
    assert {run["status"] for run in ended} == {"answered"}


def test_runs_are_listed_and_forgotten_in_their_order_whatever_the_clock_said(
    data_dir: Path,
) -> None:
    now = datetime.now(UTC)
    for name, moment in (
        ("run_a", now + timedelta(days=400)),  # the clock was ahead, and was set right
        ("run_b", now),
        ("run_c", now - timedelta(days=4000)),  # or fell back to the year of its battery
    ):
        record = RunRecord(id=name, task="the same", status="cancelled", ended=moment, error="x")
        assert not keep_run(data_dir, record, 2)
    with RunStore.open_to_read(data_dir) as store:
        rows = store.recent(10)
    assert [line.run_id for line in run_lines([], rows, "", 10)] == ["run_c", "run_b"]


@pytest.mark.anyio
async def test_a_run_that_a_clock_jumps_in_ends_in_its_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from toolsrv.runs.queue import Runs
    from toolsrv_runtime.solve import SolveOptions

    async def solve(*_: Any) -> Any:
        monkeypatch.setattr(time, "time", lambda: 0.0)
        raise ValueError("done")

    runs = Runs(solve)
    run = runs.start("a task", SolveOptions())
    assert await run.wait(20)
    assert runs.get(run.id) is run  # not forgotten as one of 1970
    await runs.close()


@pytest.mark.anyio
async def test_a_request_of_5_mb_on_stdio_is_refused_and_the_next_is_answered(
    ready_dir: Path,
) -> None:
    async with client(ready_dir) as one:
        for name, arguments in (
            ("search_apis", {"query": LARGE}),
            ("solve_task", {"task": LARGE}),
            ("get_run", {"run_id": LARGE}),
            ("call_api", {"id": "Data/country_facts/capital_city", "arguments": {"x": LARGE}}),
        ):
            told = await one.call_tool(name, arguments)
            assert told.is_error, name
            assert len(json.dumps(told.structured_content)) < 20_000
        assert (await called(one, "list_runs"))["runs"] == []


@pytest.fixture
def served(start_http: Callable[[dict[str, str]], Any], data_dir: Path) -> Any:
    """A server on HTTP."""
    return start_http({"TOOLSRV_DATA_DIR": str(data_dir)})


def headers(server: Any, **further: str) -> dict[str, str]:
    bearer = {"Authorization": f"Bearer {server.token}"}
    return {"Accept": "application/json, text/event-stream", **bearer, **further}


def test_a_body_of_5_mb_is_refused_and_the_server_goes_on(served: Any) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": LARGE}}
    large = httpx.post(served.url, json=call, headers=headers(served), timeout=60)
    assert large.status_code == 413
    stranger = httpx.post(served.url, json=call, timeout=60)
    assert stranger.status_code == 401  # before its body is looked at
    assert httpx.post(served.url, json=HELLO, headers=headers(served)).status_code == 200


def test_a_page_that_rebinds_its_name_to_this_machine_gets_nothing(served: Any) -> None:
    port = served.url.split(":")[2].split("/")[0]
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", ""):
        for path in ("/mcp", "/health"):
            url = served.url.replace("/mcp", path)
            told = headers(served, Host=host, Origin=f"http://{host}")
            method = "POST" if path == "/mcp" else "GET"
            answer = httpx.request(method, url, json=HELLO, headers=told)
            assert answer.status_code in {400, 403, 421}, (host, path)
            assert "serverInfo" not in answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_page_that_posts_without_asking_starts_nothing_and_reads_nothing(
    served: Any, kind: str
) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "solve_task", "arguments": {"task": "SLOW one", "wait_s": 0}},
    }
    told = {"Origin": "https://evil.example", **({"Content-Type": kind} if kind else {})}
    blind = httpx.post(served.url, content=json.dumps(call), headers=told)
    assert blind.status_code in {401, 403}
    knowing = httpx.post(served.url, content=json.dumps(call), headers=headers(served, **told))
    assert knowing.status_code in {400, 403, 415}  # even with the token
    asked = httpx.options(
        served.url,
        headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    )
    for answer in (blind, knowing, asked):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert not (Path(os.environ["TOOLSRV_DATA_DIR"]) / "runs.sqlite3").exists()


def test_clients_that_vanish_in_the_middle_of_a_request_leave_the_server_well(served: Any) -> None:
    port = int(served.url.split(":")[2].split("/")[0])
    body = json.dumps(HELLO).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {served.token}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    whole = head + body
    for sent in (0, 10, len(head) - 1, len(head), len(head) + 7, len(whole)):
        with socket.create_connection(("127.0.0.1", port)) as one:
            one.sendall(whole[:sent])
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    assert httpx.get(served.url.replace("/mcp", "/health")).status_code == 200
    assert httpx.post(served.url, json=HELLO, headers=headers(served)).status_code == 200


def test_white_space_around_a_headers_value_is_none_of_it(served: Any) -> None:
    port = int(served.url.split(":")[2].split("/")[0])
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "padded", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {
        "jsonrpc": "2.0",
        "id": 5,
        "method": "tools/call",
        "params": {"name": "list_runs", "arguments": {}, "_meta": meta},
    }
    body = json.dumps(call)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {served.token}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: \t tools/call \r\n"
        f"Mcp-Name:   list_runs  \r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall((head + body).encode())
        with one.makefile("rb") as answer:
            told = answer.read().decode()
    assert told.startswith("HTTP/1.1 200")
    assert '"runs":[]' in told.replace(" ", "")


CONVERSATION = [
    HELLO,
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "search_apis", "arguments": {"query": "sunrise"}},
    },
    {
        "jsonrpc": "2.0",
        "id": 4,
        "method": "tools/call",
        "params": {"name": "solve_task", "arguments": {"task": "SLOW one"}},
    },
]


@pytest.fixture
def vanished(ready_dir: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Servers whose clients wrote some lines, the last in part, and were killed."""
    assert ready_dir.is_dir()
    servers = []
    for count in range(len(CONVERSATION) + 1):
        process = subprocess.Popen(
            [sys.executable, SCRIPTED, "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        lines = [json.dumps(one).encode() + b"\n" for one in CONVERSATION[:count]]
        following = json.dumps(CONVERSATION[count % len(CONVERSATION)]).encode()
        assert process.stdin is not None
        process.stdin.write(b"".join(lines) + following[:20])
        process.stdin.flush()
        servers.append(process)
    yield servers
    for process in servers:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def test_a_client_killed_at_any_message_ends_its_server_and_harms_no_folder(
    vanished: list[subprocess.Popen[bytes]], ready_dir: Path
) -> None:
    for count, process in enumerate(vanished):
        assert process.stdin is not None
        assert process.stdout is not None
        if count % 2:  # every other client dies while its server starts
            assert process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
    for process in vanished:
        assert process.wait(timeout=120) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", "search", "sunrise", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(done.stdout)["hits"]
    assert ready_dir.is_dir()


def _give_up_overriding() -> None:
    """Let permission bits hold for root too, in a process that is about to start."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.fixture
def read_only(ready_dir: Path) -> Iterator[Path]:
    """A built data folder in which nothing can be written."""
    paths = [ready_dir, *ready_dir.rglob("*")]
    modes = [(path, path.stat().st_mode) for path in paths]
    for path in paths:
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield ready_dir
    for path, mode in modes:
        if path.exists():
            path.chmod(mode)


@pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")
def test_a_folder_that_cannot_be_written_still_serves_searches_calls_and_solves(
    read_only: Path,
) -> None:
    before = sorted(str(path) for path in read_only.rglob("*"))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_apis", {"query": "capital of a country"}),
        ("call_api", {"id": "Data/country_facts/capital_city", "arguments": {"country": "Peru"}}),
        ("solve_task", {"task": "LOOKUP the answer", "wait_s": 100}),
        ("list_runs", {}),
    ]
    lines = CONVERSATION[:3] + [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(calls, 10)
    ]
    done = subprocess.run(
        [sys.executable, SCRIPTED, "stdio"],
        input="".join(json.dumps(one) + "\n" for one in lines),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
        preexec_fn=_give_up_overriding,
    )
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines()) if "id" in one}
    told = [answers[number]["result"] for number in range(10, 14)]
    assert [one.get("isError", False) for one in told] == [False] * 4, told
    assert told[0]["structuredContent"]["hits"]
    assert "Lima" in json.dumps(told[1]["structuredContent"])
    assert told[2]["structuredContent"]["status"] == "answered"
    assert "Traceback" not in done.stderr
    assert sorted(str(path) for path in read_only.rglob("*")) == before

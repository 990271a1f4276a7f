"""``toolsrv serve`` on stdio as a process: its start, its streams, its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server_processes import HELLO, INITIALIZED, Wire, end, opened, spawn

from toolsrv.runs.store import RUNS_FILE, RunStore

LIST = {"id": 2, "method": "tools/list"}
SLOW = {
    "id": 3,
    "method": "tools/call",
    "params": {
        "name": "solve_task",
        "arguments": {"task": "SLOW one"},
        "_meta": {"progressToken": 3},
    },
}
SCRIPTED = str(Path(__file__).parent / "scripted_server.py")


@pytest.fixture
def serving(ready_dir: Path, wire: Wire) -> Iterator[subprocess.Popen[str]]:
    """A scripted server after its handshake."""
    assert ready_dir.is_dir()
    process = opened(spawn(sys.executable, SCRIPTED, "stdio"), wire)
    yield process
    end(process)


def test_nothing_heavy_is_loaded_and_nothing_written_before_the_tools_are_listed(
    data_dir: Path, wire: Wire
) -> None:
    code = (
        "import sys, threading\n"
        "from toolsrv.mcp_server import stdio\n"
        "stdio._end = lambda code: (print([m for m in ('chromadb', 'onnxruntime', 'llama_cpp',"
        " 'numpy', 'httpx') if m in sys.modules], file=sys.stderr), sys.exit(0))\n"
        "sys.argv = ['toolsrv', 'serve', '--no-warm']\n"
        "from toolsrv.cli.main import main\n"
        "main()\n"
    )
    process = opened(spawn(sys.executable, "-c", code), wire)
    assert len(wire(process, LIST)["result"]["tools"]) == 8
    assert not data_dir.exists()
    out, err = process.communicate(timeout=20)
    assert out == ""
    assert "[]" in err.splitlines()


def test_the_warm_up_loads_the_catalog_after_the_tools_are_listed(
    ready_dir: Path, wire: Wire
) -> None:
    assert ready_dir.is_dir()
    process = opened(spawn(sys.executable, "-m", "toolsrv", "serve"), wire)
    wire(process, LIST)
    call = {"name": "search_apis", "arguments": {"query": "sunrise"}}
    answer = wire(process, {"id": 4, "method": "tools/call", "params": call})
    assert not answer["result"].get("isError", False)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_a_client_that_goes_away_ends_the_process_and_its_run_at_once(
    serving: subprocess.Popen[str], wire: Wire
) -> None:
    wire(serving, LIST)
    assert serving.stdin is not None
    serving.stdin.write(json.dumps({"jsonrpc": "2.0", **SLOW}) + "\n")
    serving.stdin.flush()
    assert serving.stdout is not None
    assert json.loads(serving.stdout.readline())["method"] == "notifications/progress"
    started = time.monotonic()
    serving.stdin.close()
    serving.stdout.close()
    assert serving.wait(timeout=50) == 0
    assert time.monotonic() - started < 30  # its reply takes a minute
    assert serving.stderr is not None
    assert "Traceback" not in serving.stderr.read()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("search_apis", {"query": "sunrise"}, "hits"),
        ("solve_task", {"task": "LOOKUP the answer", "wait_s": 0}, "answer"),
    ],
)
def test_requests_of_a_pipe_that_ends_at_once_are_answered_and_a_solve_to_its_end(
    ready_dir: Path, name: str, arguments: dict[str, Any], said: str
) -> None:
    assert ready_dir.is_dir()
    call = {"id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    lines = (json.dumps({"jsonrpc": "2.0", **one}) for one in (HELLO, INITIALIZED, call))
    process = spawn(sys.executable, SCRIPTED, "stdio")
    out, err = process.communicate("".join(f"{one}\n" for one in lines), timeout=60)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines()) if "id" in one}
    assert process.returncode == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "toolsrv"
    assert answers[2]["result"]["structuredContent"][said]
    assert "Traceback" not in err


def test_a_request_that_was_taken_back_is_not_waited_for(
    serving: subprocess.Popen[str], wire: Wire
) -> None:
    wire(serving, LIST)
    assert serving.stdin is not None
    back = {"method": "notifications/cancelled", "params": {"requestId": SLOW["id"]}}
    for one in (SLOW, back):
        serving.stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
    serving.stdin.close()
    assert serving.wait(timeout=30) == 0


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_run_that_was_answered_is_kept_although_the_client_leaves_at_once(
    serving: subprocess.Popen[str], wire: Wire, data_dir: Path, number: signal.Signals | None
) -> None:
    with RunStore.open(data_dir):
        pass
    other = sqlite3.connect(data_dir / RUNS_FILE)
    other.execute("BEGIN IMMEDIATE")  # so that keeping takes until the test lets it
    call = {"name": "solve_task", "arguments": {"task": "LOOKUP the answer", "wait_s": 60}}
    answer = wire(serving, {"id": 4, "method": "tools/call", "params": call})
    view = answer["result"]["structuredContent"]
    assert view["status"] == "answered"
    assert serving.stdin is not None
    if number is None:
        serving.stdin.close()
    else:
        serving.send_signal(number)
    with contextlib.suppress(subprocess.TimeoutExpired):
        serving.wait(timeout=0.5)
    other.close()
    assert serving.wait(timeout=20) == (128 + number if number else 0)
    with RunStore.open(data_dir) as store:
        assert store.get(view["run_id"], whole=True).task == "LOOKUP the answer"


def test_a_client_that_no_longer_reads_ends_the_process(
    serving: subprocess.Popen[str], wire: Wire
) -> None:
    wire(serving, LIST)
    assert serving.stdin is not None
    assert serving.stdout is not None
    serving.stdout.close()
    for number in range(10, 30):
        try:
            serving.stdin.write(json.dumps({"jsonrpc": "2.0", **LIST, "id": number}) + "\n")
            serving.stdin.flush()
        except BrokenPipeError:
            break
    assert serving.wait(timeout=10) == 0
    assert serving.stderr is not None
    assert "Traceback" not in serving.stderr.read()


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_run_that_still_works_is_kept_as_cancelled(
    serving: subprocess.Popen[str], wire: Wire, data_dir: Path, number: signal.Signals | None
) -> None:
    call = {"name": "solve_task", "arguments": {"task": "SLOW one", "wait_s": 0}}
    answer = wire(serving, {"id": 4, "method": "tools/call", "params": call})
    run_id = answer["result"]["structuredContent"]["run_id"]
    ask = {"name": "get_run", "arguments": {"run_id": run_id, "wait_s": 0}}
    while not answer["result"]["structuredContent"]["phase"].startswith("thinking"):
        answer = wire(serving, {"id": 5, "method": "tools/call", "params": ask})
    assert serving.stdin is not None
    if number is None:
        serving.stdin.close()
    else:
        serving.send_signal(number)
    assert serving.wait(timeout=20) == (128 + number if number else 0)
    with RunStore.open(data_dir) as store:
        assert store.get(run_id, whole=True).status == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_at_once(
    serving: subprocess.Popen[str], wire: Wire, number: signal.Signals
) -> None:
    wire(serving, LIST)
    serving.send_signal(number)
    assert serving.wait(timeout=30) == 128 + number


def test_a_second_signal_waits_for_nothing(
    serving: subprocess.Popen[str], wire: Wire, data_dir: Path
) -> None:
    with RunStore.open(data_dir):
        pass
    other = sqlite3.connect(data_dir / RUNS_FILE)
    other.execute("BEGIN IMMEDIATE")
    call = {"name": "solve_task", "arguments": {"task": "LOOKUP the answer", "wait_s": 60}}
    wire(serving, {"id": 4, "method": "tools/call", "params": call})
    serving.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        serving.wait(timeout=0.5)
    started = time.monotonic()
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(timeout=10) == 128 + signal.SIGTERM
    assert time.monotonic() - started < 2.0
    other.close()


def test_lines_that_are_no_messages_do_not_end_it(
    serving: subprocess.Popen[str], wire: Wire
) -> None:
    assert serving.stdin is not None
    serving.stdin.write('not json\n{"jsonrpc": "2.0"}\n[]\n\x00\x1b\n')
    serving.stdin.flush()
    assert wire(serving, LIST)["id"] == 2


def test_what_libraries_print_does_not_reach_the_protocol(wire: Wire) -> None:
    code = (
        "import sys, os\n"
        "from toolsrv.workbench import Workbench\n"
        "def noisy(self, api_id):\n"
        "    print('noise'); os.system('echo noise'); os.write(1, b'noise\\n')\n"
        "    raise RuntimeError('boom')\n"
        "Workbench.api = noisy\n"
        "sys.argv = ['toolsrv', 'serve', '--no-warm']\n"
        "from toolsrv.cli.main import main\n"
        "main()\n"
    )
    process = opened(spawn(sys.executable, "-c", code), wire)
    call = {"name": "call_api", "arguments": {"id": "x/y/z", "arguments": {}}}
    answer = wire(process, {"id": 5, "method": "tools/call", "params": call})
    said = answer["result"]["content"][0]["text"]
    assert answer["result"]["isError"]
    assert "RuntimeError" in said
    assert "boom" not in said
    assert (Path(os.environ["TOOLSRV_DATA_DIR"]) / "faults").is_dir()
    out, _ = process.communicate(timeout=20)
    assert out == ""

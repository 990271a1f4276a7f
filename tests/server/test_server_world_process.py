"""``toolsrv world serve`` as a process: how it starts, how it ends, and what a crash leaves."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.recordings import call_key
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore

API = "Location/world_clock/time_difference"
CITIES = ("London", "Sydney", "Tokyo", "Lima", "Oslo", "Cairo", "Paris", "Delhi", "Rome", "Berlin")
ARGUMENTS = [
    {"from_city": one, "to_city": other, "date": "2026-01-05"}
    for one in CITIES
    for other in CITIES
    if one != other
]


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """Yield address, the second line of stderr, and the process, which is killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "toolsrv", "world", "serve", "--port", "0", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert found, first
        yield found[0], process.stderr.readline().strip(), process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(where: str, arguments: dict[str, str], key: str = "") -> dict[str, Any]:
    sent = {
        "category": "Location",
        "tool_name": "world_clock",
        "api_name": "time_difference",
        "tool_input": arguments,
        "strip": "truncate",
        "toolbench_key": key,
    }
    said = httpx.post(f"{where}/rapidapi", json=sent, timeout=120)
    found: dict[str, Any] = said.json()
    return found | {"status": said.status_code}


def ended(process: subprocess.Popen[str], number: int) -> str:
    """Send a signal and return what stderr still says; ends in a second or two when idle."""
    started = time.monotonic()
    process.send_signal(number)
    assert process.wait(timeout=100) == 0
    assert time.monotonic() - started < 30  # two; much more on a machine that is overloaded
    assert process.stderr is not None
    return process.stderr.read()


def test_it_starts_with_a_token_and_ends_on_sigterm_beside_silent_clients() -> None:
    with serving("--mode", "offline") as (where, line, process):
        token = line.removeprefix("Authorization: Bearer ")
        assert len(token) >= 40
        assert ask(where, ARGUMENTS[0])["status"] == 401
        assert ask(where, ARGUMENTS[0], "a-canary-that-is-no-token")["status"] == 401
        assert ask(where, ARGUMENTS[0], token)["error"] == ""
        with socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2]))):
            said = ended(process, signal.SIGTERM)
    assert "canary" not in said
    assert token not in said
    assert "Traceback" not in said


def test_without_a_token_it_says_so_and_ends_on_an_interrupt() -> None:
    with serving("--mode", "offline", "--no-token") as (where, line, process):
        assert "without a token" in line
        assert ask(where, ARGUMENTS[0])["error"] == ""
        assert "Traceback" not in ended(process, signal.SIGINT)


def test_a_crash_in_the_middle_of_writes_loses_nothing_that_was_answered(data_dir: Path) -> None:
    answered: list[dict[str, str]] = []

    with serving("--mode", "record", "--no-token") as (where, _, process):

        def keep(arguments: dict[str, str]) -> None:
            try:
                if ask(where, arguments)["error"] == "":
                    answered.append(arguments)
            except httpx.HTTPError:
                return
            if len(answered) == 30:
                process.kill()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(keep, ARGUMENTS))
    assert 30 <= len(answered) < len(ARGUMENTS)
    api = next(one for one in load_offline_catalog().apis if one.id == API)
    with RecordingStore.open(data_dir / RECORDINGS_FILE) as store:
        found = [store.find(call_key(api, bind(api, one))) for one in answered]
        assert all(one is not None and one.kind == "ok" for one in found)
        assert all(one.response for one in store.entries())

    with serving("--mode", "replay", "--no-token") as (where, _, _process):
        assert ask(where, answered[0])["error"] == ""
        missed = ask(where, {"from_city": "Vienna", "to_city": "Prague"})
        assert missed["status"] == 200
        assert "recorded" in missed["error"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "0.0.0.0"], 2, "loopback"),
        (["--mode", "sometimes"], 2, "mode"),
        (["--port", "70000"], 2, "port"),
    ],
)
def test_what_cannot_be_served_is_told(
    run: Callable[..., Result], words: list[str], code: int, said: str
) -> None:
    result = run("world", "serve", *words)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_weak_token_and_a_taken_port_are_told(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = run("world", "serve", "--port", str(holder.getsockname()[1]))
    assert (taken.exit_code, "--port" in taken.stderr) == (1, True)
    monkeypatch.setenv("TOOLSRV_TOKEN", "weak")
    weak = run("world", "serve")
    assert (weak.exit_code, "TOOLSRV_TOKEN" in weak.stderr) == (2, True)

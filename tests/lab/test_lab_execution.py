"""Tasks in this process and on a Ray cluster: what fails, what is lost, what goes on."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from toolsrv.cli.main import cli
from toolsrv_lab.execution import LocalPool, TaskFailedError
from toolsrv_registry.errors import DataError

RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not RAY, reason="ray is not installed (extra ray)")
PATIENCE_S = 420.0


# ---------------------------------------------------------------- in this process
def test_a_pool_makes_so_many_at_a_time_and_keeps_each_once() -> None:
    under_way: list[int] = []
    most = 0
    kept: dict[int, int] = {}

    async def make(task: int) -> int:
        nonlocal most
        under_way.append(task)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(task)
        return task * task

    async def keep(task: int, made: int) -> None:
        assert task not in kept
        kept[task] = made

    asyncio.run(LocalPool(make, 3).run(range(10), keep))
    assert kept == {task: task * task for task in range(10)}
    assert most == 3


def test_after_a_failure_no_task_is_begun_and_the_failed_one_is_named() -> None:
    begun: list[int] = []

    async def make(task: int) -> int:
        begun.append(task)
        if task == 1:
            raise DataError("no luck", hint="try again")
        return task

    async def keep(_task: int, _made: int) -> None:
        await asyncio.sleep(0)

    with pytest.raises(TaskFailedError) as failed:
        asyncio.run(LocalPool(make, 1).run(range(5), keep))
    assert failed.value.task == 1
    assert failed.value.error.hint == "try again"
    assert begun == [0, 1]


# ---------------------------------------------------------------- without a cluster
@pytest.mark.skipif(RAY, reason="ray is installed")
def test_without_ray_the_command_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    words = ["lab", "annotate", "--errands", "--out", str(tmp_path / "out"), "--ray", "auto"]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 2
    assert "toolsrv[ray]" in shown.output
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- on a cluster
def environment(data: Path) -> dict[str, str]:
    """Return the environment of a cluster's processes: they import what this one imports."""
    paths = [one for one in sys.path if one and Path(one).is_dir()]
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
    return os.environ | quiet | {
        "PYTHONPATH": os.pathsep.join(paths), "TOOLSRV_DATA_DIR": str(data),
    }  # fmt: skip


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    try:
        every = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for one in every:
        try:
            one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    process.wait(60)


@contextmanager
def node(env: dict[str, str], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node of one CPU."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1",
               "--object-store-memory=80000000", "--node-ip-address=127.0.0.1", *words]  # fmt: skip
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip
    try:
        yield process
    finally:
        end(process)


def until(what: str, process: subprocess.Popen[bytes], done: object) -> None:
    """Wait until ``done`` says so."""
    assert callable(done)
    begun = time.monotonic()
    while not done():
        assert time.monotonic() < begun + PATIENCE_S, f"waited in vain for {what}"
        if process.poll() is not None:
            said = process.stderr.read() if process.stderr else b""
            pytest.fail(f"it ended before {what}: {said.decode(errors='replace')}")
        time.sleep(0.05)


def actors(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the actors among the processes of a node."""
    found = []
    for one in psutil.Process(process.pid).children(recursive=True):
        try:
            if "ray::_Actor" in " ".join(one.cmdline()):
                found.append(one)
        except psutil.Error:
            continue
    return found


def reachable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def answers(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.glob("*.json")}


def annotate(env: dict[str, str], out: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "toolsrv", "lab", "annotate", "--errands", "--count", "80",
               "--seed", "3", "--out", str(out), "--json", *words]  # fmt: skip
    return subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@needs_ray
def test_a_worker_that_is_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path / "data")
    alone = annotate(env, tmp_path / "alone", ["--workers", "2"])
    _, said = alone.communicate(timeout=600)
    assert alone.returncode == 0, said.decode()
    with ExitStack() as stack:
        scratch = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # names of sockets are short
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        port = free_port()
        address = f"127.0.0.1:{port}"
        head = stack.enter_context(
            node(env, "--head", f"--port={port}", f"--temp-dir={scratch}",
                 "--include-dashboard=false")
        )  # fmt: skip
        until("the head", head, lambda: reachable(port))
        other = stack.enter_context(node(env, f"--address={address}"))
        out = tmp_path / "cluster"
        run = annotate(env, out, ["--ray", address, "--workers", "2"])
        stack.callback(end, run)
        until("actors on both nodes", run, lambda: actors(head) and actors(other))
        until("answers", run, lambda: len(answers(out)) >= 5)
        actors(other)[0].kill()
        told, said = run.communicate(timeout=600)
        assert run.returncode == 0, said.decode()
        report = json.loads(told)
        assert report["solved"] + report["gave_up"] + report["failed"] == 80
        assert answers(out) == answers(tmp_path / "alone")


@needs_ray
def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    env = environment(tmp_path / "data")
    run = annotate(env, tmp_path / "out", ["--ray", f"127.0.0.1:{free_port()}"])
    _, said = run.communicate(timeout=600)
    assert run.returncode == 2, said.decode()
    assert b"the Ray cluster" in said
    assert b"Traceback" not in said

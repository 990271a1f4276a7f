"""Tasks in this process and on a Ray cluster: what fails, what is lost, what goes on."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from toolsrv.cli.laboratory import scale
from toolsrv.cli.main import cli
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_lab.execution import LocalPool, Make, Slots, TaskFailedError, stateless
from toolsrv_registry.errors import DataError

_SERVER = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, GIVE_UP = _SERVER["ModelServer"], _SERVER["GIVE_UP"]
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

    asyncio.run(LocalPool(stateless(make), 3).run(range(10), keep))
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
        asyncio.run(LocalPool(stateless(make), 1).run(range(5), keep))
    assert failed.value.task == 1
    assert failed.value.error.hint == "try again"
    assert begun == [0, 1]


def test_a_backend_is_opened_once_with_a_slot_for_each_worker_and_closed_after_a_failure() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def slot() -> AsyncIterator[Make[int, int]]:
        async def make(task: int) -> int:
            await asyncio.sleep(0)
            if task == 3:
                raise DataError("no luck")
            return task

        events.append("slot")
        yield make
        events.append("slot closed")

    @asynccontextmanager
    async def backend() -> AsyncIterator[Slots[int, int]]:
        events.append("open")
        try:
            yield slot
        finally:
            events.append("closed")

    async def keep(_task: int, _made: int) -> None:
        await asyncio.sleep(0)

    asyncio.run(LocalPool(backend, 2).run([], keep))
    assert events == []
    asyncio.run(LocalPool(backend, 4).run([1, 2], keep))
    assert events == ["open", "slot", "slot", "slot closed", "slot closed", "closed"]
    with pytest.raises(TaskFailedError):
        asyncio.run(LocalPool(backend, 2).run(range(6), keep))
    assert events[-1] == "closed"


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


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "models", "--tasks", "FILE"),
        ("eval", "solve", "--tasks", "FILE"),
        ("instructions", "--engine", "FILE", "--out", "new.jsonl"),
    ],
    ids=" ".join,
)
def test_a_model_of_this_machine_takes_one_task_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    file = write_tasks(tmp_path / "tasks.jsonl")
    given = [str(file) if one == "FILE" else one for one in words]
    shown = CliRunner().invoke(cli, ["lab", *given, "--workers", "2"])
    assert shown.exit_code == 2, shown.output
    assert "one task at a time" in shown.stderr
    assert "--ray" in shown.stderr


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("models", "--tasks", "FILE", "--strategies", "dfsdt,react", "--limit", "6"), 12),
        (("llift", "--elements", "simple", "--runs", "1", "--limit", "6"), 6),
    ],
    ids=["models", "llift"],
)
def test_servers_take_several_tasks_of_an_evaluation_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], count: int
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    file = write_tasks(tmp_path / "tasks.jsonl")
    given = [str(file) if one == "FILE" else one for one in words]
    with ModelServer([GIVE_UP]) as server:
        given += ["--models", server.url, "--out", str(tmp_path / "out"), "--json"]
        shown = CliRunner().invoke(cli, ["lab", "eval", *given, "--workers", "4"])
        assert shown.exit_code == 0, shown.output
        asked = len(server.requests)
        again = CliRunner().invoke(cli, ["lab", "eval", *given])
        assert json.loads(again.stdout) == json.loads(shown.stdout)
        assert len(server.requests) == asked >= count
    lines = (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()
    tasks = [json.loads(line) for line in lines[1:]]
    assert len({(one["strategy"], one["task"]) for one in tasks}) == len(tasks) == count


# ---------------------------------------------------------------- on a cluster
def environment(data: Path) -> dict[str, str]:
    """Return the environment of a cluster's processes: they import what this one imports."""
    paths = [one for one in sys.path if one and Path(one).is_dir()]
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1",
             "RAY_worker_niceness": "0"}  # fmt: skip
    return os.environ | quiet | {
        "PYTHONPATH": os.pathsep.join(paths), "TOOLSRV_DATA_DIR": str(data),
    }  # fmt: skip


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        for one in (*root.children(recursive=True), root):
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
    process.wait(60)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


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


def kill_working(process: subprocess.Popen[bytes]) -> bool:
    """Kill an actor of a node that is at a task; return whether there was one."""
    for one in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if "ray::_Actor.run" in " ".join(one.cmdline()):
                one.kill()
                return True
    return False


def reachable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def answers(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.glob("*.json")}


def lab(env: dict[str, str], *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "toolsrv", "lab", *map(str, words)]
    return subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ended(run: subprocess.Popen[bytes], code: int = 0) -> tuple[str, str]:
    """Wait for a command; return what it printed on stdout and stderr."""
    shown, said = run.communicate(timeout=600)
    assert run.returncode == code, said.decode()
    assert b"Traceback" not in said
    return shown.decode(), said.decode()


def write_tasks(path: Path) -> Path:
    """Write tasks over APIs that answer the same every time."""
    places = ("Peru", "Kenya", "Norway", "Japan", "Chile", "Spain", "Ghana", "Nepal", "Cuba",
              "Iceland", "Egypt", "Latvia", "Malta", "Samoa", "Togo", "Yemen")  # fmt: skip
    facts = ("capital_city", "national_currency", "continent", "official_languages",
             "country_codes", "country_flag", "neighbouring_countries")  # fmt: skip
    tasks = [
        {
            "id": f"{place}-{fact}",
            "kind": "single",
            "task": f"What is the {fact.replace('_', ' ')} of {place}?",
            "calls": [
                {
                    "api": f"Data/country_facts/{fact}",
                    "arguments": {"country": place},
                    "answer": ["country"],
                }
            ],
        }
        for place in places
        for fact in facts
    ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in tasks), "utf-8")
    return path


@contextmanager
def cluster(env: dict[str, str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a cluster of two nodes of one CPU each on loopback; give its address and the nodes."""
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
        yield address, [head, stack.enter_context(node(env, f"--address={address}"))]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def nodes(env: dict[str, str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    with cluster(env) as found:
        yield found


@needs_ray
def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    env: dict[str, str], nodes: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, (_, other) = nodes
    tasks = write_tasks(tmp_path / "tasks.jsonl")
    words = ["annotate", "--tasks", tasks, "--seed", "3", "--workers", "2", "--json", "--out"]
    ended(lab(env, *words, tmp_path / "alone"))
    out = tmp_path / "cluster"
    with ExitStack() as stack:
        run = lab(env, *words, out, "--ray", address)
        stack.callback(end, run)
        until("answers", run, lambda: len(answers(out)) >= 3)
        until("an actor at a task on the other node", run, lambda: kill_working(other))
        shown, said = ended(run)
    report = json.loads(shown)
    alone = answers(tmp_path / "alone")
    assert report["solved"] + report["gave_up"] + report["failed"] == len(alone) > 100
    assert answers(out) == alone
    assert "a worker of the cluster was lost" in said


@needs_ray
def test_an_evaluation_that_is_killed_on_a_cluster_goes_on_without_one(
    env: dict[str, str], nodes: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, _ = nodes
    tasks, out = write_tasks(tmp_path / "tasks.jsonl"), tmp_path / "out"
    words = ["eval", "models", "--tasks", tasks, "--strategies", "dfsdt,cot", "--limit", "4",
             "--threads", "1", "--json", "--out", out]  # fmt: skip
    log = out / "results.jsonl"
    with ExitStack() as stack:
        run = lab(env, *words, "--ray", address, "--workers", "2")
        stack.callback(end, run)
        until("results", run, lambda: log.exists() and log.read_bytes().count(b"\n") > 3)
    before = log.read_bytes()
    report = json.loads(ended(lab(env, *words))[0])
    after = log.read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])
    assert after.count(b"\n") == 1 + 2 * 4
    assert [one["strata"]["all"]["tasks"] for one in report["cells"]] == [4, 4]


@needs_ray
def test_a_fault_in_an_actor_is_one_line_and_what_is_done_is_kept(
    env: dict[str, str], nodes: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, _ = nodes
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": ["No."]}), "utf-8")
    words = ["eval", "llift", "--models", f"scripted:{script}", "--elements", "simple", "--limit",
             "6", "--runs", "1", "--out", tmp_path / "out", "--ray", address, "--workers", "1"]  # fmt: skip
    _, said = ended(lab(env, *words), code=1)
    assert "the evaluation stopped at task" in said
    assert "are kept in" in said


@needs_ray
@pytest.mark.parametrize(
    ("change", "code", "differs"),
    [
        ("import ray; ray.__version__ = '2.0.0'", 2, "Ray: 2.0.0"),
        (
            """import importlib.metadata as m; real = m.version
m.version = lambda name: '0.0.1' if name == 'toolsrv' else real(name)""",
            1,
            "this command 0.0.1",
        ),
    ],
    ids=["Ray", "toolsrv"],
)
def test_a_command_of_another_version_is_one_line(
    env: dict[str, str],
    nodes: tuple[str, list[subprocess.Popen[bytes]]],
    tmp_path: Path,
    change: str,
    code: int,
    differs: str,
) -> None:
    address, _ = nodes
    words = ["lab", "annotate", "--errands", "--count", "3", "--out", str(tmp_path / "out")]
    run = subprocess.Popen(
        [sys.executable, "-c", f"{change}\nfrom toolsrv.cli.main import main; main()", *words,
         "--ray", address],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, said = ended(run, code=code)
    assert differs in said
    assert "the same version" in said


@needs_ray
def test_a_cluster_that_is_not_there_is_one_line(env: dict[str, str], tmp_path: Path) -> None:
    words = ["annotate", "--errands", "--out", tmp_path / "out"]
    _, said = ended(lab(env, *words, "--ray", f"127.0.0.1:{free_port()}"), code=2)
    assert "the Ray cluster" in said


def test_an_actor_works_with_the_settings_of_the_command_and_not_with_those_of_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path)
    bench = Workbench(load({"data_dir": data, "strategy": "dfsdt"}).settings)
    sent = scale._settings_of(bench)
    (tmp_path / "config.toml").write_text('strategy = "react"\n', "utf-8")
    monkeypatch.setenv("TOOLSRV_MAX_CALLS", "3")

    def opened(there: Workbench) -> Any:
        return lambda: there.settings

    found = scale._open_remote(sent, {}, opened)
    assert (found.strategy, found.max_calls) == ("dfsdt", bench.settings.max_calls)
    assert found.model_dump() == bench.settings.model_dump()

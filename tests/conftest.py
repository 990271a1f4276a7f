"""Shared by every room: workers, Hypothesis profiles, the score of whole solves, one built index.

A test marked ``scored(name)`` solves a whole task with the model that ships. One that is not solved
is a miss, no failure; the run fails where fewer are solved than ``scores.json`` has as floor.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

from toolsrv_registry import wellformed
from toolsrv_registry.registry import Registry

# How long an example takes depends on what else the machine does, and proves nothing.
# A commit is judged by the same examples wherever it is tried; at night others are looked for.
settings.register_profile(
    "commit",
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly", settings.get_profile("commit"), max_examples=300, derandomize=False
)
settings.load_profile("commit")

SCORES = json.loads((Path(__file__).parent / "scores.json").read_text("utf-8"))
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
_MUCH = 512 * 1024 * 1024
MAX_WORKERS = 4
"""More workers gain little: each holds the models, and the longest file bounds the run."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep a worker, and the processes of its tests, on one core.

    llama.cpp's threads spin while they wait for each other: two workers with two threads each, on
    two cores, take twice as long as two workers with one.
    """
    if hasattr(config, "workerinput") and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        number = int(config.workerinput["workerid"].removeprefix("gw"))
        os.sched_setaffinity(0, {cores[number % len(cores)]})


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the workers of ``-n auto``: none for a single file, otherwise two per core.

    Much of a test is waiting, for a process or for a time limit: one worker a core leaves a quarter
    of the processor idle.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        files = {argument.partition("::")[0] for argument in config.args}
        if len(files) == 1 and files.pop().endswith(".py"):
            return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(2 * max(cores or 1, 1), MAX_WORKERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a scored test whose assertion fails as not solved; any other error is a failure."""
    report = yield
    marker = item.get_closest_marker("scored")
    if marker is None or report.when != "call" or report.skipped:
        return report
    if report.passed or (call.excinfo is not None and call.excinfo.errisinstance(AssertionError)):
        report.user_properties.append(("scored", (marker.args[0], report.passed)))
        if report.failed:
            report.outcome = "skipped"
            report.wasxfail = "not solved"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[
    None, dict[str, Any] | None, dict[str, Any] | None
]:
    """Send no half surrogate pair of a failed assertion: it would end the worker."""
    data = yield
    return data if data is None else wellformed.value(data)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the score of each set of whole solves."""
    for name, (solved, scored) in sorted(_scores(terminalreporter).items()):
        floor, tasks = SCORES[name]["floor"], SCORES[name]["tasks"]
        bound = f"floor {floor}" if scored >= tasks else f"a part of {tasks}, so no floor"
        terminalreporter.write_line(f"{name}: {solved} of {scored} solved ({bound})")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a whole set of solves is below its floor."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker
        return
    for name, (solved, scored) in _scores(reporter).items():
        if scored >= SCORES[name]["tasks"] and solved < SCORES[name]["floor"]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _scores(reporter: pytest.TerminalReporter) -> dict[str, tuple[int, int]]:
    """Return solved and scored tasks by the name of their set."""
    found: dict[str, tuple[int, int]] = {}
    for report in (*reporter.stats.get("passed", ()), *reporter.stats.get("xfailed", ())):
        for name, passed in (value for key, value in report.user_properties if key == "scored"):
            solved, scored = found.get(name, (0, 0))
            found[name] = (solved + passed, scored + 1)
    return found


@pytest.fixture(scope="session", autouse=True)
def _no_terminal() -> Iterator[None]:
    """Let the processes of tests start alike, whatever started pytest.

    GNU readline, once imported, exports the size of the terminal, and workers inherit it.
    A process started by nohup or behind a shell's & ignores signals, and hands that on; the
    handler that does nothing is not handed on.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.delenv("LINES", raising=False)
        ignored = [one for one in SIGNALS if signal.getsignal(one) == signal.SIG_IGN]
        for one in ignored:
            signal.signal(one, lambda *_: None)
        yield
        for one in ignored:
            signal.signal(one, signal.SIG_IGN)


_HELD = [0]
"""Bytes of memory in use after the last time that some was given back."""


@pytest.fixture(scope="module", autouse=True)
def _memory_given_back() -> Iterator[None]:
    """Return freed memory to the system after files that used much.

    Threads of glibc keep what they freed: models that a hundred tests opened and closed would hold
    gigabytes.
    """
    yield
    process = psutil.Process()
    if process.memory_info().rss - _HELD[0] < _MUCH:
        return
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        gc.collect()
        trim(0)
    _HELD[0] = process.memory_info().rss


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A data folder with the offline catalog and its index: one a run, never written again.

    The workers of a run share the parent of their temporary folders; the first to take the lock
    builds. Tests that write copy it.
    """
    own = tmp_path_factory.getbasetemp()
    place = own if worker_id == "master" else own.parent
    folder = place / "built"
    with FileLock(place / "built.lock"):
        if not folder.is_dir():
            begun = place / "built.part"
            shutil.rmtree(begun, ignore_errors=True)
            command = [sys.executable, "-m", "toolsrv", "--data-dir", str(begun)]
            environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
            subprocess.run(
                [*command, "index", "build", "--json"],
                check=True,
                stdout=subprocess.DEVNULL,
                env=environment,
                timeout=300,
            )
            begun.rename(folder)
    return folder


@pytest.fixture(scope="session")
def registry(built_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """An indexed registry of the offline catalog, for tests that only read it."""
    folder = tmp_path_factory.mktemp("offline")
    shutil.copytree(built_folder, folder, dirs_exist_ok=True)
    with Registry.open(folder) as opened:
        assert opened.index.state() == "ready"
        yield opened

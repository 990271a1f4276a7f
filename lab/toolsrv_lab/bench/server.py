"""``toolsrv bench server``: time to first answer and memory of a ``toolsrv serve`` process.

``ServerProcess`` exchanges JSON lines on its pipes. What a server bears is in ``server_load``.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import click

from toolsrv_lab.bench.report import (
    Figure,
    Memory,
    Report,
    emit,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    memory,
    report_progress,
)
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_registry.errors import DataError

Era = Literal["2025-11-25", "2026-07-28"]
OLD_ERA: Era = "2025-11-25"
NEW_ERA: Era = "2026-07-28"

_CLIENT = {"name": "toolsrv-bench", "version": "1"}
_END_S = 10.0


class ServerProcess:
    """A server on ``data_dir`` with the default settings; a context manager that ends it.

    ``seconds()`` counts from the moment before the process was started.
    """

    def __init__(self, data_dir: Path, *, era: Era, patience_s: float = 120.0) -> None:
        self._era = era
        self._patience = patience_s
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._id = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        # Settings of the person who measures would make the figures their own.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
        self._started = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "toolsrv", "--data-dir", str(data_dir), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )
        threading.Thread(target=self._collect, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seconds(self) -> float:
        """Return the seconds since the process was started."""
        return time.perf_counter() - self._started

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def memory(self) -> Memory:
        """Return the process's memory."""
        return memory(self.pid)

    def open(self) -> None:
        """Do the era's opening: a request, and in the older era a notification.

        Raises:
            DataError: The server ended, was silent or answered with an error.
        """
        if self._era == NEW_ERA:
            self.request("server/discover")
            return
        self.request("initialize", protocolVersion=OLD_ERA, capabilities={}, clientInfo=_CLIENT)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result; other messages of the server are passed over.

        Raises:
            DataError: The server ended, was silent or answered with an error.
        """
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params | self._meta()})
        deadline = time.monotonic() + self._patience
        while True:
            message = self._read(method, deadline)
            if message.get("id") == self._id:
                break
        if method == "initialize":
            self._send({"method": "notifications/initialized"})
        if "result" not in message:
            raise DataError(f"the server answered {method} with {message.get('error')}")
        result: dict[str, Any] = message["result"]
        return result

    def close(self) -> None:
        """End the process: by closing its stdin, by force where that is not enough."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_END_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()

    def _meta(self) -> dict[str, Any]:
        if self._era == OLD_ERA:
            return {}
        prefix = "io.modelcontextprotocol/"
        return {
            "_meta": {
                f"{prefix}protocolVersion": NEW_ERA,
                f"{prefix}clientInfo": _CLIENT,
                f"{prefix}clientCapabilities": {},
            }
        }

    def _send(self, message: dict[str, Any]) -> None:
        pipe = self._process.stdin
        if pipe is None:
            raise TypeError("the process has no stdin")
        try:
            pipe.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            raise self._ended(str(message["method"])) from None

    def _read(self, method: str, deadline: float) -> dict[str, Any]:
        """Return the next message, or raise DataError after ``deadline``."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise DataError(
                f"the server did not answer {method} within {self._patience:g} s",
                hint="try again when the machine is less busy",
            ) from None
        if not line.endswith(b"\n"):
            raise self._ended(method)
        try:
            message = json.loads(line)
        except ValueError:
            raise DataError(f"the server wrote a line that is not JSON: {line[:80]!r}") from None
        return message if isinstance(message, dict) else {}

    def _collect(self) -> None:
        """Read the lines of stdout to its end: a pipe of Windows has no reads with a time limit."""
        pipe = self._process.stdout
        if pipe is None:
            raise TypeError("the process has no stdout")
        with pipe:
            for line in pipe:
                self._lines.put(line)
        self._lines.put(b"")

    def _ended(self, method: str) -> DataError:
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        said = f": {lines[-1][:300]}" if lines else ""
        return DataError(
            f"the server ended before it answered {method}{said}",
            hint="run 'toolsrv serve' by hand to see why",
        )


TASK = "What is the time difference between London and Sydney?"

# Memory is at rest when it moves by less than this for so long.
_STILL_MIB = 0.5
_STILL_S = 1.0
_LOOK_S = 0.1
_REST_S = 60.0

_OPENING = {OLD_ERA: "initialize", NEW_ERA: "server/discover"}
_MEMORY = {
    "memory_listed": "memory after tools/list",
    "memory_idle": "memory idle, everything loaded",
    "memory_idle_peak": "memory peak until idle",
    "memory_solved": "memory after a solve, fresh folder",
    "memory_peak": "memory peak, index build and solve",
    "memory_warm_peak": "memory peak, solve on a warm folder",
}

Values = collections.defaultdict[str, list[float | None]]


PARTS = ("start", "load", "queue", "endurance")


@click.command(
    epilog=example("toolsrv bench server --runs 3", "toolsrv bench server --part load --seconds 10")
)
@click.option(
    "--part", "parts", type=click.Choice(PARTS), multiple=True, default=("start",),
    show_default=True,
    help="What is measured: cold starts on stdio, searches of many HTTP sessions at one, two and "
    "four times a rate, 24 solves at once, or calls and solves in a row. Repeatable.",
)  # fmt: skip
@click.option(
    "--runs", type=click.IntRange(1, 100), default=5, show_default=True,
    help="Repetitions of the start.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(0.1, 10_000), default=40.0, show_default=True,
    help="Searches a second of the load.",
)  # fmt: skip
@click.option(
    "--sessions", type=click.IntRange(1, 1_000), default=200, show_default=True,
    help="Sessions of the load.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0.1, 86_400), default=30.0, show_default=True,
    help="How long each rate of the load is offered.",
)  # fmt: skip
@click.option(
    "--calls", type=click.IntRange(0, 10_000_000), default=20_000, show_default=True,
    help="Calls of the endurance.",
)  # fmt: skip
@click.option(
    "--solves", type=click.IntRange(0, 1_000_000), default=500, show_default=True,
    help="Solves of the endurance.",
)  # fmt: skip
@json_option
def server(
    parts: tuple[str, ...],
    runs: int,
    rate: float,
    sessions: int,
    seconds: float,
    calls: int,
    solves: int,
    as_json: bool,
) -> None:
    """Measure servers: cold starts in both eras and memory, or what one bears (--part)."""
    from toolsrv_lab.bench import server_load  # noqa: PLC0415 - it imports this module
    from toolsrv_lab.bench.world import LoadPlan  # noqa: PLC0415 - only for a load

    report = measure(runs) if "start" in parts else Report(bench="server", options={}, figures={})
    options: dict[str, Any] = {
        "load": {"rate": rate, "sessions": sessions, "seconds": seconds},
        "endurance": {"calls": calls, "solves": solves},
    }
    measures: dict[str, Callable[[Path], tuple[dict[str, Figure], dict[str, Any]]]] = {
        "load": lambda folder: server_load.load_figures(
            folder, LoadPlan(rate, seconds, sessions, 0)
        ),
        "queue": server_load.queue_figures,
        "endurance": lambda folder: server_load.endurance_figures(folder, calls, solves),
    }
    for part in (one for one in PARTS if one in parts and one in measures):
        with scratch_folder() as folder:
            figures, details = measures[part](folder)
        report.figures.update(figures)
        report.details[part] = details
        report.options.update(options.get(part, {}))
    emit(report, as_json=as_json)
    if not as_json:
        for offered, errors in report.details.get("load", {}).items():
            report_progress(f"errors at {offered}: {errors or 'none'}")
        emit_machine(report)


def measure(runs: int) -> Report:
    """Start four servers per run and return what they took.

    Raises:
        DataError: A server ended, was silent, or failed at the task.
    """
    before = machine()
    values: Values = collections.defaultdict(list)
    statuses: collections.Counter[str] = collections.Counter()
    for number in range(runs):
        report_progress(f"server: run {number + 1} of {runs}")
        with scratch_folder() as folder:
            for era in (OLD_ERA, NEW_ERA):
                handshake(folder / era, era, values)
            statuses[first_answer(folder / "solve", "fresh", values)] += 1
            statuses[first_answer(folder / "solve", "warm", values)] += 1
            rest(folder / "solve", values)
    return Report(
        bench="server",
        options={"runs": runs, "task": TASK},
        figures=_figures(values),
        details={"statuses": dict(statuses)},
        machine=before,
    )


def handshake(folder: Path, era: Era, values: Values) -> None:
    """Time a cold server's opening and its list of tools."""
    with ServerProcess(folder, era=era) as process:
        process.open()
        values[f"opening_{era}"].append(process.seconds())
        process.request("tools/list")
        values[f"tools_list_{era}"].append(process.seconds())
        values["memory_listed"].append(process.memory().resident)


def first_answer(folder: Path, kind: str, values: Values) -> str:
    """Time the first solve of a cold server from its start; return the run's status."""
    with ServerProcess(folder, era=NEW_ERA, patience_s=660.0) as process:
        process.open()
        result = process.request(
            "tools/call", name="solve_task", arguments={"task": TASK, "wait_s": 600}
        )
        values[f"first_answer_{kind}"].append(process.seconds())
        memory = process.memory()
    view = result.get("structuredContent")
    status = str(view.get("status")) if isinstance(view, dict) else "no result"
    if result.get("isError") or not isinstance(view, dict):
        reason = view.get("reason", "") if isinstance(view, dict) else ""
        raise DataError(
            f"the server failed at {TASK!r}: {reason or status}",
            hint="try the task with 'toolsrv solve'",
        )
    if kind == "fresh":
        values["memory_solved"].append(memory.resident)
        values["memory_peak"].append(memory.peak)
    else:
        values["memory_warm_peak"].append(memory.peak)
    return status


def rest(folder: Path, values: Values) -> None:
    """Wait until a server on a warm folder has loaded what it loads, and note its memory."""
    with ServerProcess(folder, era=OLD_ERA) as process:
        process.open()
        process.request("tools/list")
        last, since = process.memory().resident, process.seconds()
        while last is not None and process.seconds() < _REST_S:
            time.sleep(_LOOK_S)
            now = process.memory().resident
            if now is None or abs(now - last) > _STILL_MIB:
                last, since = now, process.seconds()
            elif process.seconds() - since >= _STILL_S:
                break
        memory = process.memory()
        values["memory_idle"].append(memory.resident)
        values["memory_idle_peak"].append(memory.peak)


def _figures(values: Values) -> dict[str, Figure]:
    found = {}
    for era in (OLD_ERA, NEW_ERA):
        for name, label in (
            (f"opening_{era}", f"start to {_OPENING[era]} ({era})"),
            (f"tools_list_{era}", f"start to tools/list ({era})"),
        ):
            found[name] = figure(label, "s", values[name])
    for kind in ("fresh", "warm"):
        name = f"first_answer_{kind}"
        found[name] = figure(f"start to first answer, {kind} folder", "s", values[name])
    return found | {name: figure(label, "MiB", values[name]) for name, label in _MEMORY.items()}

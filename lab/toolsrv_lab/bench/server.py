"""``toolsrv bench server``: time to first answer and memory of a ``toolsrv serve`` process.

What a server bears is measured by ``server_load``.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from toolsrv_lab.bench import server_load
from toolsrv_lab.bench.report import (
    Figure,
    Report,
    emit,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    report_progress,
)
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.bench.stdio_server import NEW_ERA, OLD_ERA, Era, ServerProcess
from toolsrv_lab.bench.world import LoadPlan
from toolsrv_registry.errors import DataError

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

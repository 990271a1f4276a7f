"""``toolsrv bench solve``: how many tasks of a file a model solves, and the cost.

Verdicts are counted by kind of task.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv_lab.bench.report import (
    Report,
    emit,
    emit_machine,
    example,
    json_option,
    machine,
    model_option,
    number,
    report_progress,
    significant,
    table,
    threads_option,
    wilson,
)
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.host_resources import usable_cores

if TYPE_CHECKING:
    from toolsrv_lab.solving import Task, Verdict
    from toolsrv_registry.api import Api
    from toolsrv_runtime.solve import SolveOptions

_JUDGED = ("offered", "right_calls", "right_answer", "both")
_TOKENS = ("prompt_tokens", "evaluated_tokens", "generated_tokens", "forced_tokens")
_KINDS = ("single", "two", "three", "none")
_ALL = "all"


def by_kind(verdicts: Sequence[Verdict]) -> dict[str, dict[str, Any]]:
    """Return per kind of task, and for ``all``, the counts with their intervals, and the sums."""
    present = {one.kind for one in verdicts}
    kinds = [kind for kind in _KINDS if kind in present]
    return {
        kind: _summary([one for one in verdicts if kind in (one.kind, _ALL)])
        for kind in (*kinds, _ALL)
    }


def _summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found: dict[str, Any] = {"tasks": len(verdicts)}
    for name in _JUDGED:
        right = sum(one.solved if name == "both" else getattr(one, name) for one in verdicts)
        low, high = wilson(right, len(verdicts))
        found[name] = {"count": right, "low": round(low, 4), "high": round(high, 4)}
    found["seconds"] = significant(sum(one.usage.seconds for one in verdicts))
    for name in _TOKENS:
        found[name] = sum(getattr(one.usage, name) for one in verdicts)
    return found


def show_kinds(kinds: dict[str, dict[str, Any]]) -> None:
    """Print the table of ``by_kind``."""
    columns = ["kind", "tasks#", *(f"{name.replace('_', ' ')}#" for name in _JUDGED)]
    table(
        [*columns, "seconds#", "in prompts#", "evaluated#", "replied#", "forced#"],
        [
            (
                kind,
                one["tasks"],
                *(_share(one[name]) for name in _JUDGED),
                number(one["seconds"]),
                *(f"{one[name]:,}" for name in _TOKENS),
            )
            for kind, one in kinds.items()
        ],
    )


def _share(judged: dict[str, Any]) -> str:
    low, high = 100 * judged["low"], 100 * judged["high"]
    return f"{judged['count']} ({low:.0f}-{high:.0f} %)"


def show_tasks(verdicts: Sequence[Verdict]) -> None:
    """Print a line for each task."""

    def mark(good: bool) -> str:
        return "yes" if good else "no"

    table(
        ("task", "kind", "status", "offered", "calls", "answer", "s#", "said"),
        [
            (
                one.id,
                one.kind,
                one.status,
                mark(one.offered),
                mark(one.right_calls),
                mark(one.right_answer),
                f"{one.usage.seconds:.2f}",
                one.answer,
            )
            for one in verdicts
        ],
    )


@click.command(epilog=example("toolsrv bench solve --tasks tests/runtime/data/tasks.jsonl"))
@click.option(
    "--tasks",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON lines: id, kind (single, two, three), task, calls.",
)
@click.option(
    "--strategy",
    type=click.Choice(["dfsdt", "dfs", "react", "cot"]),
    default="dfsdt",
    show_default=True,
)
@model_option
@click.option(
    "--candidates",
    type=click.IntRange(1, 32),
    help="APIs offered to the model. [default: the model's own choice]",
)
@threads_option
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the sampling."
)
@click.option("--verbose", is_flag=True, help="List each task and what became of it.")
@json_option
def solve(
    path: Path,
    strategy: str,
    model: Path | None,
    candidates: int | None,
    threads: int | None,
    seed: int,
    verbose: bool,
    as_json: bool,
) -> None:
    """Solve a file's tasks and count right calls and right answers, with 95 % intervals.

    The tasks' own calls are made for real, so what is expected is what the APIs say today.
    """
    from toolsrv_runtime.solve import SolveOptions  # noqa: PLC0415 - heavy

    given: dict[str, Any] = {} if candidates is None else {"candidates": candidates}
    options = SolveOptions.model_validate({"strategy": strategy, "seed": seed} | given)
    report, verdicts = asyncio.run(measure(path, model, options, threads=threads))
    if as_json:
        listed = {"tasks": [one.model_dump() for one in verdicts]} if verbose else {}
        emit(report.model_copy(update={"details": report.details | listed}), as_json=True)
        return
    show_kinds(report.details["kinds"])
    emit(report, as_json=False)
    if verbose:
        show_tasks(verdicts)
    emit_machine(report)


async def measure(
    path: Path, model: Path | None, options: SolveOptions, *, threads: int | None = None
) -> tuple[Report, list[Verdict]]:
    """Solve the tasks of a file; return the figures and each task's verdict.

    Raises:
        DataError: The file is no file of tasks, or names an API that there is not.
        UsageError: It has no tasks.
        ModelError: The model cannot be run.
    """
    from toolsrv_lab.bench.engine import spared  # noqa: PLC0415 - for this command only
    from toolsrv_lab.bench.parts import open_parts  # noqa: PLC0415 - heavy
    from toolsrv_lab.solving import evaluate  # noqa: PLC0415 - heavy

    before = machine()
    tasks = _tasks(path)
    async with open_parts(model, threads=threads) as parts:
        _check(tasks, parts.apis, path)
        verdicts = await evaluate(
            tasks,
            solver=parts.solver,
            caller=parts.caller,
            apis=parts.apis,
            options=options,
            progress=_counter(len(tasks)),
        )
        shown = options.model_dump(include={"strategy", "width", "depth", "candidates", "seed"})
        shown |= {"model": parts.engine.name, "format": parts.profile.format, "file": path.name}
        shown["threads"] = threads or usable_cores()
        shown["candidates"] = shown["candidates"] or parts.profile.candidates
    report = Report(
        bench="solve",
        options=shown,
        figures=spared([one.usage for one in verdicts]),
        details={
            "kinds": by_kind(verdicts),
            "statuses": dict(collections.Counter(one.status for one in verdicts)),
        },
        machine=before,
    )
    return report, verdicts


def _tasks(path: Path) -> list[Task]:
    from toolsrv_lab.solving import read_tasks  # noqa: PLC0415 - heavy

    tasks = read_tasks(path)
    if not tasks:
        raise UsageError(f"there are no tasks in {str(path)!r}", hint="one JSON object a line")
    return tasks


def _check(tasks: Sequence[Task], apis: Mapping[str, Api], path: Path) -> None:
    """Raise DataError when a task needs an API that the catalog lacks."""
    for task in tasks:
        for call in task.calls:
            if call.api not in apis:
                raise DataError(
                    f"{str(path)!r}, task {task.id!r}: there is no API {call.api!r}",
                    hint="see the ids with: toolsrv catalog list",
                )


def _counter(total: int) -> Callable[[Verdict], None]:
    """Return a callback that tells on stderr how far it is, at every tenth part."""
    done = 0

    def count(_: Verdict) -> None:
        nonlocal done
        done += 1
        if done == total or done * 10 // total > (done - 1) * 10 // total:
            report_progress(f"solve: {done} of {total} tasks")

    return count

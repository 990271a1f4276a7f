"""``toolsrv lab eval solve``: strategies side by side on a file of tasks.

The work is done by ``toolsrv_lab.evaluation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.options import GivenPath, example, json_option, model_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Cell, CellLog, Solver
    from toolsrv_lab.solving import Task, Verdict
    from toolsrv_runtime.solve import SolveOptions

STRATEGIES = ("dfsdt", "dfs", "react", "cot")
DEFAULT = ("dfsdt", "react", "cot")


@click.command(epilog=example("toolsrv lab eval solve --tasks tasks.jsonl --out verdicts.jsonl"))
@click.option("--tasks", "path", type=GivenPath(), required=True, metavar="FILE",
              help="JSON lines: id, kind (single, two, three, none), task, calls.")  # fmt: skip
@click.option("--strategy", "strategies", type=click.Choice(STRATEGIES), multiple=True,
              help="May be given several times. [default: dfsdt, react, cot]")  # fmt: skip
@model_option
@click.option("--candidates", type=int, help="APIs offered to the model.")
@click.option("--width", type=int, help="Branches of dfsdt below one node.")
@click.option("--depth", type=int, help="Most nodes on one path; a call takes three.")
@click.option("--chains", type=int, help="Most chains of cot (CoT@N).")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE",
              help="Any other option of a solve: --set verify=true --set limits.seconds=60.")  # fmt: skip
@evaluation.solving_options
@click.option("--limit", type=click.IntRange(1), help="Only so many tasks, evenly picked.")
@click.option("--out", type=GivenPath(), metavar="FILE",
              help="Keep each verdict here (JSON lines); run it again and it goes on.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_solve(
    session: Session,
    /,
    path: Path,
    strategies: tuple[str, ...],
    given: tuple[str, ...],
    limit: int | None,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Solve tasks and count right functions, arguments and answers, with 95 % intervals.

    The tasks' own calls are made first, so what is expected is what the APIs say today. Where a
    task says which APIs fail, these are down while it is solved.
    """
    from toolsrv_lab.evaluation.cells import Cell, CellLog, make_options
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.solving import Verdict

    tasks = _tasks(path.expanduser(), limit)
    bench = session.workbench(**flags)
    scale.check(bench.settings)
    base = bench.options()
    name, identity = evaluation.identity(bench.settings)
    cells = {
        Cell(name, identity, one): make_options(base, one, given=given)
        for one in strategies or DEFAULT
    }
    settings = _settings(path.expanduser(), bench) | ({"set": sorted(given)} if given else {})
    with ResultLog(out.expanduser() if out else None, settings) as log:
        kept = CellLog(log, Verdict)
        try:
            _solve(bench, scale, tasks, cells, kept)
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(kept) and not as_json:
                _report(kept, tasks, cells)
            raise
        if not as_json:
            _report(kept, tasks, cells)
            return
        emit_json({"file": str(path), "settings": settings} | _document(kept, tasks, cells))


def _tasks(path: Path, limit: int | None) -> list[Task]:
    from toolsrv_lab.solving import read_tasks

    tasks = read_tasks(path)
    if not tasks:
        raise UsageError(f"there are no tasks in {str(path)!r}", hint="one JSON object a line")
    return tasks if limit is None else tasks[:: max(1, len(tasks) // limit)][:limit]


def _settings(path: Path, bench: Workbench) -> dict[str, Any]:
    """Return what verdicts depend on: those of other settings are not put into one file."""
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL

    options = bench.options().model_dump(mode="json", exclude={"strategy", "category"})
    catalogs = [one for one in bench.registry().store.catalogs() if one.enabled]
    model = bench.settings.model
    return options | {
        "model": model if isinstance(model, str) else evaluation.file_hash(model or SHIPPED_MODEL),
        "tasks": evaluation.file_hash(path),
        "catalogs": sorted(one.name for one in catalogs),
    }


def _solve(
    bench: Workbench,
    scale: Scale,
    tasks: Sequence[Task],
    cells: Mapping[Cell, SolveOptions],
    log: CellLog[Verdict],
) -> None:
    """Solve what the log lacks; loads the model only where something is lacking."""
    from toolsrv_lab.solving import check_tasks

    check_tasks(tasks, {api.id: api for api in bench.registry().store.apis()})
    named = {task.id: task for task in tasks}
    with evaluation.Progress("solving", len(tasks) * len(cells)) as progress:
        solve_cells(bench, scale, named, cells, log, _solver, progress=progress.step)


def _solver(bench: Workbench) -> Solver[Task, SolveOptions, Verdict]:
    from toolsrv.cli.laboratory.models import task_solver

    bench.engine()  # a chat model of somebody else is refused
    return task_solver(False, bench)


def _verdicts(
    log: CellLog[Verdict], tasks: Sequence[Task], cells: Iterable[Cell]
) -> dict[str, list[Verdict]]:
    """Return the verdicts on these tasks, those of strategies without any left out."""
    found = {cell.strategy: log.of(cell, [task.id for task in tasks]) for cell in cells}
    return {name: verdicts for name, verdicts in found.items() if verdicts}


def _report(log: CellLog[Verdict], tasks: Sequence[Task], cells: Iterable[Cell]) -> None:
    from toolsrv.cli.laboratory.evaluation import show
    from toolsrv_lab.evaluation.strategies import by_kind, compare

    found = _verdicts(log, tasks, cells)
    if found:
        show({name: by_kind(verdicts) for name, verdicts in found.items()}, compare(found))


def _document(
    log: CellLog[Verdict], tasks: Sequence[Task], cells: Iterable[Cell]
) -> dict[str, Any]:
    from toolsrv_lab.evaluation.strategies import by_kind, compare

    found = _verdicts(log, tasks, cells)
    return {
        "tasks": len(tasks),
        "strategies": {
            name: {kind: one.model_dump() for kind, one in by_kind(verdicts).items()}
            for name, verdicts in found.items()
        },
        "differences": [one.model_dump() for one in compare(found)],
    }

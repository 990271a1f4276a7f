"""``toolsrv lab eval solve``: strategies side by side on a file of tasks.

The work is done by ``toolsrv_lab.evaluation``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.options import example, json_option, model_option
from toolsrv.cli.output import Bar, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.strategies import VerdictLog
    from toolsrv_lab.solving import Task, Verdict
    from toolsrv_registry.api import Api
    from toolsrv_runtime.solve import SolveOptions

STRATEGIES = ("dfsdt", "dfs", "react", "cot")
DEFAULT = ("dfsdt", "react", "cot")


@click.command(epilog=example("toolsrv lab eval solve --tasks tasks.jsonl --out verdicts.jsonl"))
@click.option("--tasks", "path", type=click.Path(path_type=Path), required=True, metavar="FILE",
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
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE",
              help="Keep each verdict here (JSON lines); run it again and it goes on.")  # fmt: skip
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
    as_json: bool,
    **flags: Any,
) -> None:
    """Solve tasks and count right functions, arguments and answers, with 95 % intervals.

    The tasks' own calls are made first, so what is expected is what the APIs say today. Where a
    task says which APIs fail, these are down while it is solved.
    """
    from toolsrv_lab.evaluation.cells import make_options
    from toolsrv_lab.evaluation.strategies import VerdictLog

    tasks = _tasks(path.expanduser(), limit)
    bench = session.workbench(**flags)
    base = bench.options()
    options = {name: make_options(base, name, given=given) for name in strategies or DEFAULT}
    settings = _settings(path.expanduser(), bench) | ({"set": sorted(given)} if given else {})
    with VerdictLog(out.expanduser() if out else None, settings) as book:
        try:
            asyncio.run(_solve(bench, tasks, options, book))
        except KeyboardInterrupt:
            _leave(book)
            raise
        except DataError:
            if len(book) and not as_json:
                _report(book, tasks, options)
            raise
        if not as_json:
            _report(book, tasks, options)
            return
        emit_json({"file": str(path), "settings": settings} | _document(book, tasks, options))


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


async def _solve(
    bench: Workbench, tasks: Sequence[Task], options: Mapping[str, SolveOptions], book: VerdictLog
) -> None:
    """Solve what the book lacks; loads the model only where something is lacking."""
    from toolsrv_lab.evaluation.strategies import evaluate_strategies
    from toolsrv_lab.solving import FaultyCaller, check_tasks
    from toolsrv_runtime.calls.transports import offline_transports

    apis: dict[str, Api] = {api.id: api for api in bench.registry().store.apis()}
    check_tasks(tasks, apis)
    if all(book.get(name, task.id) for name in options for task in tasks):
        return
    bench.engine()  # a chat model of somebody else is refused
    with Bar("solving", "tasks") as bar:
        async with FaultyCaller(transports=offline_transports()) as caller:
            await evaluate_strategies(
                tasks,
                options,
                book,
                solver=evaluation.solver_on(bench, caller),
                caller=caller,
                apis=apis,
                progress=bar.show,
            )


def _leave(book: VerdictLog) -> None:
    if book.path is not None:
        note(f"{len(book)} verdicts are kept in {book.path}; the same command goes on after them")
    else:
        note("with --out FILE an evaluation can go on where it stopped")


def _verdicts(
    book: VerdictLog, tasks: Sequence[Task], options: Mapping[str, SolveOptions]
) -> dict[str, list[Verdict]]:
    """Return the verdicts on these tasks, those of strategies without any left out."""
    found = {name: book.of(name, [task.id for task in tasks]) for name in options}
    return {name: verdicts for name, verdicts in found.items() if verdicts}


def _report(book: VerdictLog, tasks: Sequence[Task], options: Mapping[str, SolveOptions]) -> None:
    from toolsrv.cli.laboratory.evaluation import show
    from toolsrv_lab.evaluation.strategies import by_kind, compare

    found = _verdicts(book, tasks, options)
    if found:
        show({name: by_kind(verdicts) for name, verdicts in found.items()}, compare(found))


def _document(
    book: VerdictLog, tasks: Sequence[Task], options: Mapping[str, SolveOptions]
) -> dict[str, Any]:
    from toolsrv_lab.evaluation.strategies import by_kind, compare

    found = _verdicts(book, tasks, options)
    return {
        "tasks": len(tasks),
        "strategies": {
            name: {kind: one.model_dump() for kind, one in by_kind(verdicts).items()}
            for name, verdicts in found.items()
        },
        "differences": [one.model_dump() for one in compare(found)],
    }

"""``toolsrv lab eval models``: models, strategies and aids side by side on a file of tasks.

The work is done by ``toolsrv_lab.evaluation``.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.evaluation import show_queries, show_tasks
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.options import GivenPath, example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Cell, CellLog, Solver
    from toolsrv_lab.evaluation.toolbench_queries import QueryResult
    from toolsrv_lab.execution import Make, Slots
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_lab.solving import Task, Verdict
    from toolsrv_registry.api import Api
    from toolsrv_registry.registry import Registry
    from toolsrv_runtime.calls.result import Consent
    from toolsrv_runtime.solve import SolveOptions

Cells = dict["Cell", "SolveOptions"]


@click.command(
    epilog=example(
        "toolsrv lab eval models --models nano,model.gguf --strategies dfsdt,react "
        "--tasks tasks.jsonl --limit 60 --out DIR"
    )
)
@click.option("--models", multiple=True, default=("nano",), show_default=True, metavar="A,B",
              help="GGUF files, names of installed models, nano for the one that ships, addresses "
              "of OpenAI-compatible servers. May be given several times.")  # fmt: skip
@click.option("--strategies", multiple=True, default=("dfsdt",), show_default=True,
              metavar="NAME,…", help="Strategies of a solve.")  # fmt: skip
@click.option("--aids", multiple=True, metavar="NAME+NAME,…",
              help="Sets of aids to compare: names with + between, none, or default: those that "
              "the options have. [default: default]")  # fmt: skip
@click.option("--tasks", "path", type=GivenPath(), required=True, metavar="FILE",
              help="JSON lines: tasks over the catalog that ships (id, kind, task, calls), or "
              "queries over imported ones (query_id, query, relevant).")  # fmt: skip
@click.option("--other-words", is_flag=True,
              help="Solve tasks over a copy of the catalog that ships, in which everything is named "
              "and described otherwise.")  # fmt: skip
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE",
              help="Any option of a solve, for all cells: --set width=3 --set limits.seconds=60.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many tasks, drawn by stratum with the seed.")  # fmt: skip
@evaluation.solving_options
@click.option("--keep-going", is_flag=True,
              help="Count a solve that a fault of the engine ended as failed, and go on.")  # fmt: skip
@click.option("--out", type=GivenPath(), metavar="DIR",
              help="Keep results, report and plot here; the same command goes on there.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_models(
    session: Session,
    /,
    models: tuple[str, ...],
    strategies: tuple[str, ...],
    aids: tuple[str, ...],
    path: Path,
    other_words: bool,
    given: tuple[str, ...],
    limit: int | None,
    keep_going: bool,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Solve tasks with each model, strategy and set of aids; count what became of them.

    Tasks over the catalog that ships are judged by their calls and by the values that the answer
    must state. Queries over an imported catalog get simulated responses and are judged by their
    calls.
    """
    from toolsrv_lab.evaluation.result_log import ResultLog

    path = path.expanduser()
    copy = click.get_current_context().with_resource(_copy()) if other_words else None
    kind: _Kind = _Queries(path, copy) if _holds_queries(path) else _Tasks(path, copy)
    flags["simulate"] = kind.simulate
    benches = [session.workbench(model=name, **flags) for name in evaluation.listed(models)]
    for bench in benches:
        scale.check(bench.settings)
    cells = [_cells(bench, strategies, aids, given) for bench in benches]
    if len({cell.identity for one in cells for cell in one}) < len(benches):
        raise UsageError("--models names a model twice", hint="name each once")
    kind.prepare(benches[0], limit)
    folder = evaluation.out_folder(out)
    log_path = folder / evaluation.LOG if folder else None
    settings = _settings(benches[0], copy, path, given, flags)
    every = [cell for one in cells for cell in one]
    with ResultLog(log_path, settings) as log:
        kind.open(log)
        try:
            with evaluation.Progress("solving", kind.count * len(every)) as progress:
                for bench, one in zip(benches, cells, strict=True):
                    kind.run(bench, scale, one, keep_going, progress)
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(log) and not as_json:
                kind.show(every)
            raise
    document = {"tasks": str(path), "settings": settings} | kind.document(every)
    evaluation.write_report(folder, document)
    kind.plot(every, folder)
    if as_json:
        emit_json(document)
    else:
        kind.show(every)


def _cells(
    bench: Workbench, strategies: Sequence[str], aids: Sequence[str], given: Sequence[str]
) -> Cells:
    from toolsrv_lab.evaluation.cells import DEFAULT_AIDS, Cell, make_options

    name, identity = evaluation.identity(bench.settings)
    base = bench.options()
    return {
        Cell(name, identity, strategy, aid): make_options(base, strategy, aid, given)
        for strategy in evaluation.listed(strategies)
        for aid in evaluation.listed(aids) or [DEFAULT_AIDS]
    }


@contextlib.contextmanager
def _copy() -> Iterator[Registry]:
    """Give a registry of the copy in other words, in a folder that goes with it."""
    from toolsrv_lab.evaluation.other_words import open_registry

    with (
        TemporaryDirectory(prefix="toolsrv-", ignore_cleanup_errors=True) as folder,
        open_registry(Path(folder)) as registry,
    ):
        yield registry


def _settings(
    bench: Workbench,
    copy: Registry | None,
    path: Path,
    given: Sequence[str],
    flags: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what results depend on besides the cell: those of others are not put into one file."""
    options = bench.options().model_dump(mode="json", exclude={"strategy", "aids", "category"})
    store = (copy or bench.registry()).store
    catalogs = [one.name for one in store.catalogs() if one.enabled]
    return {
        "options": options,
        "set": sorted(given),
        "simulate": flags["simulate"],
        "tasks": evaluation.file_hash(path),
        "catalogs": sorted(catalogs),
    }


def _holds_queries(path: Path) -> bool:
    """Whether a file holds queries; what cannot be read is found out by who reads it."""
    try:
        with path.open(encoding="utf-8") as file:
            start = file.read(4096).lstrip()
    except (OSError, UnicodeDecodeError):
        return False
    return start.startswith("[") or '"query"' in start.split('"relevant"')[0]


class _Tasks:
    """Tasks over the catalog that ships, or over its ``copy`` in other words."""

    simulate = "off"

    def __init__(self, path: Path, copy: Registry | None) -> None:
        from toolsrv_lab.evaluation import other_words
        from toolsrv_lab.solving import read_tasks

        self._copy = copy
        self._tasks: dict[str, Task] = {}
        self._every = read_tasks(path)
        if not self._every:
            raise UsageError(f"there are no tasks in {str(path)!r}", hint="one JSON object a line")
        if copy is not None:
            self._every = other_words.tasks(self._every)
        self._apis: dict[str, Api] = {}
        self._log: CellLog[Verdict]

    @property
    def count(self) -> int:
        return len(self._tasks)

    def prepare(self, bench: Workbench, limit: int | None) -> None:
        from toolsrv_lab.evaluation.statistics import draw_by_stratum
        from toolsrv_lab.solving import check_tasks

        store = (self._copy or bench.registry()).store
        self._apis = {api.id: api for api in store.apis()}
        check_tasks(self._every, self._apis)
        drawn = draw_by_stratum(
            self._every,
            limit,
            seed=bench.options().seed,
            key=lambda one: one.id,
            stratum=lambda one: one.kind,
        )
        self._tasks = {one.id: one for one in drawn}

    def open(self, log: Any) -> None:
        from toolsrv_lab.evaluation.cells import CellLog
        from toolsrv_lab.solving import Verdict

        self._log = CellLog(log, Verdict)

    def run(
        self,
        bench: Workbench,
        scale: Scale,
        cells: Cells,
        keep_going: bool,
        progress: evaluation.Progress,
    ) -> None:
        from toolsrv_lab.evaluation.strategies import failed_task

        solver = partial(task_solver, self._copy is not None)
        on_fault = failed_task if keep_going else None
        solve_cells(
            bench, scale, self._tasks, cells, self._log, solver,
            on_fault=on_fault, progress=progress.step,
        )  # fmt: skip

    def show(self, cells: Sequence[Cell]) -> None:
        show_tasks(cells, self._figures(cells), self._compared(cells))

    def document(self, cells: Sequence[Cell]) -> dict[str, Any]:
        found = self._figures(cells)
        return {
            "count": self.count,
            "cells": [
                _cell_fields(cell) | {"strata": {k: v.model_dump() for k, v in found[cell].items()}}
                for cell in cells
                if cell in found
            ],
            "differences": [one.model_dump() for one in self._compared(cells)],
        }

    def plot(self, cells: Sequence[Cell], folder: Path | None) -> None:
        found = self._figures(cells)
        shares = {
            f"{cell.model}: {cell.name}": {kind: one.solved for kind, one in figures.items()}
            for cell, figures in found.items()
        }
        evaluation.plot(folder, shares, "solved tasks, with 95 % intervals")

    def _figures(self, cells: Sequence[Cell]) -> dict[Cell, Any]:
        from toolsrv_lab.evaluation.strategies import by_stratum

        found = {cell: self._log.of(cell, list(self._tasks)) for cell in cells}
        return {cell: by_stratum(verdicts) for cell, verdicts in found.items() if verdicts}

    def _compared(self, cells: Sequence[Cell]) -> Any:
        """Return how each cell differs from the first one, on the tasks that both have."""
        from toolsrv_lab.evaluation.strategies import compare

        found = {
            f"{cell.model}: {cell.name}": self._log.of(cell, list(self._tasks)) for cell in cells
        }
        names = [name for name, verdicts in found.items() if verdicts]
        return [
            one
            for name in names[1:]
            for one in compare({name: found[name], names[0]: found[names[0]]})
        ]


class _Queries:
    """Queries over imported catalogs, with simulated responses."""

    simulate = "schema"

    def __init__(self, path: Path, copy: Registry | None) -> None:
        from toolsrv_lab.retrieval.queries import read_queries

        if copy is not None:
            raise UsageError(
                f"{str(path)!r} holds queries, and only the catalog that ships has other words",
                hint="name a file of tasks with --tasks, or leave --other-words out",
            )
        self._every = read_queries(path)
        self._queries: dict[str, Query] = {}
        self._apis: dict[str, Api] = {}
        self._left_out: dict[str, int] = {}
        self._log: CellLog[QueryResult]

    @property
    def count(self) -> int:
        return len(self._queries)

    def prepare(self, bench: Workbench, limit: int | None) -> None:
        from toolsrv_lab.evaluation.statistics import draw_by_stratum

        self._apis = {api.id: api for api in bench.registry().store.apis()}
        found, self._left_out = evaluation.usable_queries(self._every, self._apis)
        drawn = draw_by_stratum(
            found,
            limit,
            seed=bench.options().seed,
            key=_query_key,
            stratum=lambda one: one.set,
        )
        self._queries = {_query_key(one): one for one in drawn}

    def open(self, log: Any) -> None:
        from toolsrv_lab.evaluation.cells import CellLog
        from toolsrv_lab.evaluation.toolbench_queries import QueryResult

        self._log = CellLog(log, QueryResult)

    def run(
        self,
        bench: Workbench,
        scale: Scale,
        cells: Cells,
        keep_going: bool,
        progress: evaluation.Progress,
    ) -> None:
        from toolsrv_lab.evaluation.toolbench_queries import failed_query

        on_fault = failed_query if keep_going else None
        solve_cells(
            bench, scale, self._queries, cells, self._log, _query_solver,
            on_fault=on_fault, progress=progress.step,
        )  # fmt: skip

    def show(self, cells: Sequence[Cell]) -> None:
        show_queries(cells, self._figures(cells))

    def document(self, cells: Sequence[Cell]) -> dict[str, Any]:
        found = self._figures(cells)
        return {
            "count": self.count,
            "left_out": self._left_out,
            "cells": [
                _cell_fields(cell) | {"sets": {k: v.model_dump() for k, v in found[cell].items()}}
                for cell in cells
                if cell in found
            ],
        }

    def plot(self, cells: Sequence[Cell], folder: Path | None) -> None:
        shares = {
            f"{cell.model}: {cell.name}": {
                "needed APIs called": figures["all"].needed_called,
                "first function relevant": figures["all"].first_relevant,
                "invented arguments": figures["all"].invented_arguments,
                "finished": figures["all"].finished,
            }
            for cell, figures in self._figures(cells).items()
        }
        evaluation.plot(folder, shares, "queries over ToolBench, with 95 % intervals")

    def _figures(self, cells: Sequence[Cell]) -> dict[Cell, Any]:
        from toolsrv_lab.evaluation.toolbench_queries import by_set

        found = {cell: self._log.of(cell, list(self._queries)) for cell in cells}
        return {cell: by_set(results) for cell, results in found.items() if results}


def task_solver(other_words: bool, bench: Workbench) -> Solver[Task, SolveOptions, Verdict]:
    """Return what solves tasks over the catalog that ships, or over its copy in other words."""
    from toolsrv_lab.solving import FaultyCaller, solve_one
    from toolsrv_runtime.calls.transports import offline_transports

    bench.model()

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Slots[tuple[Task, SolveOptions], Verdict]]:
        with _copy() if other_words else contextlib.nullcontext() as copy:
            if copy is not None:
                copy.ensure_index(bench.progress)
            apis = {api.id: api for api in (copy or bench.registry()).store.apis()}

            @contextlib.asynccontextmanager
            async def slot() -> AsyncIterator[Make[tuple[Task, SolveOptions], Verdict]]:
                async with FaultyCaller(transports=offline_transports()) as caller:
                    solver = evaluation.solver_on(bench, caller, copy)

                    async def solve(item: tuple[Task, SolveOptions]) -> Verdict:
                        task, options = item
                        return await solve_one(
                            task, solver=solver, caller=caller, apis=apis, options=options
                        )

                    yield solve

            yield slot

    return opened


def _query_solver(bench: Workbench) -> Solver[Query, SolveOptions, QueryResult]:
    """Return what solves queries with simulated responses."""
    from toolsrv_lab.evaluation.toolbench_queries import judge_query
    from toolsrv_lab.execution import stateless

    solver = bench.solver(asks=True)  # responses are simulated: what changes something may go
    apis = {api.id: api for api in bench.registry().store.apis()}

    async def allow(_consent: Consent) -> bool:
        return True

    async def solve(item: tuple[Query, SolveOptions]) -> QueryResult:
        query, options = item
        strict = options.model_copy(update={"keep_on_fault": False})
        outcome = await solver.solve(query.query, strict, ask=allow)
        return judge_query(query, outcome, apis)

    return stateless(solve)


_Kind = _Tasks | _Queries


def _query_key(query: Query) -> str:
    """Return what tells a query from others: ids repeat from set to set."""
    return f"{query.set}/{query.query_id}"


def _cell_fields(cell: Cell) -> dict[str, Any]:
    return {"model": cell.model, "strategy": cell.strategy, "aids": cell.aids}

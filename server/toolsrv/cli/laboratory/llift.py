"""``toolsrv lab eval llift``: use before initialisation in C, LLift's elements one by one.

The work is done by ``toolsrv_lab.evaluation.llift``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.options import FiniteRange, GivenPath, example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Cell, CellLog, Solver
    from toolsrv_lab.evaluation.llift import LliftFigures, LliftResult
    from toolsrv_lab.evaluation.llift_cases import Case
    from toolsrv_runtime.solve import SolveOptions


@click.command(
    epilog=example("toolsrv lab eval llift --models model.gguf,http://host:8000/v1 --out DIR")
)
@click.option("--models", multiple=True, required=True, metavar="A,B",
              help="Chat models: GGUF files, names of installed models, addresses of "
              "OpenAI-compatible servers. May be given several times.")  # fmt: skip
@click.option("--elements", multiple=True, metavar="NAME+NAME,…",
              help="Sets of elements to compare: constraints, progressive, self-check, plan and "
              "votes with + between, or simple. [default: none, then one more at a time]")  # fmt: skip
@click.option("--runs", type=click.IntRange(1, 20), default=2, show_default=True,
              help="Runs of each case, to see how often they agree.")  # fmt: skip
@click.option("--temperature", type=FiniteRange(0, 2), default=0.5, show_default=True,
              help="Of the model; at 0 runs differ by nothing.")  # fmt: skip
@click.option("--strategy", type=click.Choice(["react", "dfsdt", "dfs", "cot"]), default="react",
              show_default=True, help="Strategy of a solve.")  # fmt: skip
@click.option("--cases", "path", type=GivenPath(), metavar="FILE",
              help="Cases of your own as JSON lines. [default: the 40 that ship]")  # fmt: skip
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE",
              help="Any option of a solve, for all cells: --set limits.seconds=60.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many cases, drawn by label with the seed.")  # fmt: skip
@evaluation.bench_options
@click.option("--keep-going", is_flag=True,
              help="Count a solve that a fault of the engine ended as undecided, and go on.")  # fmt: skip
@click.option("--out", type=GivenPath(), metavar="DIR",
              help="Keep results, report and plot here; the same command goes on there.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_llift(
    session: Session,
    /,
    models: tuple[str, ...],
    elements: tuple[str, ...],
    runs: int,
    temperature: float,
    strategy: str,
    path: Path | None,
    given: tuple[str, ...],
    limit: int | None,
    keep_going: bool,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Find uses of variables before their initialisation, with LLift's elements added one by one.

    The analysed function is in the task; the model asks for the source of what it calls. Per model
    and set of elements: precision, recall, accuracy, F1, and how often runs agree.
    """
    from toolsrv_lab.evaluation import llift
    from toolsrv_lab.evaluation.cells import CellLog
    from toolsrv_lab.evaluation.llift_cases import read_cases, shipped_cases
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.statistics import draw_by_stratum

    every = shipped_cases() if path is None else read_cases(path.expanduser())
    rows = llift.rows(evaluation.listed(elements))
    benches = [session.workbench(model=name, **flags) for name in evaluation.listed(models)]
    for bench in benches:
        scale.check(bench.settings)
    cells = [_cells(bench, strategy, rows, given) for bench in benches]
    if len({cell.identity for one in cells for cell in one}) < len(benches):
        raise UsageError("--models names a model twice", hint="name each once")
    seed = benches[0].options().seed
    cases = draw_by_stratum(
        every, limit, seed=seed, key=lambda one: one.id, stratum=lambda one: one.label
    )
    tasks = llift.runs_of(cases, runs)
    folder = evaluation.out_folder(out)
    settings = {
        "cases": evaluation.file_hash(path.expanduser()) if path else "shipped",
        "temperature": temperature,
        "set": sorted(given),
        "options": benches[0].options().model_dump(mode="json", exclude={"strategy", "aids"}),
    }
    with ResultLog(folder / evaluation.LOG if folder else None, settings) as log:
        kept = CellLog(log, llift.LliftResult)
        try:
            total = len(tasks) * sum(len(one) for one in cells)
            with evaluation.Progress("solving", total) as progress:
                for bench, one in zip(benches, cells, strict=True):
                    solve_cells(
                        bench, scale, tasks, one, kept, partial(_solver, temperature),
                        on_fault=llift.failed_case if keep_going else None,
                        progress=progress.step,
                    )  # fmt: skip
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(log) and not as_json:
                _show(_figures(cells, tasks, kept))
            raise
        found = _figures(cells, tasks, kept)
    document = {
        "cases": len(cases),
        "runs": runs,
        "settings": settings,
        "cells": [
            {"model": cell.model, "strategy": cell.strategy, "elements": cell.aids}
            | one.model_dump()
            for cell, one in found.items()
        ],
    }
    evaluation.write_report(folder, document)
    shares = {
        f"{cell.model}: {cell.aids}": {
            "precision": one.precision,
            "recall": one.recall,
            "accuracy": one.accuracy,
            "equal in all runs": one.consistent,
        }
        for cell, one in found.items()
    }
    evaluation.plot(folder, shares, "use before initialisation, with 95 % intervals")
    if as_json:
        emit_json(document)
    else:
        _show(found)


def _cells(
    bench: Workbench, strategy: str, rows: Sequence[str], given: Sequence[str]
) -> dict[Cell, SolveOptions]:
    """Return the cells of a model; a row of elements stands where other evaluations have aids."""
    from toolsrv_lab.evaluation.cells import Cell, make_options
    from toolsrv_lab.evaluation.llift import options_of

    name, identity = evaluation.identity(bench.settings)
    options = make_options(bench.options(), strategy, given=given)
    return {Cell(name, identity, strategy, row): options_of(options, row) for row in rows}


def _solver(
    temperature: float, bench: Workbench
) -> Solver[tuple[Case, int], SolveOptions, LliftResult]:
    """Return what solves cases with the model of a bench, each in a world of its own."""
    from toolsrv_lab.evaluation import llift
    from toolsrv_lab.evaluation.llift_cases import CaseWorld
    from toolsrv_lab.execution import stateless
    from toolsrv_runtime import solve

    model = evaluation.chat_model_of(bench)
    engine, profile = bench.model()
    profile = profile.model_copy(update={"temperature": temperature})

    async def solve_case(item: tuple[tuple[Case, int], SolveOptions]) -> LliftResult:
        (case, run), options = item
        world = CaseWorld(case)
        solver = solve.Solver(retriever=world, engine=engine, profile=profile, caller=world)
        return await llift.solve_case(case, run, options, solver=solver, world=world, model=model)

    return stateless(solve_case)


def _figures(
    cells: Sequence[Mapping[Cell, SolveOptions]],
    tasks: Mapping[str, Any],
    log: CellLog[LliftResult],
) -> dict[Cell, LliftFigures]:
    from toolsrv_lab.evaluation.llift import by_cell

    return by_cell({cell: log.of(cell, list(tasks)) for one in cells for cell in one})


def _show(found: Mapping[Cell, LliftFigures]) -> None:
    table(
        ("model", "elements", "TN#", "TP#", "FP#", "FN#", "precision#", "recall#", "accuracy#",
         "F1#", "equal#"),
        [
            (
                cell.model,
                cell.aids,
                str(one.true_negatives),
                str(one.true_positives),
                str(one.false_positives),
                str(one.false_negatives),
                *map(evaluation.share_text, (one.precision, one.recall, one.accuracy)),
                _f1_text(one),
                evaluation.share_text(one.consistent),
            )
            for cell, one in found.items()
        ],
        title="use before initialisation: the first run; equal: one verdict in all runs (95 % interval)",
    )  # fmt: skip
    table(
        ("model", "elements", "undecided#", "needed sources read#", "s#", "generated#", "replies#",
         "calls#", "statuses"),
        [
            (
                cell.model,
                cell.aids,
                evaluation.share_text(one.undecided),
                evaluation.share_text(one.needed_read),
                *map(
                    evaluation.mean_text, (one.seconds, one.generated, one.replies, one.calls)
                ),
                evaluation.counts_text(one.statuses),
            )
            for cell, one in found.items()
        ],
        title="what it took: means per solve",
    )  # fmt: skip


def _f1_text(one: LliftFigures) -> str:
    if one.f1 is None or one.f1_low is None or one.f1_high is None:
        return ""
    return f"{one.f1:.2f} ({one.f1_low:.2f}-{one.f1_high:.2f})"

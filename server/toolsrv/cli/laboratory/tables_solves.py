"""Tables 3, 4, 6 and LoRA of ``toolsrv lab tables``: solves on their result log, and judged answers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import solve_cells
from toolsrv.cli.laboratory.tables_runs import (
    ANSWER_FOLDERS,
    BASE,
    FOR_DATA,
    FOR_MODELS,
    WORLD_TEXTS,
    WORLDS,
    Request,
    without,
)
from toolsrv.cli.laboratory.tooleval import RULES, open_judge
from toolsrv.cli.output import note
from toolsrv.cli.session import Session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import CellLog, Solver
    from toolsrv_lab.execution import Make
    from toolsrv_lab.paper_tables.rates import Judged
    from toolsrv_lab.paper_tables.solves import SolveCell, TableSolve, TableTask
    from toolsrv_lab.paper_tables.table import PaperTable, Provenance
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_lab.tooleval.answer_sets import AnswerSet
    from toolsrv_lab.tooleval.judge import Judge
    from toolsrv_lab.tooleval.win_rate import Comparison
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.result import Consent
    from toolsrv_runtime.solve import SolveOptions

SOLVES, ANSWERS = "solves.jsonl", "answers"
"""Log and answer files in an ``--out`` folder."""


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of the tables: what it is called with, its bench, and its rows."""

    given: str
    option: str
    bench: Workbench
    cells: tuple[SolveCell, ...]


def solves(session: Session, request: Request, numbers: Sequence[str]) -> list[PaperTable]:
    """Solve what the log lacks, judge all answers, and return the tables of ``numbers``.

    Raises:
        UsageError: no query fits, or a model is named twice.
        DataError: a solve or a vote failed; says what is kept.
    """
    from toolsrv_lab.evaluation.cells import CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.paper_tables import rates
    from toolsrv_lab.paper_tables.solves import TableSolve

    models = _models(session, request, numbers)
    bench = models[0].bench
    apis = {api.id: api for api in bench.registry().store.apis()}
    subsets = _subsets(request, apis, bench.options().seed)
    total = sum(len(some) for some in subsets.values()) * sum(len(one.cells) for one in models)
    with ResultLog(request.folder / SOLVES, _settings(request, bench)) as log:
        kept = CellLog(log, TableSolve)
        try:
            with evaluation.Progress("solving", total) as progress:
                for one in models:
                    _solve(request, one, subsets, kept, progress)
        except KeyboardInterrupt:
            note(log.kept())
            raise
        cells = [cell for one in models for cell in one.cells]
        _write_answers(request.folder, cells, subsets, kept)
        compared = bool({"4", "6"}.intersection(numbers))
        reference, rows = _judged(session, request, models, subsets, kept, compared=compared)
    first = rows[reference]
    found: list[PaperTable] = []
    if "3" in numbers:
        oracle = [row for cell, row in rows.items() if cell.apis == "oracle"]
        found.append(rates.strategies_table(oracle, list(subsets)))
    main = [row for cell, row in rows.items() if _in_main(request, cell)]
    if "4" in numbers:
        found += rates.main_tables(main, list(subsets), first.name)
    if "6" in numbers:
        found += rates.tie_tables(main, list(subsets), first.name)
    return _judge_noted(found, first)


def _in_main(request: Request, cell: SolveCell) -> bool:
    return cell.strategy in request.strategies and cell.apis in request.apis


def _models(session: Session, request: Request, numbers: Sequence[str]) -> list[_Model]:
    from toolsrv_lab.paper_tables.solves import cells_of

    strategies = request.strategies if {"4", "6"}.intersection(numbers) else ()
    found = []
    named = [("models", one) for one in request.models] + [("base", one) for one in request.base]
    for option, given in named:
        bench = session.workbench(model=given, **request.bench, **WORLDS[request.world])
        request.scale.check(bench.settings)
        name, identity = evaluation.identity(bench.settings)
        label = f"{name} ({BASE})" if option == "base" else name
        cells = cells_of(label, identity, strategies, request.apis, repeated="3" in numbers)
        found.append(_Model(given, option, bench, tuple(cells)))
    if len({one.cells[0].identity for one in found}) < len(found):
        raise UsageError("--models and --base name a model twice", hint="name each once")
    return found


def _subsets(request: Request, apis: Mapping[str, Api], seed: int) -> dict[str, list[Query]]:
    from toolsrv_lab.evaluation.stable import name_of
    from toolsrv_lab.paper_tables.subsets import draw_subsets

    usable, _ = evaluation.usable_queries(request.read_queries(), apis)
    if len({name_of(one) for one in usable}) < len(usable):
        raise UsageError("two queries of one set have the same id", hint="name each file once")
    return draw_subsets(usable, request.limit, seed=seed)


def _settings(request: Request, bench: Workbench) -> dict[str, Any]:
    """Return what solves depend on besides query and cell."""
    catalogs = [one.name for one in bench.registry().store.catalogs() if one.enabled]
    run = ("profile", "adapter", "faithful", "faithful_in")
    return {
        "options": bench.options().model_dump(mode="json", exclude={"strategy", "category"}),
        "set": sorted(request.given),
        "world": request.world,
        "catalogs": sorted(catalogs),
        "queries": sorted(evaluation.file_hash(one.expanduser()) for one in request.queries),
    } | {key: str(value) for key, value in request.bench.items() if key in run and value}


def _solve(
    request: Request,
    model: _Model,
    subsets: Mapping[str, Sequence[Query]],
    log: CellLog[TableSolve],
    progress: evaluation.Progress,
) -> None:
    """Solve what the log lacks of a model's rows; what repeats a search tree's cost comes after it."""
    from toolsrv_lab.evaluation.cells import make_options
    from toolsrv_lab.evaluation.stable import name_of
    from toolsrv_lab.paper_tables import solves as work

    base = model.bench.options()
    given = make_options(base, base.strategy, given=request.given)
    queries = {name_of(one): one for some in subsets.values() for one in some}
    for repeats in (False, True):
        rows = [one for one in model.cells if (one.strategy == "react-n") == repeats]
        if not rows:
            continue
        tasks = {
            name: work.TableTask(one, work.tree_replies(rows[0], name, log) if repeats else None)
            for name, one in queries.items()
        }
        solve_cells(
            model.bench, request.scale, tasks, {one.cell: (one, work.base_options(given, one)) for one in rows},
            log, partial(_solver, request.world),
            on_fault=work.failed_solve if request.keep_going else None, progress=progress.step,
        )  # fmt: skip


def _solver(
    world: str, bench: Workbench
) -> Solver[TableTask, tuple[SolveCell, SolveOptions], TableSolve]:
    """Return what solves queries with the model of a bench."""
    from toolsrv.calls.callable_apis import CallableRetriever
    from toolsrv_lab.evaluation.stable_world import QueryRetriever
    from toolsrv_lab.paper_tables.solves import solve_query
    from toolsrv_runtime import solve

    apis = {api.id: api for api in bench.registry().store.apis()}
    caller = bench.caller()
    invented = world != "live"  # what changes something may go: nothing is sent
    search = CallableRetriever(bench.searchable(), lambda api: caller.can_call(api, asks=invented))
    engine, profile = bench.model()
    prompts = bench.prompts() if profile.format == "toolllama" else None

    async def allow(_consent: Consent) -> bool:
        return True

    @contextlib.asynccontextmanager
    async def slot() -> AsyncIterator[Make[Any, TableSolve]]:
        retriever = QueryRetriever(search)
        solver = solve.Solver(
            retriever=retriever, engine=engine, profile=profile, caller=caller,
            prompts=prompts, fidelity=bench.fidelity(),
        )  # fmt: skip

        async def make(item: tuple[TableTask, tuple[SolveCell, SolveOptions]]) -> TableSolve:
            task, (cell, options) = item
            return await solve_query(
                task, options, cell, solver=solver, retriever=retriever, apis=apis,
                answer=partial(evaluation.answer_of_solve, bench, apis),
                ask=allow if invented else None,
            )  # fmt: skip

        yield make

    return lambda: contextlib.nullcontext(slot)


def _write_answers(
    folder: Path,
    cells: Iterable[SolveCell],
    subsets: Mapping[str, Sequence[Query]],
    log: CellLog[TableSolve],
) -> None:
    """Write ``answers/ROW/SUBSET/ID_STRATEGY.json`` of all results that have an answer."""
    from toolsrv_lab.evaluation.stable import name_of
    from toolsrv_runtime.toolbench.answer_files import parse_answer

    for cell in cells:
        for subset, queries in subsets.items():
            place = folder / ANSWERS / _file_name(cell.name) / _file_name(subset)
            for query in queries:
                found = log.get(cell.cell, name_of(query))
                if found is not None and found.answer is not None:
                    answer = parse_answer(found.answer, f"the answer to {name_of(query)}")
                    evaluation.write_answer_file(place, query.query_id, cell.strategy, answer)


def _file_name(name: str) -> str:
    from toolsrv_registry.file_names import portable_name

    return portable_name(name.replace("/", "-").replace(", ", "-").replace(" ", "-")) or "answers"


def _judged(
    session: Session,
    request: Request,
    models: Sequence[_Model],
    subsets: Mapping[str, Sequence[Query]],
    log: CellLog[TableSolve],
    *,
    compared: bool,
) -> tuple[SolveCell, dict[SolveCell, Judged]]:
    """Return the cell that others are compared with, and the judged row of each cell.

    Only rows of tables 4 and 6 are ``compared``.
    """
    from toolsrv_lab.evaluation.stable import name_of
    from toolsrv_lab.paper_tables.rates import Judged
    from toolsrv_lab.paper_tables.solves import answer_set, simulated_share

    cells = {cell: one for one in models for cell in one.cells}
    reference = next((one for one in cells if one.strategy == "react"), next(iter(cells)))
    sets = {
        cell: {name: answer_set(cell, name, some, log) for name, some in subsets.items()}
        for cell in cells
    }
    main = [cell for cell in cells if compared and _in_main(request, cell)]
    passed, won, judge = _judge_sets(session, request, sets, reference, main)
    rows = {}
    for cell, model in cells.items():
        results = {
            name: log.of(cell.cell, [name_of(one) for one in some])
            for name, some in subsets.items()
        }
        rows[cell] = Judged(
            name=cell.name,
            made=_made(request, (reference, cells[reference]), (cell, model), judge),
            passed=passed[cell],
            simulated={name: simulated_share(some) for name, some in results.items()},
            seconds={
                name: [one.solved.usage.seconds for one in some] for name, some in results.items()
            },
            won=won.get(cell, {}),
        )
    return reference, rows


def _made(
    request: Request,
    reference: tuple[SolveCell, _Model],
    row: tuple[SolveCell, _Model],
    judge: str,
) -> Callable[[str, bool], Provenance]:
    """Return what says how a value of a row was made: the command that makes no other row."""
    from toolsrv_lab.paper_tables.table import Provenance

    def made(number: str, compared: bool) -> Provenance:
        sides = [reference, row] if compared else [row]
        named: dict[str, dict[str, None]] = {"models": {}, "base": {}}
        for _, model in sides:
            named[model.option][model.given] = None
        chosen: dict[str, Any] = {"strategies": None, "apis": None}  # Table 3 has its own
        if number != "3":
            chosen = {
                "strategies": ",".join(dict.fromkeys(cell.strategy for cell, _ in sides)),
                "apis": ",".join(dict.fromkeys(cell.apis for cell, _ in sides)),
            }
        command = request.command(
            numbers=number,
            **{option: ",".join(names) or None for option, names in named.items()},
            **chosen,
            **without(*FOR_DATA),
        )
        return Provenance(
            command=command,
            seed=row[1].bench.options().seed,
            world=WORLD_TEXTS[request.world],
            judge=judge,
        )

    return made


def _judge_sets(
    session: Session,
    request: Request,
    sets: Mapping[Any, Mapping[str, AnswerSet]],
    reference: Any,
    compared: Collection[Any],
) -> tuple[dict[Any, Any], dict[Any, Any], str]:
    """Return labels, comparisons with the reference of some rows, and the judge's name.

    Both are by row and subset.
    """
    from toolsrv_lab.tooleval import pass_rate

    labels: dict[Any, dict[str, Any]] = {}
    won: dict[Any, dict[str, Any]] = {}
    counts = {row: sum(len(one.answers) for one in some.values()) for row, some in sets.items()}
    others = [row for row in sets if row in compared and row != reference]
    total = sum(counts.values()) + sum(counts[row] for row in others)
    with (
        open_judge(session, request.folder, request.judge) as (judge, _votes, seed),
        evaluation.Progress("judging", total) as progress,
    ):
        shared: dict[str, Any] = {
            "seed": seed,
            "jobs": request.judge["jobs"],
            "progress": lambda: progress.step(True),
        }
        for row, by_subset in sets.items():
            found = pass_rate.label_sets(judge, list(by_subset.values()), request.times, **shared)
            labels[row] = dict(zip(by_subset, found, strict=True))
        for row in others:
            won[row] = {
                name: _compared(
                    judge, request,
                    (sets[reference][name], one),
                    (labels[reference][name], labels[row][name]),
                    shared,
                )
                for name, one in sets[row].items()
                if name in sets[reference]
            }  # fmt: skip
    return labels, won, judge.name


def _compared(
    judge: Judge,
    request: Request,
    sets: tuple[AnswerSet, AnswerSet],
    labels: tuple[Any, Any],
    shared: Mapping[str, Any],
) -> dict[str, Comparison]:
    from toolsrv_lab.tooleval import win_rate

    return win_rate.compare_sets(judge, sets, labels, request.rounds, **shared)


def _judge_noted(tables: Sequence[PaperTable], row: Judged) -> list[PaperTable]:
    """Return tables that say what their judge is worth, or how to find out."""
    judge = row.made("", False).judge
    if judge == RULES:
        text = (
            "The judge `rules` needs no model and agrees with people no better than chance: compare its "
            "rates with each other, not with the paper's, whose judge is ChatGPT."
        )
    else:
        text = (
            f"Judged by {judge}, in the paper by ChatGPT. `toolsrv lab eval agreement shipped --judge …` "
            "says whether a judge may be quoted."
        )
    return [one.model_copy(update={"notes": (*one.notes, text)}) for one in tables]


# LoRA and full fine-tuning


def tuning(
    session: Session, request: Request, full: Sequence[Path], lora: Sequence[Path]
) -> list[PaperTable]:
    """Return the tables of full fine-tuning and LoRA, from folders of answers.

    Raises:
        DataError: a folder cannot be read, or the two share no query.
    """
    from toolsrv_lab.paper_tables.rates import Judged, tuning_tables
    from toolsrv_lab.paper_tables.subsets import SUBSETS, ordered
    from toolsrv_lab.paper_tables.table import Provenance
    from toolsrv_lab.tooleval.win_rate import paired

    whole, tuned = _answer_sets(full, "full"), _answer_sets(lora, "LoRA")
    names_of = {id(one): name for name, one in whole.items()}
    pairs = paired(list(whole.values()), list(tuned.values()))
    if len(pairs) < max(len(whole), len(tuned)):
        note(f"note: only one side has the other subsets: {len(pairs)} are compared")
    sides = {  # of a pair whose folders have names of their own the first one's counts
        name: {names_of[id(pair[0])]: pair[at] for pair in pairs}
        for at, name in enumerate(("full", "LoRA"))
    }
    passed, won, judge = _judge_sets(session, request, sides, "full", sides)
    others = without("queries", "apibench", *ANSWER_FOLDERS, *FOR_MODELS)
    made = Provenance(
        command=request.command(numbers="lora", **others),
        seed=request.judge["seed"] or 0,
        world="not said by the files",
        judge=judge,
    )
    rows = [
        Judged(name, lambda _n, _c: made, passed[name], won=won.get(name, {})) for name in sides
    ]
    names = ordered([one for some in sides.values() for one in some], SUBSETS)
    return _judge_noted(tuning_tables(rows, names), rows[0])


def _answer_sets(paths: Sequence[Path], model: str) -> dict[str, AnswerSet]:
    """Return the answers of some folders by subset, in the paper's names where they have one."""
    from toolsrv_lab.paper_tables.subsets import subset_named
    from toolsrv_lab.tooleval.answer_sets import AnswerSet, read_sets

    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        place = path.expanduser()
        folders = sorted(one for one in place.glob("*") if one.is_dir()) if place.is_dir() else []
        for folder in folders or [place]:
            for one in read_sets(folder):
                found.setdefault(subset_named(one.subset), {}).update(one.answers)
    return {name: AnswerSet(model, name, answers) for name, answers in found.items()}

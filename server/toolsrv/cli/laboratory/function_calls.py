"""``toolsrv lab eval bfcl``, ``choice`` and ``unseen``: function calls of a chat model.

``bfcl`` judges calls by the Berkeley leaderboard's AST checker. ``choice`` and ``unseen`` judge the
first call of a task. The work is done by ``toolsrv_lab.evaluation``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.evaluation import share_cell
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.options import GivenPath, engine_model_option, example, json_option, model_option
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.bfcl import CaseResult, CategoryFigures, Mode
    from toolsrv_lab.evaluation.bfcl_data import Case
    from toolsrv_lab.evaluation.cells import Solver
    from toolsrv_lab.evaluation.first_calls import Choice, ChoiceFigures, ChoiceRequest
    from toolsrv_lab.evaluation.statistics import Difference

DEFAULT = "simple_python,multiple,parallel,parallel_multiple,irrelevance"
Figures = Mapping[str, Mapping[str, "CategoryFigures"]]


@click.command(epilog=example("toolsrv lab eval bfcl --model model.gguf --limit 40 --free"))
@model_option
@engine_model_option
@click.option("--categories", multiple=True, default=(DEFAULT,), show_default=True,
              metavar="NAME,…", help="simple_python, multiple, parallel, parallel_multiple, "
              "irrelevance, and live_ before any (live_simple).")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many cases of each category, drawn with the seed.")  # fmt: skip
@click.option("--free", is_flag=True, help="Ask without a grammar as well, and compare.")
@click.option("--package", type=GivenPath(), metavar="DIR",
              help="Where bfcl-eval is: pip install --no-deps --target DIR bfcl-eval. "
              "[default: the installed one]")  # fmt: skip
@evaluation.bench_options
@click.option("--out", type=GivenPath(), metavar="DIR",
              help="Keep results, report and plot here; the same command goes on there.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_bfcl(
    session: Session,
    /,
    categories: tuple[str, ...],
    limit: int | None,
    free: bool,
    package: Path | None,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Ask a chat model for the calls of BFCL's cases; count those its AST checker accepts.

    The reply is held to calls of the case's functions, or of one that says that none fits. Nothing
    is called.
    """
    from toolsrv_lab.evaluation.bfcl import MAX_TOKENS, CaseResult, figures, official
    from toolsrv_lab.evaluation.bfcl_data import open_package
    from toolsrv_lab.evaluation.cells import Cell, CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.statistics import draw

    package = package.expanduser().absolute() if package else None
    bfcl = open_package(package)
    bench = session.workbench(**flags)
    scale.check(bench.settings)
    seed = bench.options().seed
    drawn = [
        draw(bfcl.cases(name), limit, seed=seed, key=lambda one: one.id)
        for name in evaluation.listed(categories)
    ]
    cases = _in_turn(drawn)
    modes: tuple[Mode, ...] = ("held", "free") if free else ("held",)
    name, identity = evaluation.identity(bench.settings)
    cells = {Cell(name, identity, mode): mode for mode in modes}
    folder = evaluation.out_folder(out)
    settings = {"bfcl": bfcl.version, "max_tokens": MAX_TOKENS}
    with ResultLog(folder / evaluation.LOG if folder else None, settings) as log:
        kept = CellLog(log, CaseResult)
        try:
            with evaluation.Progress("asking", len(cases) * len(modes)) as progress:
                solve_cells(
                    bench, scale, {one.id: one for one in cases}, cells, kept,
                    partial(_solver, package, modes), progress=progress.step,
                )  # fmt: skip
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(log) and not as_json:
                _show_bfcl(name, figures(kept, cells, cases), official(name))
            raise
        found = figures(kept, cells, cases)
    document = _document(name, settings, found, cases)
    evaluation.write_report(folder, document)
    shares = {mode: {k: v.right for k, v in of.items()} for mode, of in found.items()}
    evaluation.plot(folder, shares, f"BFCL, {name}", document["official"]["scores"])
    if as_json:
        emit_json(document)
    else:
        _show_bfcl(name, found, official(name))


def _in_turn(groups: Sequence[Sequence[Case]]) -> list[Case]:
    """Return cases of each category in turn, so that a run that is cut short has some of each."""
    return [case for row in zip_longest(*groups) for case in row if case is not None]


def _solver(
    package: Path | None, modes: Sequence[Mode], bench: Workbench
) -> Solver[Case, Mode, CaseResult]:
    """Return what asks the model of a bench; the setting of a cell is its mode."""
    from toolsrv_lab.evaluation.bfcl import ask
    from toolsrv_lab.evaluation.bfcl_data import open_package
    from toolsrv_lab.evaluation.cells import in_thread
    from toolsrv_lab.execution import stateless

    bfcl = open_package(package)
    models = {mode: evaluation.chat_model_of(bench, free=mode == "free") for mode in modes}

    async def solve(item: tuple[Case, Mode]) -> CaseResult:
        case, mode = item
        return await in_thread(lambda stop: ask(models[mode], case, mode, bfcl, stop=stop))

    return stateless(solve)


def _document(
    name: str, settings: Mapping[str, Any], found: Figures, cases: Sequence[Case]
) -> dict[str, Any]:
    from toolsrv_lab.evaluation.bfcl import OFFICIAL, official

    key = official(name)
    return {
        "model": name,
        "settings": dict(settings),
        "cases": len(cases),
        "modes": {
            mode: {category: one.model_dump() for category, one in of.items()}
            for mode, of in found.items()
        },
        "official": {"model": key, "scores": dict(OFFICIAL.get(key, {}))},
    }


def _show_bfcl(name: str, found: Figures, key: str) -> None:
    from toolsrv_lab.evaluation.bfcl import OFFICIAL

    scores = OFFICIAL.get(key, {})
    columns = ["category", *(f"{mode}#" for mode in found), *([f"{key}#"] if key else [])]
    categories = list(dict.fromkeys(one for of in found.values() for one in of))
    rows = []
    for category in categories:
        row = [category]
        row += [
            evaluation.share_text(of[category].right) if category in of else ""
            for of in found.values()
        ]
        if key:
            row.append(f"{100 * scores[category]:.1f}" if category in scores else "")
        rows.append(row)
    table(columns, rows, title=f"{name}: right of all, % (95 % interval)")
    table(
        ("category", "run", "s#", "prompt#", "evaluated#", "generated#", "errors"),
        [
            (
                category,
                mode,
                evaluation.mean_text(one.seconds),
                evaluation.mean_text(one.prompt_tokens),
                evaluation.mean_text(one.evaluated),
                evaluation.mean_text(one.generated),
                evaluation.counts_text(dict(list(one.errors.items())[:3])),
            )
            for category in categories
            for mode, of in found.items()
            if (one := of.get(category)) is not None
        ],
        title="means per case: seconds and tokens; the most frequent errors",
    )


@click.command(epilog=example("toolsrv lab eval choice --queries queries_dev.jsonl"))
@click.option("--queries", "path", type=GivenPath(), required=True, metavar="FILE",
              help="JSON lines, or a ToolBench instruction file, with lists of APIs.")  # fmt: skip
@model_option
@click.option("--limit", type=click.IntRange(1), help="Only so many queries, evenly picked.")
@evaluation.bench_options
@json_option
@pass_session
def eval_choice(
    session: Session, /, path: Path, limit: int | None, as_json: bool, **flags: Any
) -> None:
    """Count how often a model first calls a relevant API of those that a query lists.

    The model with the retriever's help, the model alone, the retriever alone, and chance. Nothing
    is called.
    """
    from toolsrv_lab.evaluation.first_calls import by_set, usable
    from toolsrv_lab.retrieval.queries import read_queries

    queries = read_queries(path.expanduser())
    bench = session.workbench(**flags)
    apis = {api.id: api for api in bench.registry().store.apis()}
    asked, left_out = usable(queries, apis)
    if not asked:
        raise UsageError(
            f"no query of {str(path)!r} lists a relevant API of the enabled catalogs",
            hint="import and enable the catalog that the queries were written for",
        )
    if limit is not None:
        asked = asked[:: max(1, len(asked) // limit)][:limit]
    choices = _choices(bench, asked)
    found = by_set(choices)
    for reason, count in left_out.items():
        note(f"note: {count} of {len(queries)} queries {reason}: left out")
    if not as_json:
        _show_choice(found)
        return
    emit_json(
        {
            "file": str(path),
            "model": str(bench.settings.model or "shipped"),
            "left_out": left_out,
            "sets": {name: one.model_dump() for name, one in found.items()},
            "choices": [one.model_dump() for one in choices],
        }
    )


def _choices(bench: Workbench, asked: list[ChoiceRequest]) -> list[Choice]:
    from toolsrv_lab.evaluation.first_calls import choose
    from toolsrv_runtime.solve import build_format

    retriever = bench.searchable().retriever
    engine, profile = bench.engine()
    with Bar("choosing", "queries") as bar, interruptible():
        return choose(
            asked,
            helped=build_format(engine, profile, prior=retriever),
            alone=build_format(engine, profile, prior=None),
            rank=lambda text, pool: retriever.rank(text, among=pool),
            seed=bench.options().seed,
            progress=bar.show,
        )


def _show_choice(found: dict[str, ChoiceFigures]) -> None:
    table(
        ("set", "queries#", "with retriever#", "model alone#", "retriever#", "chance#"),
        [
            (
                name,
                one.queries,
                share_cell(one.helped),
                share_cell(one.alone),
                share_cell(one.retriever),
                "" if one.chance.mean is None else f"{100 * one.chance.mean:.0f}",
            )
            for name, one in found.items()
        ],
        title="% of queries whose first call is relevant (95 % interval)",
    )
    last = list(found.values())[-1]
    note(
        f"model with retriever less retriever: {_points(last.helped_less_retriever)} points; "
        f"less model alone: {_points(last.helped_less_alone)}; "
        f"called nothing: {share_cell(last.quiet_helped)} % with, "
        f"{share_cell(last.quiet_alone)} % without"
    )


def _points(one: Difference) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "none"
    return f"{100 * one.value:+.0f} ({100 * one.low:+.0f} to {100 * one.high:+.0f})"


_HITS = 3
"""Hits that are looked at for each API that is offered: some of them do the same."""


@click.command(epilog=example("toolsrv lab eval unseen --count 200"))
@model_option
@click.option("--count", type=click.IntRange(1), default=300, show_default=True,
              help="APIs that are asked for, one need each.")  # fmt: skip
@click.option("--offered", type=click.IntRange(2, 9), default=9, show_default=True,
              help="APIs that are offered for a need.")  # fmt: skip
@click.option("--beside", type=click.Choice(["hits", "category"]), default="hits",
              show_default=True,
              help="Which others: a search's hits, or some of its tool and category.")  # fmt: skip
@evaluation.bench_options
@json_option
@pass_session
def eval_unseen(
    session: Session, /, count: int, offered: int, beside: str, as_json: bool, **flags: Any
) -> None:
    """Count right first functions and exact arguments on tools held out of training.

    Needs are those that come with the laboratory; a tool is held out by the hash of its name, as
    lab episodes does it. With the retriever's help, and alone. Nothing is called.
    """
    from toolsrv_catalogs.offline import load_offline_catalog
    from toolsrv_lab.evaluation.first_calls import (
        judge_call,
        of_category,
        unseen_figures,
        unseen_request,
    )
    from toolsrv_lab.instructions.writer import is_held_out
    from toolsrv_lab.nano.pipeline import HELD_OUT
    from toolsrv_runtime.solve import build_format

    bench = session.workbench(**flags)
    own = {api.id for api in load_offline_catalog().apis}
    held = [
        api
        for api in bench.registry().store.apis()
        if api.id not in own and is_held_out(api, HELD_OUT)
    ]
    if not held:
        raise UsageError(
            "no API of the enabled catalogs is held out of training",
            hint="import a ToolBench catalog: toolsrv catalog import toolenv.tar.gz",
        )
    retriever = bench.searchable().retriever
    engine, profile = bench.engine()
    hits = _HITS * offered
    others = {
        "hits": lambda told: [hit.api for hit in retriever.search(told.text, hits).hits],
        "category": of_category(held, offered, bench.options().seed),
    }
    asked = unseen_request(held, others[beside], count, offered=offered, seed=bench.options().seed)
    if not asked:
        raise UsageError(
            "no need is written for the APIs that are held out",
            hint="import the catalog that the needs were written for",
        )
    found = {}
    for name, prior in (("with retriever", retriever), ("model alone", None)):
        with Bar(name, "needs") as bar, interruptible():
            form = build_format(engine, profile, prior=prior)
            found[name] = judge_call(asked, form, progress=bar.show)
    if as_json:
        emit_json(
            {
                "model": str(bench.settings.model or "shipped"),
                "offered": offered,
                "beside": beside,
                "figures": {k: unseen_figures(v).model_dump() for k, v in found.items()},
                "calls": {k: [one.model_dump() for one in v] for k, v in found.items()},
            }
        )
        return
    shares = {name: unseen_figures(called) for name, called in found.items()}
    table(
        ("", "needs#", "tools#", "right function#", "exact arguments#", "of those with values#"),
        [
            (
                name,
                one.needs,
                one.tools,
                share_cell(one.function),
                share_cell(one.arguments),
                share_cell(one.spoken_arguments),
            )
            for name, one in shares.items()
        ],
        title="% of first calls, arguments given the function (95 % interval)",
    )

"""``toolsrv lab eval bfcl``: function calls judged by the Berkeley leaderboard's AST checker.

The work is done by ``toolsrv_lab.evaluation.bfcl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import lab_eval
from toolsrv.cli.options import engine_model_option, example, json_option, model_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.bfcl import CategoryFigures, Mode
    from toolsrv_lab.evaluation.bfcl_data import Case

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
@click.option("--package", type=click.Path(path_type=Path), metavar="DIR",
              help="Where bfcl-eval is: pip install --no-deps --target DIR bfcl-eval. "
              "[default: the installed one]")  # fmt: skip
@click.option("--seed", type=int, help="Seed of the draw.")
@click.option("--threads", type=int, help="Model threads; 0: automatic.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Keep results, report and plot here; the same command goes on there.")  # fmt: skip
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
    as_json: bool,
    **flags: Any,
) -> None:
    """Ask a chat model for the calls of BFCL's cases; count those its AST checker accepts.

    The reply is held to calls of the case's functions, or of one that says that none fits. Nothing
    is called.
    """
    from toolsrv_lab.evaluation.bfcl import MAX_TOKENS, BfclRun, official
    from toolsrv_lab.evaluation.bfcl_data import open_package
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.sampling import draw

    bfcl = open_package(package.expanduser() if package else None)
    bench = session.workbench(**flags)
    seed = bench.settings.seed
    drawn = [
        draw(bfcl.cases(name), limit, seed=seed, key=lambda one: one.id)
        for name in lab_eval.listed(categories)
    ]
    cases = [case for group in drawn for case in group]
    modes: tuple[Mode, ...] = ("held", "free") if free else ("held",)
    name, identity = lab_eval.identity(bench.settings)
    folder = lab_eval.out_folder(out)
    settings = {"bfcl": bfcl.version, "max_tokens": MAX_TOKENS}
    with ResultLog(folder / lab_eval.LOG if folder else None, settings) as log:
        run = BfclRun(log, identity)
        try:
            if run.lacks(cases, modes):
                _ask(bench, run, _in_turn(drawn), modes, bfcl)
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(log) and not as_json:
                _show(name, run.figures(cases, modes), official(name))
            raise
        found = run.figures(cases, modes)
    document = _document(name, settings, found, cases)
    lab_eval.write_report(folder, document)
    shares = {mode: {k: v.right for k, v in of.items()} for mode, of in found.items()}
    lab_eval.plot(folder, shares, f"BFCL, {name}", document["official"]["scores"])
    if as_json:
        emit_json(document)
    else:
        _show(name, found, official(name))


def _in_turn(groups: Sequence[Sequence[Case]]) -> list[Case]:
    """Return cases of each category in turn, so that a run that is cut short has some of each."""
    return [case for row in zip_longest(*groups) for case in row if case is not None]


def _ask(
    bench: Workbench, run: Any, cases: Sequence[Case], modes: Sequence[Mode], bfcl: Any
) -> None:
    models = {mode: lab_eval.chat_model_of(bench, free=mode == "free") for mode in modes}
    with (
        lab_eval.Progress("asking", len(cases) * len(modes)) as progress,
        lab_eval.stop_on_interrupt() as stop,
    ):
        run.run(models, cases, bfcl, stop=stop, progress=progress.step)


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


def _show(name: str, found: Figures, key: str) -> None:
    from toolsrv_lab.evaluation.bfcl import OFFICIAL

    scores = OFFICIAL.get(key, {})
    columns = ["category", *(f"{mode}#" for mode in found), *([f"{key}#"] if key else [])]
    categories = list(dict.fromkeys(one for of in found.values() for one in of))
    rows = []
    for category in categories:
        row = [category]
        row += [
            lab_eval.share_text(of[category].right) if category in of else ""
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
                lab_eval.mean_text(one.seconds),
                lab_eval.mean_text(one.prompt_tokens),
                lab_eval.mean_text(one.evaluated),
                lab_eval.mean_text(one.generated),
                lab_eval.counts_text(dict(list(one.errors.items())[:3])),
            )
            for category in categories
            for mode, of in found.items()
            if (one := of.get(category)) is not None
        ],
        title="means per case: seconds and tokens; the most frequent errors",
    )

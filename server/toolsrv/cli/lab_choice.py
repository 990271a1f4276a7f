"""``toolsrv lab eval choice``: whether the first function that a model calls is a relevant one.

The work is done by ``toolsrv_lab.evaluation.choice``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.lab_solve_view import share_cell
from toolsrv.cli.options import example, json_option, model_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.choice import Asked, Choice, ChoiceFigures
    from toolsrv_lab.evaluation.statistics import Difference


@click.command(epilog=example("toolsrv lab eval choice --queries queries_dev.jsonl"))
@click.option("--queries", "path", type=click.Path(path_type=Path), required=True, metavar="FILE",
              help="JSON lines, or a ToolBench instruction file, with lists of APIs.")  # fmt: skip
@model_option
@click.option("--limit", type=click.IntRange(1), help="Only so many queries, evenly picked.")
@click.option("--seed", type=int, help="Of the sampling, and of the order for the model alone.")
@click.option("--threads", type=int, help="Model threads; 0: automatic.")
@json_option
@pass_session
def eval_choice(
    session: Session, /, path: Path, limit: int | None, as_json: bool, **flags: Any
) -> None:
    """Count how often a model first calls a relevant API of those that a query lists.

    The model with the retriever's help, the model alone, the retriever alone, and chance. Nothing
    is called.
    """
    from toolsrv_lab.evaluation.choice import by_set, usable
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
        _show(found)
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


def _choices(bench: Workbench, asked: list[Asked]) -> list[Choice]:
    from toolsrv_lab.evaluation.choice import choose
    from toolsrv_runtime.solve import build_format

    retriever = bench.searchable().retriever
    engine, profile = bench.engine()
    with Bar("choosing", "queries") as bar, interruptible():
        return choose(
            asked,
            helped=build_format(engine, profile, prior=retriever),
            alone=build_format(engine, profile, prior=None),
            rank=lambda text, pool: retriever.rank(text, among=pool),
            seed=bench.settings.seed,
            progress=bar.show,
        )


def _show(found: dict[str, ChoiceFigures]) -> None:
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

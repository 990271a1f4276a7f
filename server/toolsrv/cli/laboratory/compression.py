"""``toolsrv lab eval compress``: keys that a model keeps, against ToolBench's response schemas.

The work is done by ``toolsrv_lab.evaluation.compression``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.options import (
    GivenPath,
    engine_model_option,
    example,
    json_option,
    model_option,
    threads_option,
)
from toolsrv.cli.output import emit_json, note, pluralize, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Solver
    from toolsrv_lab.evaluation.compression import KeyFigures, KeyResult, Pair
    from toolsrv_registry.api import Api
    from toolsrv_registry.storage.store import Store


@click.command(
    epilog=example("toolsrv lab eval compress instruction/G1_query.json --model model.gguf")
)
@click.argument("queries", nargs=-1, required=True, type=GivenPath())
@model_option
@engine_model_option
@click.option("--limit", type=click.IntRange(1),
              help="Only so many APIs, drawn with the seed.")  # fmt: skip
@click.option("--seed", type=int, help="Seed of the draw and of the replies.")
@threads_option
@click.option("--out", type=GivenPath(), metavar="DIR",
              help="Keep results and report here; the same command goes on there.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_compress(
    session: Session,
    /,
    queries: tuple[Path, ...],
    limit: int | None,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Compare the keys that a model keeps of responses with ToolBench's response schemas.

    QUERIES are ToolBench's query files, whose template_response are the examples. Their APIs and the
    published schemas are those of the enabled catalogs: import ToolBench's first. No key is kept
    because other APIs take it, as catalog compress does.
    """
    from toolsrv_lab.evaluation.cells import Cell, CellLog
    from toolsrv_lab.evaluation.compression import (
        KeyResult,
        figures,
        read_examples,
        read_pairs,
    )
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.statistics import draw
    from toolsrv_runtime.calls.key_selection import prompt_digest

    files = [path.expanduser() for path in queries]
    bench = session.workbench(**flags)
    scale.check(bench.settings)
    store = bench.registry().store
    found = {place: one for path in files for place, one in read_examples(path).items()}
    every, left_out = read_pairs(found, lambda place: _published(store, place))
    if not every:
        raise DataError(
            f"none of {pluralize(len(found), 'example')} has a published schema here",
            hint="import ToolBench's catalog first: toolsrv catalog pull toolbench",
        )
    seed = bench.options().seed
    pairs = draw(every, limit, seed=seed, key=lambda one: one.api.id)
    name, identity = evaluation.identity(bench.settings)
    cell = Cell(name, identity, "compress")
    settings = {"prompt": prompt_digest(), "seed": seed}
    folder = evaluation.out_folder(out)
    with ResultLog(folder / evaluation.LOG if folder else None, settings) as log:
        kept = CellLog(log, KeyResult)
        ids = [one.api.id for one in pairs]
        try:
            with evaluation.Progress("choosing keys", len(pairs)) as progress:
                solve_cells(
                    bench, scale, {one.api.id: one for one in pairs}, {cell: seed}, kept,
                    _solver, progress=progress.step,
                )  # fmt: skip
        except KeyboardInterrupt:
            note(log.kept())
            raise
        results = kept.of(cell, ids)
    groups = {"all": results, "some left out": [one for one in results if one.published < one.keys]}
    told = {key: figures(some) for key, some in groups.items() if some}
    document = {
        "model": name,
        "settings": settings,
        "apis": len(pairs),
        "left_out": dict(left_out),
        "figures": {key: one.model_dump() for key, one in told.items()},
        "results": [one.model_dump() for one in results],
    }
    evaluation.write_report(folder, document)
    if as_json:
        emit_json(document)
    else:
        _show(name, told, left_out)


def _published(store: Store, place: str) -> tuple[Api, Any] | None:
    """Return an API and the schema of its source, whatever a model made here."""
    api = store.get_many([place]).get(place)
    return None if api is None else (api, store.response_schemas.of_source(place))


def _solver(bench: Workbench) -> Solver[Pair, int, KeyResult]:
    """Return what chooses keys with the model of a bench; the setting of a cell is the seed."""
    from toolsrv_lab.evaluation.cells import in_thread
    from toolsrv_lab.evaluation.compression import choose
    from toolsrv_lab.execution import stateless

    model = evaluation.chat_model_of(bench)

    async def solve(item: tuple[Pair, int]) -> KeyResult:
        pair, seed = item
        return await in_thread(lambda stop: choose(model, pair, seed=seed, stop=stop))

    return stateless(solve)


def _show(name: str, told: Mapping[str, KeyFigures], left_out: Mapping[str, int]) -> None:
    share = evaluation.share_text
    table(
        ("published schema", "APIs#", "recall#", "precision#", "all keys#"),
        [
            (key, one.apis, share(one.recall), share(one.precision), share(one.base))
            for key, one in told.items()
        ],
        title=f"{name}: of key paths, % (95 % interval)",
    )
    table(
        ("published schema", "tokens saved#", "by the published#", "failed#", "s#", "generated#"),
        [
            (
                key,
                share(one.saved),
                share(one.saved_published),
                one.failed,
                evaluation.mean_text(one.seconds),
                evaluation.mean_text(one.generated),
            )
            for key, one in told.items()
        ],
        title="of the examples' tokens; means per API",
    )
    for reason, many in left_out.items():
        note(f"note: {pluralize(many, 'example')} left out: {reason}")

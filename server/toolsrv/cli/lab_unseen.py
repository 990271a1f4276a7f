"""``toolsrv lab eval unseen``: first calls for needs of tools that no training row is about.

The work is done by ``toolsrv_lab.evaluation.unseen``.
"""

from __future__ import annotations

from typing import Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.lab_solve_view import share_cell
from toolsrv.cli.options import example, json_option, model_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

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
@click.option("--seed", type=int, help="Of the sampling.")
@click.option("--threads", type=int, help="Model threads; 0: automatic.")
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
    from toolsrv_lab.evaluation.unseen import ask, call, figures, of_category
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
        "category": of_category(held, offered, bench.settings.seed),
    }
    asked = ask(held, others[beside], count, offered=offered, seed=bench.settings.seed)
    if not asked:
        raise UsageError(
            "no need is written for the APIs that are held out",
            hint="import the catalog that the needs were written for",
        )
    found = {}
    for name, prior in (("with retriever", retriever), ("model alone", None)):
        with Bar(name, "needs") as bar, interruptible():
            form = build_format(engine, profile, prior=prior)
            found[name] = call(asked, form, progress=bar.show)
    if as_json:
        emit_json(
            {
                "model": str(bench.settings.model or "shipped"),
                "offered": offered,
                "beside": beside,
                "figures": {k: figures(v).model_dump() for k, v in found.items()},
                "calls": {k: [one.model_dump() for one in v] for k, v in found.items()},
            }
        )
        return
    shares = {name: figures(called) for name, called in found.items()}
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

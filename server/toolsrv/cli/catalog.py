"""``toolsrv catalog``: which catalogs there are and what is in them."""

from __future__ import annotations

from collections import Counter

import click

from toolsrv.cli.check import check
from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import one_line


@click.group(epilog=example("toolsrv catalog stats"))
def catalog() -> None:
    """Look at the catalogs."""


catalog.add_command(check)


@catalog.command("list", epilog=example("toolsrv catalog list --json"))
@json_option
@pass_session
def list_(session: Session, as_json: bool) -> None:
    """List the catalogs."""
    catalogs = session.workbench().registry().store.catalogs()
    if as_json:
        emit_json([one.model_dump(mode="json") for one in catalogs])
        return
    table(
        ("catalog", "tools#", "APIs#"),
        [(one.name, one.tools, one.apis) for one in catalogs],
    )


@catalog.command(epilog=example("toolsrv catalog show offline --category Science"))
@click.argument("name", required=False)
@category_option
@click.option("--tool", metavar="NAME", help="Only this tool.")
@json_option
@pass_session
def show(
    session: Session, name: str | None, category: str | None, tool: str | None, as_json: bool
) -> None:
    """Show the APIs of the catalog NAME, or of all catalogs."""
    apis = session.workbench().registry().store.apis(catalog=name, category=category, tool=tool)
    if as_json:
        from toolsrv.views import api_view

        emit_json([api_view(api).model_dump(mode="json") for api in apis])
        return
    table(
        ("API", "method", "description"),
        [(api.id, api.method, one_line(api.description, 160)) for api in apis],
    )


@catalog.command(epilog=example("toolsrv catalog stats"))
@json_option
@pass_session
def stats(session: Session, as_json: bool) -> None:
    """Count tools and APIs per category."""
    store = session.workbench().registry().store
    totals = store.stats()
    tools = Counter(tool.category for tool in store.tools())
    rows = [(category, tools[category], apis) for category, apis in store.categories().items()]
    if as_json:
        by_category = {category: {"tools": many, "apis": apis} for category, many, apis in rows}
        emit_json(totals.model_dump(mode="json") | {"by_category": by_category})
        return
    table(("category", "tools#", "APIs#"), [*rows, ("all", totals.tools, totals.apis)])

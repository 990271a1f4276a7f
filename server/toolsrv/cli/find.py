"""``toolsrv search`` and ``toolsrv describe``: which APIs there are for something."""

from __future__ import annotations

import click

from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import console, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import compact_json, plain
from toolsrv_registry.errors import UsageError


@click.command(epilog=example('toolsrv search "sunrise in a city" --limit 3'))
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@category_option
@click.option("--tool", metavar="NAME", help="Only APIs of this tool.")
@json_option
@pass_session
def search(
    session: Session,
    text: str,
    limit: int,
    category: str | None,
    tool: str | None,
    as_json: bool,
) -> None:
    """Find the APIs that fit TEXT, best first."""
    from toolsrv.views import search_view

    query = plain(text).strip()
    if not query:
        raise UsageError("the text to search for is empty", hint="say what the API should do")
    result = session.workbench().search(query, limit, category=category, tool=tool)
    view = search_view(result, "full" if as_json else "summary")
    if as_json:
        emit_json(view.model_dump(mode="json"))
        return
    if view.degraded:
        note(f"note: {view.degraded}")
    if view.nothing_fits:
        near = ", ".join(view.nearest_categories)
        note("note: nothing fits well" + (f"; nearest categories: {near}" if near else ""))
    rows = [(f"{hit.score:.3f}", hit.id, hit.description, hit.why) for hit in view.hits]
    table(("score#", "API", "description", "why"), rows)


@click.command(epilog=example("toolsrv describe Location/world_clock/convert_time"))
@click.argument("api_id", metavar="ID")
@json_option
@pass_session
def describe(session: Session, api_id: str, as_json: bool) -> None:
    """Show the API with this ID, its parameters, and how to call it."""
    from toolsrv.views import api_view

    view = api_view(session.workbench().api(api_id))
    if as_json:
        emit_json(view.model_dump(mode="json"))
        return
    out = console()
    out.print(view.id, style="bold")
    out.print(f"{view.name}, of {view.tool}: {view.tool_description}")
    out.print(view.description)
    if view.parameters:
        rows = [
            (
                one.name,
                one.type,
                "yes" if one.required else "",
                "" if one.default == "" else compact_json(one.default),
                one.description + (f" One of: {', '.join(one.allowed)}." if one.allowed else ""),
            )
            for one in view.parameters
        ]
        table(("parameter", "type", "required", "default or example", "description"), rows)
    arguments = compact_json(view.example).replace("'", "'\\''")
    out.print(f"toolsrv call {view.id} '{arguments}'", style="dim")

"""``toolsrv search`` and ``toolsrv describe``: which APIs there are for something."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from toolsrv.cli.listing import listing
from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import console, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import compact_json, plain
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:  # pydantic models are loaded when a search is shown
    from toolsrv.search_view import HitView, SearchView
    from toolsrv.views import Detail


@click.command(epilog=example('toolsrv search "sunrise in a city" --limit 3'))
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option(
    "--offset", type=click.IntRange(0, 1_000), default=0, help="Leave out so many of the best."
)
@category_option
@click.option("--tool", metavar="NAME", help="Only APIs of this tool.")
@click.option("--catalog", metavar="NAME", help="Only APIs of this catalog.")
@click.option(
    "--detail",
    type=click.Choice(["names", "summary", "full"]),
    help="How much of each API.  [default: summary; full with --json]",
)
@click.option("--include-dead", is_flag=True, help="Also APIs that failed when last checked.")
@click.option("--callable", "callable_only", is_flag=True, help="Only APIs that can be called now.")
@json_option
@pass_session
def search(
    session: Session,
    text: str,
    limit: int,
    offset: int,
    category: str | None,
    tool: str | None,
    catalog: str | None,
    detail: Detail | None,
    include_dead: bool,
    callable_only: bool,
    as_json: bool,
) -> None:
    """Find the APIs that fit TEXT, best first; those of one tool stand together.

    Of APIs that fit equally well those come first that can be called now, then those that cost less
    and have served better.
    """
    from toolsrv.search_view import search_view

    query = plain(text).strip()
    if not query:
        raise UsageError("the text to search for is empty", hint="say what the API should do")
    bench = session.workbench()
    result = bench.search(
        query,
        limit,
        offset=offset,
        category=category,
        tool=tool,
        catalog=catalog,
        include_dead=include_dead,
        callable_only=callable_only,
    )
    known = bench.readiness([hit.api for hit in result.hits])
    asyncio.run(bench.aclose())
    view = search_view(result, detail or ("full" if as_json else "summary"), known)
    if as_json:
        emit_json(view.model_dump(mode="json"))
    else:
        _show(view, detail)


def _show(view: SearchView, detail: Detail | None) -> None:
    for line in (view.degraded, *view.notes):
        if line:
            note(f"note: {line}")
    if view.nothing_fits and (view.hits or not view.hidden_behind):
        near = ", ".join(view.nearest_categories)
        note("note: nothing fits well" + (f"; nearest categories: {near}" if near else ""))
    if detail == "names":
        for hit in view.hits:
            parts = filter(None, (hit.id, hit.why, _needs(hit)))
            console().print("  ".join(parts), soft_wrap=True)
    elif view.hits:
        from toolsrv.readiness import legend

        columns = ("rank#", "score#", "API", "now", "description", "why")
        listing(columns, [_row(hit) for hit in view.hits], names=2)
        if any(hit.now for hit in view.hits):
            note(f"now: {legend(hit.now.signs for hit in view.hits if hit.now)}")
    if view.next_offset is not None:
        note(f"more: --offset {view.next_offset}")


def _row(hit: HitView) -> tuple[str, ...]:
    """Return a hit as a row of the table; what marks it stands under its id."""
    name = hit.id
    if hit.dead:
        name += f"\ndead: {hit.dead}"
    if needs := _needs(hit):
        name += f"\n{needs}"
    if hit.changed:
        name += "\nchanged: a newer text waits"
    about = hit.description
    if hit.parameters:
        about += "\n" + "\n".join(
            f"{one.name} ({one.type}{', required' * one.required})" for one in hit.parameters
        )
    reasons = hit.why
    if hit.similar:
        reasons += f"\n+{len(hit.similar)} similar: {', '.join(hit.similar[:SIMILAR_SHOWN])}"
    signs = hit.now.signs if hit.now else ""
    return str(hit.rank), f"{hit.score:.3f}", name, signs, about, reasons


def _needs(hit: HitView) -> str:
    return f"needs {hit.now.lacks}" if hit.now is not None and hit.now.lacks else ""


SIMILAR_SHOWN = 3


@click.command(epilog=example("toolsrv describe Location/world_clock/convert_time"))
@click.argument("api_id", metavar="ID")
@click.option("--catalog", metavar="NAME", help="As this catalog has it, hidden or not.")
@click.option("--schema", is_flag=True, help="Show the JSON Schema of its arguments alone.")
@json_option
@pass_session
def describe(
    session: Session, api_id: str, catalog: str | None, schema: bool, as_json: bool
) -> None:
    """Show the API with this ID: where a call goes, which key it needs, its parameters.

    What an argument holds stands below its description, a line each. --schema shows all of it as
    JSON Schema 2020-12; with --json it stands in the description.
    """
    from toolsrv.key_view import key_words
    from toolsrv.views import allowed_words, api_view, call_line, check_line

    bench = session.workbench()
    store = bench.registry().store
    api = store.get(api_id, catalog=catalog)
    check = store.checks([api]).get(api.id)
    now = bench.readiness_of(api, catalog)
    view = api_view(bench.as_called(api), check, now, schema=schema)
    if catalog is not None and (served := store.home(api_id)[0]) not in ("", catalog):
        note(f"note: searches find and calls use the API of this id in {served}")
    asyncio.run(bench.aclose())
    if as_json or schema:
        emit_json(view.model_dump(mode="json") if as_json else view.arguments_schema)
        return
    out = console()
    out.print(view.id, style="bold")
    out.print(f"{view.name}, of {view.tool}: {view.tool_description}".removesuffix(": "))
    out.print(view.description)
    out.print(call_line(view), soft_wrap=True)
    if view.keys:
        out.print(f"key: {key_words(view.keys)}", soft_wrap=True)
    if view.now is not None:
        out.print(f"now: {view.now.words}", soft_wrap=True)
        if terms := view.now.terms.words:
            out.print(f"terms: {terms}", soft_wrap=True)
    if view.check is not None:
        out.print(f"checked: {check_line(view.check)}")
    if view.parameters:
        rows = [
            (
                one.name,
                one.type,
                "yes" if one.required else "",
                ", ".join(
                    compact_json(x) for x in (one.default, one.example) if x not in ("", None)
                ),
                "\n".join([f"{one.description} {allowed_words(one)}".strip(), *one.fields]).strip(),
            )
            for one in view.parameters
        ]
        table(("parameter", "type", "required", "default or example", "description"), rows)
    arguments = compact_json(view.example).replace("'", "'\\''")
    out.print(f"toolsrv call {view.id} '{arguments}'", style="dim")

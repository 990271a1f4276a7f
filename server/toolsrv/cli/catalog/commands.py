"""``toolsrv catalog``: the command table, and ``list``, ``show``, ``inspect``, ``stats``.

The other commands are imported only when they are called.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from toolsrv.cli.catalog.changes import hidden_note
from toolsrv.cli.lazy import LazyGroup
from toolsrv.cli.options import category_option, example, json_option
from toolsrv.cli.output import emit_json, format_value, listing, note, pluralize, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import one_line, plain
from toolsrv_registry.errors import NotFoundError

COMMANDS = {
    "import": (
        "toolsrv.cli.catalog.imports:import_",
        "Take the APIs of a folder, archive or file.",
    ),
    "pull": ("toolsrv.cli.catalog.imports:pull", "Bring a published catalog, and import it."),
    "refresh": ("toolsrv.cli.catalog.refresh:refresh", "Read the source of a catalog again."),
    "list": ("toolsrv.cli.catalog.commands:list_", "List the catalogs."),
    "show": ("toolsrv.cli.catalog.commands:show", "Show the APIs of a catalog, or of all."),
    "inspect": ("toolsrv.cli.catalog.commands:inspect", "Say what a catalog is and holds."),
    "stats": ("toolsrv.cli.catalog.commands:stats", "Count tools and APIs per category."),
    "diff": ("toolsrv.cli.catalog.changes:diff", "Show the changes that wait to be accepted."),
    "accept": ("toolsrv.cli.catalog.changes:accept", "Serve the changed texts of a catalog."),
    "enable": ("toolsrv.cli.catalog.changes:enable", "Let searches and solves find a catalog."),
    "disable": ("toolsrv.cli.catalog.changes:disable", "Hide a catalog; it stays in the store."),
    "set": ("toolsrv.cli.catalog.changes:set_", "Send a header or parameter with each live call."),
    "unset": ("toolsrv.cli.catalog.changes:unset", "No longer send a header or parameter."),
    "remove": ("toolsrv.cli.catalog.changes:remove", "Remove a catalog from the store."),
    "export": ("toolsrv.cli.catalog.changes:export", "Write a catalog in ToolBench's layout."),
    "compress": (
        "toolsrv.cli.catalog.compress:compress",
        "Let a model choose the keys of responses.",
    ),
    "check": ("toolsrv.cli.catalog.check:check", "Call APIs and keep what they are worth."),
}


@click.group(cls=LazyGroup, table=COMMANDS, epilog=example("toolsrv catalog stats"))
def catalog() -> None:
    """Import, inspect, refresh, check and export catalogs of APIs."""


@click.command("list", epilog=example("toolsrv catalog list --json"))
@json_option
@pass_session
def list_(session: Session, as_json: bool) -> None:
    """List the catalogs."""
    from toolsrv.calls.catalog_files import CatalogValues, FixedFile

    bench = session.workbench()
    store = bench.registry().store
    fixed = FixedFile(bench.settings.data_dir).all()
    catalogs = store.catalogs()
    hidden = {one.name: dict(store.labels.hidden_behind(one.name)) for one in catalogs}
    if as_json:
        emit_json(
            [
                one.model_dump(mode="json")
                | {
                    "hidden_behind": hidden[one.name],
                    "fixed": fixed.get(one.name, CatalogValues()).model_dump(),
                }
                for one in catalogs
            ]
        )
        return
    listing(
        ("catalog", "tools#", "APIs#", "hidden#", "enabled", "changed#", "put", "source"),
        [
            (
                one.name,
                one.tools,
                one.apis,
                sum(hidden[one.name].values()) or "",
                "yes" if one.enabled else "no",
                one.changed or "",
                one.updated_at,
                one_line(one.source) or "ships with toolsrv",
            )
            for one in catalogs
        ],
    )
    for one in catalogs:
        if one.changed:
            waits = pluralize(one.changed, "changed text waits", "changed texts wait")
            note(f"note: {waits}: toolsrv catalog diff {one.name}")
        if one.name in fixed:
            sent = plain("; ".join(fixed[one.name].lines()))
            note(f"note: sent with each live call of {one.name}: {sent}")
        if hidden[one.name]:
            note(f"note: {hidden_note(one.name, hidden[one.name])}")


@click.command(epilog=example("toolsrv catalog show offline --category Science"))
@click.argument("name", required=False)
@category_option
@click.option("--tool", metavar="NAME", help="Only this tool.")
@json_option
@pass_session
def show(
    session: Session, name: str | None, category: str | None, tool: str | None, as_json: bool
) -> None:
    """Show the APIs of the catalog NAME, or of all catalogs."""
    from toolsrv.views.apis import api_view, check_line, check_view

    store = session.workbench().registry().store
    apis = store.apis(catalog=name, category=category, tool=tool)
    checks = store.checks(apis)
    if as_json:
        emit_json([api_view(api, checks.get(api.id)).model_dump(mode="json") for api in apis])
        return
    catalogs = [name] if name is not None else [one.name for one in store.catalogs() if one.changed]
    waiting = {api_id for one in catalogs for api_id in store.changed(one)}
    told = {api_id: check_line(check_view(one)) for api_id, one in checks.items()}
    listing(
        ("API", "method", "description", "changed", *["checked"] * bool(told)),
        [
            (
                api.id,
                api.method,
                one_line(api.description, 160),
                "waits" if api.id in waiting else "",
                *[told.get(api.id, "")] * bool(told),
            )
            for api in apis
        ],
    )


@click.command(epilog=example("toolsrv catalog inspect offline"))
@click.argument("name")
@json_option
@pass_session
def inspect(session: Session, name: str, as_json: bool) -> None:
    """Say what the catalog NAME is: where it is from, what it holds, what waits."""
    from toolsrv.calls.catalog_files import CatalogValues, FixedFile

    bench = session.workbench()
    store = bench.registry().store
    entry = next((one for one in store.catalogs() if one.name == name), None)
    if entry is None:
        store.changed(name)  # tells which catalogs there are
        raise NotFoundError(f"no catalog is called {name!r}")
    apis = store.apis(catalog=name)
    tools = Counter(tool.category for tool in store.tools(catalog=name))
    many = Counter(api.category for api in apis)
    methods = Counter(api.method for api in apis)
    verdicts = Counter(check.verdict.value for check in store.checks(apis).values())
    made = store.response_schemas.of([api.id for api in apis]).values()
    compressed = Counter(one.model for one in made if one.response_schema is not None)
    hidden = dict(store.labels.hidden_behind(name))
    terms = store.labels.terms((api.id for api in apis), catalog=name).values()
    pricing = Counter(str(one.pricing) or "unknown" for one in terms)
    document: dict[str, Any] = entry.model_dump(mode="json") | {
        "waiting": store.changed(name),
        "hidden_behind": hidden,
        "fixed": FixedFile(bench.settings.data_dir).all().get(name, CatalogValues()).model_dump(),
        "methods": dict(methods.most_common()),
        "verdicts": dict(verdicts.most_common()),
        "pricing": dict(pricing.most_common()),
        "compressed_by": dict(compressed.most_common()),
        "without_address": sum(not api.url for api in apis),
        "without_description": sum(not api.description.strip() for api in apis),
        "by_category": {
            category: {"tools": tools[category], "apis": many[category]}
            for category in sorted(many)
        },
    }
    if as_json:
        emit_json(document)
        return
    categories = document.pop("by_category")
    origin = document.pop("origin") or {}
    fixed = CatalogValues.model_validate(document["fixed"])
    options = {key: one for key, one in document.pop("options").items() if one}
    shown = document | {
        "fixed": plain("; ".join(fixed.lines())),
        **{f"origin {key}": value or "none stated" for key, value in origin.items()},
        **{f"option {key}": _spelled(value) for key, value in options.items()},
        "waiting": ", ".join(document["waiting"][:10]),
        "hidden_behind": ", ".join(f"{other} ({count})" for other, count in hidden.items()),
        "methods": _counted(methods),
        "verdicts": _counted(verdicts) or "never checked",
        "pricing": _counted(pricing),
        "compressed_by": _counted(compressed),
    }
    table(
        ("catalog", "value"),
        [(key.replace("_", " "), one_line(format_value(v))) for key, v in shown.items()],
    )
    table(
        ("category", "tools#", "APIs#"),
        [(category, one["tools"], one["apis"]) for category, one in categories.items()],
    )
    if hidden:
        note(f"note: {hidden_note(name, hidden)}")


def _spelled(value: Any) -> str:
    """Return an option of an import as it was given."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _counted(many: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in many.most_common())


@click.command(epilog=example("toolsrv catalog stats"))
@json_option
@pass_session
def stats(session: Session, as_json: bool) -> None:
    """Count tools and APIs per category."""
    store = session.workbench().registry().store
    totals = store.stats()
    tools = Counter(tool.category for tool in store.tools())
    rows = [
        (category, tools[category], apis) for category, apis in store.names.categories().items()
    ]
    if as_json:
        by_category = {category: {"tools": many, "apis": apis} for category, many, apis in rows}
        emit_json(totals.model_dump(mode="json") | {"by_category": by_category})
        return
    table(("category", "tools#", "APIs#"), [*rows, ("all", totals.tools, totals.apis)])

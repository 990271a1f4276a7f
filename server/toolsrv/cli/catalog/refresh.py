"""``toolsrv catalog refresh``: import sources again with their rules, and show changes.

A source that is gone or cannot be read leaves its catalog as it was.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.catalog.changes import refuse_shipped
from toolsrv.cli.catalog.imports import fetch_source
from toolsrv.cli.catalog.report import Imported, IndexResult, show, show_changes
from toolsrv.cli.catalog.storing import ImportSource, build_index, read_place, store_reading
from toolsrv.cli.error_handler import FAULT
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import (
    accept_option,
    example,
    exclude_option,
    include_option,
    json_option,
    no_index_option,
)
from toolsrv.cli.output import emit_json, note, pluralize, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import plain
from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv_catalogs.importer import ImportResult
    from toolsrv_registry.storage.entries import CatalogEntry, ImportOptions
    from toolsrv_registry.storage.store import Store

_MCP = "mcp:"
_NAMED = 5
"""Tools of a source that an error names."""


@click.command(
    epilog=example(
        "toolsrv catalog refresh github --dry-run",
        "toolsrv catalog refresh github --include tag:repos --include tag:issues",
        "toolsrv catalog refresh --all",
    )
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All catalogs that have a source.")
@include_option
@exclude_option
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@accept_option
@no_index_option
@json_option
@pass_session
def refresh(
    session: Session,
    names: tuple[str, ...],
    every: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Read the source of the catalog NAME again: its URL, file, folder, archive or MCP server.

    It is read as it was imported (--server, --category, --include …); new rules replace those that
    are kept. What was added, removed and changed is shown, then taken over; a changed text waits
    until it is accepted, as after an import. Where the source is gone, cannot be read or has none
    of the catalog's APIs any more, the catalog stays as it was, and the exit code is not 0;
    --accept takes a source over that has other APIs instead.
    """
    if every == bool(names) or (every and (include or exclude)):
        raise UsageError(
            "a refresh takes names of catalogs, or --all without rules",
            hint="toolsrv catalog refresh NAME",
        )
    bench = session.workbench()
    registry = bench.registry()
    done: list[Imported] = []
    failed: list[tuple[str, ToolsrvError]] = []
    for entry in _entries(registry.store, names):
        try:
            options = _options(entry, include, exclude)
            if not entry.options.place:
                note(
                    f"note: {entry.name} was imported by an earlier version, which did not keep how; "
                    "it is read without --category, --server and rules"
                )
            done.append(
                _refresh(session, entry, options, dry_run=dry_run, accept=accept, quiet=as_json)
            )
        except ToolsrvError as error:
            note(f"note: {entry.name} stays as it was")
            if len(names) == 1:
                raise
            failed.append((entry.name, error))
    index = None
    if not dry_run and not no_index and any(_differs(one) for one in done):
        index = build_index(bench, done[-1].reading.catalog.name)
    _show(done, failed, registry.index.state(), index, as_json=as_json, one=len(names) == 1)
    if failed:
        click.get_current_context().exit(FAULT)


def _entries(store: Store, names: tuple[str, ...]) -> list[CatalogEntry]:
    """Return the catalogs of these names, without names all that have a source."""
    known = {one.name: one for one in store.catalogs()}
    if not names:
        return [one for one in known.values() if one.source]
    for name in names:
        refuse_shipped(name, "refreshed", "it is brought up to date with toolsrv itself")
        if name not in known:
            store.changed(name)  # raises NotFoundError, with the names there are
    return [known[name] for name in dict.fromkeys(names)]


def _options(
    entry: CatalogEntry, include: tuple[str, ...], exclude: tuple[str, ...]
) -> ImportOptions:
    """Return how a catalog is read again.

    Raises:
        UsageError: nothing says where it came from.
    """
    place = entry.options.place or _place_of_source(entry)
    if not place:
        raise UsageError(
            f"nothing says where the catalog {entry.name!r} came from",
            hint=f"import it again: toolsrv catalog import SOURCE --name {entry.name}",
        )
    rules = {"include": include, "exclude": exclude} if include or exclude else {}
    return entry.options.model_copy(update={"place": place, **rules})


def _place_of_source(entry: CatalogEntry) -> str:
    """Return the place of a catalog that was imported before places were kept."""
    from toolsrv_catalogs.published import published

    if entry.source.startswith(f"{_MCP} "):
        return f"{_MCP}{entry.name}"
    origin = entry.origin
    for one in published():
        if origin is not None and (one.repo, one.file) == (origin.address, origin.file):
            return one.name
    return entry.source


def _refresh(
    session: Session,
    entry: CatalogEntry,
    options: ImportOptions,
    *,
    dry_run: bool,
    accept: bool,
    quiet: bool,
) -> Imported:
    started = time.perf_counter()
    store = session.workbench().registry().store
    with interruptible():
        place, reading = _read(session, entry, options)

        def put(*, dry: bool) -> Imported:
            return store_reading(
                store,
                reading,
                place.source,
                shown=place.source,
                origin=place.origin,
                options=place.options,
                dry_run=dry,
                accept=accept,
                started=started,
            )

        found = put(dry=True)
        if not quiet:
            show_changes(found)
        ruled = (options.include, options.exclude) != (entry.options.include, entry.options.exclude)
        if not (accept or ruled):
            _check_same(entry, found)
        return found if dry_run else put(dry=False)


def _check_same(entry: CatalogEntry, found: Imported) -> None:
    """Raise DataError where none of a catalog's APIs is left: its source is something else now."""
    changes = found.changes
    if not changes.removed or changes.changed or changes.unchanged:
        return
    names = sorted({tool.name for tool in found.reading.catalog.tools})
    raise DataError(
        f"none of the {pluralize(entry.apis, 'API')} of {entry.name!r} is in its source any more; there "
        f"is now: {plain(', '.join(names[:_NAMED]))}",
        hint="it may be another document, or a catalog that was imported with --category: look at it "
        "with --dry-run --accept, take it with --accept, or import it again with the options of then",
    )


def _read(
    session: Session, entry: CatalogEntry, options: ImportOptions
) -> tuple[ImportSource, ImportResult]:
    if options.place.startswith(_MCP):
        return _read_mcp(session, options)
    web = options.place.lower().startswith(("http://", "https://"))
    if web or entry.origin is not None:
        place = fetch_source(session, options)
    else:
        place = ImportSource(Path(options.place), options.place, options)
    return place, read_place(place, entry.name)


def _read_mcp(session: Session, options: ImportOptions) -> tuple[ImportSource, ImportResult]:
    from toolsrv.calls.catalog_files import ServerFile
    from toolsrv.calls.keys import KeyStore
    from toolsrv.cli.catalog.mcp import read_server, source_line

    settings = session.load().settings
    name = options.place.removeprefix(_MCP)
    server = ServerFile(settings.data_dir).find(name)
    if server is None:
        raise NotFoundError(
            f"the MCP server {name!r} is not known any more",
            hint="import it again: toolsrv catalog import mcp:COMMAND",
        )
    reading = read_server(settings, server, KeyStore(settings.data_dir).secret, options)
    return ImportSource(Path(), source_line(server), options), reading


def _differs(one: Imported) -> bool:
    return bool(one.changes.added or one.changes.changed or one.changes.removed)


def _show(
    done: list[Imported],
    failed: list[tuple[str, ToolsrvError]],
    state: str,
    index: IndexResult | None,
    *,
    as_json: bool,
    one: bool,
) -> None:
    if as_json:
        documents = [each.document(state, index) for each in done]
        emit_json(documents[0] if one else _document(documents, failed))
        return
    for each in done:
        show(each, state, index, changes=False)
    if failed:
        table(
            ("catalog", "not refreshed"),
            [(name, f"{error.message} ({error.hint})") for name, error in failed],
        )
        note(f"error: {pluralize(len(failed), 'catalog')} could not be refreshed")
    if not done and not failed:
        note("note: no catalog has a source")


def _document(
    documents: list[dict[str, Any]], failed: list[tuple[str, ToolsrvError]]
) -> dict[str, Any]:
    return {
        "refreshed": documents,
        "failed": [
            {"name": name, "error": error.message, "hint": error.hint} for name, error in failed
        ],
    }

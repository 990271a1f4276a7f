"""``toolsrv catalog import``: a source read, compared, stored and indexed by one command.

Until the store's one transaction nothing has changed; after it the catalog stays, whatever
becomes of the index.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.catalog_change import refuse_shipped
from toolsrv.cli.import_view import Bar, Imported, IndexResult, show
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import counted
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_catalogs.importer import Reading
    from toolsrv_registry.store import Store


@click.command(
    "import",
    epilog=example(
        "toolsrv catalog import toolenv.tar.gz --name toolbench --dry-run",
        "toolsrv catalog import petstore.yaml --category Commerce --server https://pets.example",
        'toolsrv catalog import "mcp:uvx mcp-server-time"',
        "toolsrv catalog import --from claude-desktop",
    ),
)
@click.argument("source", metavar="PATH", type=click.Path(), required=False, default="")
@click.option("--name", metavar="NAME", help="The catalog's name.  [default: after PATH]")
@click.option("--from", "client", metavar="CLIENT", help="All MCP servers of an MCP client.")
@click.option("--env", metavar="NAME", multiple=True, help="Variable that an MCP server needs.")
@click.option("--header", metavar="NAME", multiple=True, help="Header that an MCP server needs.")
@click.option("--category", metavar="NAME", help="Category of what names none.  [default: Other]")
@click.option("--server", metavar="URL", help="Where OpenAPI servers without a host are.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--accept", is_flag=True, help="Serve changed texts at once.")
@click.option("--no-index", is_flag=True, help="Do not build the search index afterwards.")
@json_option
@pass_session
def import_(
    session: Session,
    source: str,
    name: str | None,
    client: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    category: str | None,
    server: str | None,
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Take the APIs at PATH into a catalog, and index them for search.

    PATH is ToolBench's toolenv (the folder, or its .tar.gz, .tar or .zip, which is not unpacked),
    tool files, or OpenAPI 3.0 and 3.1 documents in JSON or YAML. Importing again takes what was
    added and removed; a text that changed is shown and waits until it is accepted, with --accept
    or `toolsrv catalog accept`. What cannot be read is refused, with a reason, and the rest taken;
    what was read of a file before stays while the file is refused.
    A catalog of another source is replaced only where --name names it.

    mcp:NAME, "mcp:COMMAND LINE" and mcp:URL take the tools of another MCP server instead; NAME is
    one that was imported before, or stands in an MCP client's file. The server is started or
    connected to, now and for calls. What --env and --header name is asked for, or kept before with
    `toolsrv keys set mcp:SERVER/NAME`. A tool that changed is neither offered nor called until it
    is accepted.
    """
    if client is not None or source.startswith("mcp:"):
        from toolsrv.cli.catalog_mcp import Wanted, import_servers

        if server is not None:
            raise UsageError("--server is for OpenAPI documents", hint="name the URL: mcp:URL")
        wanted = Wanted(
            source=source,
            client=client,
            name=name,
            env=env,
            headers=header,
            category=category,
            dry_run=dry_run,
            accept=accept,
            index=not no_index,
        )
        import_servers(session, wanted, as_json=as_json)
        return
    if env or header:
        raise UsageError("--env and --header are for MCP servers", hint="write mcp:COMMAND")
    from toolsrv_catalogs.importer import catalog_name, check_name, read_catalog

    started = time.perf_counter()
    if not source.strip():  # Path("") is the present folder
        raise UsageError("PATH names no source", hint="name a folder, archive or file to import")
    path = Path(source).expanduser()
    given, name = name, catalog_name(path) if name is None else name
    check_name(name)
    refuse_shipped(name, "imported over", "choose another name with --name")
    bench = session.workbench()
    registry = bench.registry()
    if given is None:
        refuse_other_source(registry.store, name, str(path.resolve()))
    index = None
    with interruptible():
        with Bar("reading", "bytes") as bar:
            reading = read_catalog(
                path, name=name, category=category, server=server, progress=bar.show
            )
        imported = put_reading(
            registry.store,
            reading,
            str(path.resolve()),
            shown=str(path),
            dry_run=dry_run,
            accept=accept,
            started=started,
        )
    if not dry_run and not no_index:
        index = build_index(bench, name)
    if as_json:
        emit_json(imported.document(registry.index.state(), index))
    else:
        show(imported, registry.index.state(), index)


def refuse_other_source(store: Store, name: str, source: str) -> None:
    """Raise UsageError where a catalog of this name came from elsewhere.

    Two sources often give one name (``openapi.json``); what nobody named is not replaced.
    """
    entry = next((one for one in store.catalogs() if one.name == name), None)
    if entry is not None and entry.source != source:
        origin = f" from {entry.source!r}" if entry.source else ""
        raise UsageError(
            f"a catalog {name!r} is there already, with {counted(entry.apis, 'API')}{origin}",
            hint=f"give this one another name with --name, or replace that one with --name {name}",
        )


def put_reading(
    store: Store,
    reading: Reading,
    source: str,
    *,
    shown: str,
    dry_run: bool,
    accept: bool,
    started: float,
) -> Imported:
    """Store the catalog that was read at ``source`` and return what that came to."""
    from toolsrv_catalogs.difference import difference
    from toolsrv_catalogs.unread import refused_files, with_unread

    name = reading.catalog.name
    known = next((one for one in store.catalogs() if one.name == name), None)
    if known and not reading.complete:
        raise DataError(
            f"{shown!r} was not read to its end, and {name!r} is there already",
            hint="nothing was changed; import it under another name, or mend the source",
        )
    kept: dict[str, int] = {}
    if known and known.source == source and refused_files(reading):
        reading, kept = with_unread(reading, store.catalog(name, waiting=True), store.files(name))
    catalog = reading.catalog
    changes = store.preview(catalog)
    served = store.accepted(name, changes.changed)
    new = {api.id: api for api in catalog.apis}
    waiting = 0 if accept else len(served)
    hidden = store.shelf.hidden_behind(name, new)
    if not dry_run:
        note(f"storing {counted(len(new), 'API')}")
        store.put_catalog(catalog, hold=not accept, source=source, files=reading.origins)
        waiting = len(store.changed(name))
    return Imported(
        reading=reading,
        source=shown,
        changes=changes,
        kept=kept,
        differences={i: difference(served[i], new[i]) for i in changes.changed},
        waiting=waiting,
        hidden_behind=hidden,
        dry_run=dry_run,
        accepted=accept,
        seconds=time.perf_counter() - started,
    )


def build_index(bench: Workbench, name: str) -> IndexResult:
    """Build the index; where that fails or is interrupted the catalog is there all the same."""
    started = time.perf_counter()
    try:
        with interruptible(), Bar("building the index", "APIs") as bar:
            bench.build_index(bar.show)
    except KeyboardInterrupt:
        note(
            f"note: {name} is imported and found by words; build the index with: toolsrv index build"
        )
        raise
    except ToolsrvError as error:
        return IndexResult(time.perf_counter() - started, f"{error.message} ({error.hint})")
    return IndexResult(time.perf_counter() - started, "")

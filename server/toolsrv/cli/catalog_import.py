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
    ),
)
@click.argument("source", metavar="PATH", type=click.Path())
@click.option("--name", metavar="NAME", help="The catalog's name.  [default: after PATH]")
@click.option("--category", metavar="NAME", help="Category of what names none.  [default: Other]")
@click.option("--server", metavar="URL", help="Where OpenAPI documents are called.")
@click.option(
    "--server-var",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable of OpenAPI servers.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--accept", is_flag=True, help="Serve changed texts at once.")
@click.option("--no-index", is_flag=True, help="Do not build the search index afterwards.")
@json_option
@pass_session
def import_(
    session: Session,
    source: str,
    name: str | None,
    category: str | None,
    server: str | None,
    variables: tuple[str, ...],
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Take the APIs at PATH into a catalog, and index them for search.

    PATH is ToolBench's toolenv (the folder, or its .tar.gz, .tar or .zip, which is not unpacked),
    tool files, or OpenAPI 3 and Swagger 2.0 documents in JSON or YAML. Importing again takes what was
    added and removed; a text that changed is shown and waits until it is accepted, with --accept
    or `toolsrv catalog accept`. What cannot be read is refused, with a reason, and the rest taken;
    what was read of a file before stays while the file is refused.
    A catalog of another source is replaced only where --name names it.
    """
    from toolsrv_catalogs.importer import catalog_name, check_name, read_catalog

    started = time.perf_counter()
    if not source.strip():  # Path("") is the present folder
        raise UsageError("PATH names no source", hint="name a folder, archive or file to import")
    if source.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"{source!r} is an address, and addresses are not fetched",
            hint="download it, and import the file: curl -O URL",
        )
    path = Path(source).expanduser()
    given, name = name, catalog_name(path) if name is None else name
    check_name(name)
    refuse_shipped(name, "imported over", "choose another name with --name")
    bench = session.workbench()
    registry = bench.registry()
    if given is None:
        _refuse_other_source(registry.store, name, path)
    index = None
    with interruptible():
        with Bar("reading", "bytes") as bar:
            reading = read_catalog(
                path,
                name=name,
                category=category,
                server=server,
                variables=_variables(variables),
                progress=bar.show,
            )
        imported = _put(
            registry.store, reading, path, dry_run=dry_run, accept=accept, started=started
        )
    if not dry_run and not no_index:
        index = _index(bench, name)
    if as_json:
        emit_json(imported.document(registry.index.state(), index))
    else:
        show(imported, registry.index.state(), index)


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of servers. Raises UsageError for one without a value."""
    for one in given:
        if not one.partition("=")[2]:
            raise UsageError(
                f"{one!r} gives no value to a variable", hint="write it as tenant=acme"
            )
    return {name: value for name, _, value in (one.partition("=") for one in given)}


def _refuse_other_source(store: Store, name: str, path: Path) -> None:
    """Raise UsageError where a catalog of this name came from elsewhere.

    Two sources often give one name (``openapi.json``); what nobody named is not replaced.
    """
    entry = next((one for one in store.catalogs() if one.name == name), None)
    if entry is not None and entry.source != str(path.resolve()):
        origin = f" from {entry.source!r}" if entry.source else ""
        raise UsageError(
            f"a catalog {name!r} is there already, with {counted(entry.apis, 'API')}{origin}",
            hint=f"give this one another name with --name, or replace that one with --name {name}",
        )


def _put(
    store: Store, reading: Reading, path: Path, *, dry_run: bool, accept: bool, started: float
) -> Imported:
    """Store the catalog and return what that came to."""
    from toolsrv_catalogs.difference import difference
    from toolsrv_catalogs.unread import refused_files, with_unread

    name, source = reading.catalog.name, str(path.resolve())
    known = next((one for one in store.catalogs() if one.name == name), None)
    if known and not reading.complete:
        raise DataError(
            f"{str(path)!r} was not read to its end, and {name!r} is there already",
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
        source=str(path),
        changes=changes,
        kept=kept,
        differences={i: difference(served[i], new[i]) for i in changes.changed},
        waiting=waiting,
        hidden_behind=hidden,
        dry_run=dry_run,
        accepted=accept,
        seconds=time.perf_counter() - started,
    )


def _index(bench: Workbench, name: str) -> IndexResult:
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

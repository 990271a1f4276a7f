"""Compare, store and index an imported catalog, from any source.

Until the store's one transaction nothing has changed; after it the catalog stays, whatever
becomes of the index.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.cli.catalog.changes import refuse_shipped
from toolsrv.cli.catalog.report import Imported, IndexResult, show
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.output import Bar, emit_json, note, pluralize
from toolsrv.cli.session import Session
from toolsrv.plain import plain
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_catalogs.importer import ImportResult
    from toolsrv_registry.api import Catalog
    from toolsrv_registry.storage.entries import ImportOptions, Origin
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.calls.addresses import AddressResolver

BACKGROUND = 5_000
"""Of more texts that the index lacks the vectors are made in the background, after an import."""

_background_builds: list[subprocess.Popen[bytes]] = []
"""Processes in the background, kept because nobody waits for them."""


@dataclass(frozen=True, slots=True)
class ImportSource:
    """What is imported: the file or folder, and what the catalog keeps of where it came from.

    ``name`` is the catalog's, ``""`` for the path's; ``options`` say how it is read.
    """

    path: Path
    source: str
    options: ImportOptions
    origin: Origin | None = None
    name: str = ""
    addresses: AddressResolver | None = None
    """Where it came from the web: which addresses its other files may have."""
    web_place: str = ""
    """Where its web address led to."""


def import_catalog(
    session: Session,
    place: ImportSource,
    *,
    name: str | None,
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Read, compare, store and index a catalog, and show what that came to.

    Raises:
        ToolsrvError: it cannot be read, or would replace what nobody named.
    """
    from toolsrv_catalogs.importer import catalog_name, check_name

    started = time.perf_counter()
    given, name = name, (place.name or catalog_name(place.path)) if name is None else name
    check_name(name)
    refuse_shipped(name, "imported over", "choose another name with --name")
    bench = session.workbench()
    registry = bench.registry()
    if given is None:
        refuse_other_source(registry.store, name, place.source)
    index = None
    with interruptible():
        imported = store_reading(
            registry.store,
            read_place(place, name),
            place.source,
            shown=str(place.path),
            origin=place.origin,
            options=place.options,
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


def read_place(place: ImportSource, name: str) -> ImportResult:
    """Read what is at a place, as its options say. Raises as ``read_catalog``."""
    from toolsrv.downloads import WebFolder
    from toolsrv_catalogs.importer import read_catalog
    from toolsrv_runtime.hub.web import is_web_address

    options = place.options
    url = options.place if is_web_address(options.place.lower()) else ""
    with Bar("reading", "bytes") as bar, ExitStack() as stack:
        files = (
            stack.enter_context(WebFolder(url, place.addresses, place=place.web_place))
            if place.addresses
            else None
        )
        return read_catalog(
            place.path,
            name=name,
            category=options.category,
            server=options.server,
            variables=options.variables,
            location=url,
            sibling=files,
            within=options.within,
            include=options.include,
            exclude=options.exclude,
            progress=bar.show,
        )


def refuse_other_source(store: Store, name: str, source: str) -> None:
    """Raise UsageError where a catalog of this name came from elsewhere.

    Two sources often give one name (``openapi.json``); what nobody named is not replaced.
    """
    entry = next((one for one in store.catalogs() if one.name == name), None)
    if entry is not None and entry.source != source:
        origin = f" from {entry.source!r}" if entry.source else ""
        raise UsageError(
            f"a catalog {name!r} is there already, with {pluralize(entry.apis, 'API')}{origin}",
            hint=f"give this one another name with --name, or replace that one with --name {name}",
        )


def store_reading(
    store: Store,
    reading: ImportResult,
    source: str,
    *,
    shown: str,
    origin: Origin | None = None,
    options: ImportOptions | None = None,
    dry_run: bool,
    accept: bool,
    started: float,
) -> Imported:
    """Store the catalog that was read at ``source`` and return what that came to."""
    from toolsrv_catalogs.difference import aspects, difference
    from toolsrv_catalogs.importer import refused_files, with_unread

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
    catalog = _with_unique_ids(store, reading.catalog)
    changes = store.preview(catalog)
    served = store.accepted(name, changes.changed)
    new = {api.id: api for api in catalog.apis}
    waiting = 0 if accept else len(served)
    hidden = store.labels.hidden_behind(name, new)
    if not dry_run:
        note(f"storing {pluralize(len(new), 'API')}")
        store.put_catalog(
            catalog,
            hold=not accept,
            source=source,
            files=reading.origins,
            origin=origin,
            options=options,
        )
        waiting = len(store.changed(name))
    return Imported(
        reading=reading,
        source=shown,
        origin=origin,
        changes=changes,
        kept=kept,
        differences={i: difference(served[i], new[i]) for i in changes.changed},
        aspects={i: aspects(served[i], new[i]) for i in changes.changed},
        waiting=waiting,
        hidden_behind=hidden,
        dry_run=dry_run,
        accepted=accept,
        seconds=time.perf_counter() - started,
    )


def _with_unique_ids(store: Store, catalog: Catalog) -> Catalog:
    """Return a catalog whose ids mean nothing else in other catalogs; changed ones are told."""
    from toolsrv_catalogs.unique_ids import addresses, with_unique_ids

    name = catalog.name
    known = store.labels.calls_by_id(addresses(catalog))
    others = {
        api_id: [call for catalog, call in calls.items() if catalog != name]
        for api_id, calls in known.items()
    }
    own = [api_id for api_id, calls in known.items() if name in calls]
    catalog, changed = with_unique_ids(catalog, others, own)
    if changed:
        old, new = next(iter(changed.items()))
        ids = pluralize(len(changed), "id is", "ids are")
        note(f"note: {ids} another catalog's for another API; {plain(old)} is {plain(new)} here")
    return catalog


def build_index(bench: Workbench, name: str) -> IndexResult:
    """Build the index; where that fails or is interrupted the catalog is there all the same.

    Many new texts are left to a process in the background: words find their APIs until it is done.
    """
    started = time.perf_counter()
    index = bench.registry().index
    if bench.registry().store.size() - index.status().apis > BACKGROUND:
        fault = build_index_in_background(bench.settings.data_dir)
        return IndexResult(time.perf_counter() - started, fault, in_background=not fault)
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


def build_index_in_background(data_dir: Path) -> str:
    """Start a process that builds the index and outlives this one; return what hinders it.

    What it says is kept in ``index.log`` of the data folder.
    """
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        apart = {"creationflags": flags}
    command = [sys.executable, "-m", "toolsrv", "--data-dir", str(data_dir), "index", "build"]
    try:
        with (data_dir / "index.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - this program
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **apart
            )
        _background_builds.append(process)
    except OSError as error:
        return f"{error.strerror or error} (toolsrv index build)"
    return ""

"""``toolsrv catalog import mcp:…`` and ``--from CLIENT``: the tools of MCP servers as catalogs."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.catalog.changes import refuse_shipped
from toolsrv.cli.catalog.report import Imported, IndexResult, show
from toolsrv.cli.catalog.storing import build_index, refuse_other_source, store_reading
from toolsrv.cli.error_handler import FAULT
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.output import emit_json, note, pluralize, table
from toolsrv.plain import one_line
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.calls.keys import KeyStore
    from toolsrv.calls.mcp_sources import ImportableServer, SkippedEntry
    from toolsrv.cli.session import Session
    from toolsrv.settings import Settings
    from toolsrv.workbench import Workbench
    from toolsrv_catalogs.importer import ImportResult
    from toolsrv_registry.storage.entries import ImportOptions
    from toolsrv_runtime.mcp_client import McpServer
    from toolsrv_runtime.mcp_client.tool_calls import ServerListing


@dataclass(frozen=True)
class ServerImport:
    """What is to be imported, and how."""

    source: str
    client: str | None
    name: str | None
    env: tuple[str, ...]
    headers: tuple[str, ...]
    category: str | None
    dry_run: bool
    accept: bool
    index: bool


def import_servers(session: Session, wanted: ServerImport, *, as_json: bool) -> None:
    """Import one MCP server, or all of a client's; the fault of one leaves the others alone."""
    bench = session.workbench()
    found, passed = _found(bench.settings, wanted)
    done: list[Imported] = []
    failed: list[tuple[str, ToolsrvError]] = []
    for one in found:
        try:
            done.append(_import(bench, one, wanted))
        except ToolsrvError as error:
            if wanted.client is None:
                raise
            failed.append((one.server.name, error))
    index = None
    if done and wanted.index and not wanted.dry_run:
        index = build_index(bench, done[-1].reading.catalog.name)
    state = bench.registry().index.state()
    if wanted.client is None:
        emit_json(done[0].document(state, index)) if as_json else show(done[0], state, index)
        return
    if as_json:
        _emit(done, passed, failed, state, index)
    else:
        for imported in done:
            show(imported, state, index)
        rows = [(one.name, f"passed over: {one.reason}") for one in passed]
        rows += [(name, f"failed: {error.message} ({error.hint})") for name, error in failed]
        if rows:
            table(("entry", "not imported"), [(one_line(a, 60), b) for a, b in rows])
    if failed:
        note(f"error: {pluralize(len(failed), 'MCP server')} could not be imported")
        click.get_current_context().exit(FAULT)


def _found(
    settings: Settings, wanted: ServerImport
) -> tuple[list[ImportableServer], list[SkippedEntry]]:
    from toolsrv.calls.catalog_files import ServerFile
    from toolsrv.calls.mcp_sources import named_source, servers_of_client
    from toolsrv.cli.connect import chosen_client, this_machine

    if wanted.client is None:
        known = ServerFile(settings.data_dir).all()
        one = named_source(
            wanted.source,
            this_machine(),
            known,
            name=wanted.name,
            env=wanted.env,
            headers=wanted.headers,
        )
        return [one], []
    if wanted.source or wanted.name or wanted.env or wanted.headers:
        raise UsageError(
            "--from takes all servers of a client, each under its own name",
            hint="for one of them: toolsrv catalog import mcp:NAME",
        )
    return servers_of_client(chosen_client(wanted.client), this_machine())


def _import(bench: Workbench, found: ImportableServer, wanted: ServerImport) -> Imported:
    from toolsrv.calls.catalog_files import ServerFile
    from toolsrv.calls.keys import KeyStore

    started, server = time.perf_counter(), found.server
    folder, store = bench.settings.data_dir, bench.registry().store
    refuse_shipped(server.name, "imported over", "choose another name with --name")
    source = source_line(server)
    if wanted.name is None:
        refuse_other_source(store, server.name, source)
    keys = KeyStore(folder)
    values = _values(found, keys)
    options = options_of(server, wanted.category)
    with interruptible():
        reading = read_server(
            bench.settings, server, lambda key: values.get(key) or keys.secret(key), options
        )
        if not wanted.dry_run:
            for key, value in values.items():
                keys.store(key, value)
            ServerFile(folder).put(server)
        return store_reading(
            store,
            reading,
            source,
            shown=source,
            options=options,
            dry_run=wanted.dry_run,
            accept=wanted.accept,
            started=started,
        )


def source_line(server: McpServer) -> str:
    """Return what a catalog keeps as its source."""
    return f"mcp: {server.place}"


def options_of(server: McpServer, category: str | None) -> ImportOptions:
    """Return how the tools of a server are imported."""
    from toolsrv_registry.storage.entries import ImportOptions

    return ImportOptions(place=f"mcp:{server.name}", category=category)


def read_server(
    settings: Settings, server: McpServer, keys: Callable[[str], str], options: ImportOptions
) -> ImportResult:
    """Read the tools that a server lists.

    Raises:
        DataError: it cannot be reached, or lists nothing that can be taken.
    """
    from toolsrv_catalogs.mcp_tools import read_mcp_tools

    note(f"{'connecting to' if server.url else 'starting'} {one_line(server.place, 300)}")
    listing = _listing(settings, server, keys)
    return read_mcp_tools(
        listing.definitions,
        name=server.name,
        title=listing.title,
        about=listing.about,
        category=options.category,
        complete=listing.complete,
    )


def _values(found: ImportableServer, keys: KeyStore) -> dict[str, str]:
    """Return the values to keep, by the names of their keys; ask for what nobody has given."""
    values: dict[str, str] = {}
    for secret in found.server.secrets:
        key = found.server.key_name(secret)
        if secret in found.values:
            values[key] = found.values[secret]
        elif not keys.secret(key):
            if not sys.stdin.isatty():
                raise UsageError(
                    f"the MCP server {found.server.name!r} needs a value for {secret}",
                    hint=f"keep it first: toolsrv keys set {key}",
                )
            values[key] = click.prompt(
                f"{secret} for {found.server.name}", hide_input=True, err=True
            )
    return values


def _listing(settings: Settings, server: McpServer, keys: Callable[[str], str]) -> ServerListing:
    from toolsrv_runtime.calls.addresses import AddressResolver, parse_own_hosts
    from toolsrv_runtime.mcp_client.connection import UnreachableError
    from toolsrv_runtime.mcp_client.tool_calls import ToolServers

    async def read() -> ServerListing:
        servers = ToolServers(
            {server.name: server}.get,
            keys=keys,
            addresses=AddressResolver(own=parse_own_hosts(settings.own_hosts)),
        )
        try:
            return await servers.listing(server)
        finally:
            await servers.aclose()

    try:
        return asyncio.run(read())
    except UnreachableError as error:
        raise DataError(
            f"the MCP server {server.name!r} {error}",
            hint="see that its command or address works by itself (a program that is missing: "
            "install it, or write its whole path), then repeat",
        ) from None


def _emit(
    done: list[Imported],
    passed: list[SkippedEntry],
    failed: list[tuple[str, ToolsrvError]],
    state: str,
    index: IndexResult | None,
) -> None:
    document: dict[str, Any] = {
        "imported": [one.document(state, index) for one in done],
        "passed_over": [{"name": one.name, "reason": one.reason} for one in passed],
        "failed": [
            {"name": name, "error": error.message, "hint": error.hint} for name, error in failed
        ],
    }
    emit_json(document)

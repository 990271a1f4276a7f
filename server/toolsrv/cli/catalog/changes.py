"""``toolsrv catalog diff``, ``accept``, ``enable``, ``disable``, ``remove``, ``set``, ``unset``, ``export``.

Changes of a stored catalog, and its export in ToolBench's layout.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json, note, pluralize
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import plain
from toolsrv_registry.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolsrv.calls.catalog_files import FixedFile
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.calls.authenticated import FixedKind

_STYLES = {"---": "bold", "+++": "bold", "@@": "cyan", "+": "green", "-": "red"}


def show_difference(lines: Iterable[str]) -> None:
    """Print the lines of a diff on stdout, coloured on a terminal."""
    out = console()
    for line in lines:
        style = next((style for head, style in _STYLES.items() if line.startswith(head)), "")
        out.print(plain(line), style=style, soft_wrap=True)


@click.command(epilog=example("toolsrv catalog diff offline"))
@click.argument("name")
@json_option
@pass_session
def diff(session: Session, name: str, as_json: bool) -> None:
    """Show what changed in the catalog NAME and waits to be accepted.

    Until then the accepted text is the one that is searched, shown and called.
    """
    from toolsrv_catalogs.difference import difference

    waiting = session.workbench().registry().store.pending(name)
    changes = [(one.served.id, difference(one.served, one.new)) for one in waiting]
    if as_json:
        emit_json({"catalog": name, "changed": [{"id": i, "diff": d} for i, d in changes]})
        return
    for _, lines in changes:
        show_difference(lines)
    waits = pluralize(len(changes), "changed text waits", "changed texts wait")
    told = f"{waits}: toolsrv catalog accept {name}"
    note(f"note: {told}" if changes else f"note: nothing waits in {name}")


@click.command(epilog=example("toolsrv catalog accept offline"))
@click.argument("name")
@click.argument("api_ids", metavar="[ID]...", nargs=-1)
@json_option
@pass_session
def accept(session: Session, name: str, api_ids: tuple[str, ...], as_json: bool) -> None:
    """Serve the changed texts of the catalog NAME from now on, or those of some IDs only."""
    store = session.workbench().registry().store
    if unknown := set(api_ids) - set(store.changed(name)):
        raise NotFoundError(
            f"no changed text waits for {min(unknown)!r}",
            hint=f"see toolsrv catalog diff {name}",
        )
    accepted = store.accept(name, api_ids or None)
    if as_json:
        emit_json({"catalog": name, "accepted": accepted, "waiting": len(store.changed(name))})
        return
    if not accepted:
        note(f"note: nothing waits in {name}")
        return
    served = pluralize(accepted, f"changed text of {name} is", f"changed texts of {name} are")
    console().print(f"{served} served now")
    note_stale_index(session)


@click.command(epilog=example("toolsrv catalog enable offline"))
@click.argument("name")
@json_option
@pass_session
def enable(session: Session, name: str, as_json: bool) -> None:
    """Let searches and solves find the APIs of the catalog NAME."""
    _switch(session, name, enabled=True, as_json=as_json)


@click.command(epilog=example("toolsrv catalog disable offline"))
@click.argument("name")
@json_option
@pass_session
def disable(session: Session, name: str, as_json: bool) -> None:
    """Hide the APIs of the catalog NAME; it stays in the store."""
    _switch(session, name, enabled=False, as_json=as_json)


@click.command(epilog=example("toolsrv catalog remove my_tools --yes"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_session
def remove(session: Session, name: str, yes: bool, as_json: bool) -> None:
    """Remove the catalog NAME with all its APIs from the store."""
    refuse_shipped(name, "removed", f"hide it with: toolsrv catalog disable {name}")
    store = session.workbench().registry().store
    entry = _entry(store, name)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("removing a catalog asks first", hint="say --yes")
        click.confirm(f"Remove {pluralize(entry['apis'], 'API')} of {name}?", abort=True, err=True)
    removed = store.remove_catalog(name)
    _forget_server(session, name)
    if as_json:
        emit_json({"catalog": name, "removed_apis": removed})
        return
    console().print(f"removed {name} with {pluralize(removed, 'API')}")


def refuse_shipped(name: str, done: str, hint: str) -> None:
    """Raise UsageError for the catalog that ships, which comes back with every start."""
    from toolsrv_catalogs.offline import OFFLINE_CATALOG

    if name == OFFLINE_CATALOG:
        raise UsageError(f"the catalog {name!r} ships with toolsrv and cannot be {done}", hint=hint)


def hidden_note(name: str, behind: Mapping[str, int]) -> str:
    """Say which catalogs hide APIs of a catalog, and how to see them all the same."""
    many = ", ".join(f"{count} behind {other}" for other, count in behind.items())
    return (
        f"APIs of {name} are hidden, because an earlier catalog has their ids: {many}; shown by"
        f" `toolsrv describe ID --catalog {name}`, found after"
        f" `toolsrv catalog disable {next(iter(behind))}`"
    )


def note_stale_index(session: Session) -> None:
    """Say so when the index does not fit the catalogs."""
    if session.workbench().registry().index.state() != "ready":
        note("note: the index is out of date; bring it up with: toolsrv index build")


def _switch(session: Session, name: str, *, enabled: bool, as_json: bool) -> None:
    store = session.workbench().registry().store
    store.set_enabled(name, enabled)
    if as_json:
        emit_json({"catalog": name, "enabled": enabled, "apis": _entry(store, name)["apis"]})
        return
    done = "enabled" if enabled else "disabled"
    console().print(f"{name} is {done}: {pluralize(_entry(store, name)['apis'], 'API')}")
    note_stale_index(session)


def _forget_server(session: Session, name: str) -> None:
    from toolsrv.calls.catalog_files import FixedFile, ServerFile

    FixedFile(session.load().settings.data_dir).forget(name)
    if ServerFile(session.load().settings.data_dir).remove(name):
        note(f"note: the MCP server {name} is forgotten, and the values that were kept for it")


def _entry(store: Store, name: str) -> dict[str, Any]:
    store.changed(name)  # raises NotFoundError, with the names there are
    return next(one.model_dump() for one in store.catalogs() if one.name == name)


_KIND = click.Choice(["header", "query"])


@click.command("set", epilog=example("toolsrv catalog set notion header Notion-Version=2022-06-28"))
@click.argument("name")
@click.argument("kind", type=_KIND)
@click.argument("value", metavar="NAME=VALUE")
@json_option
@pass_session
def set_(session: Session, name: str, kind: FixedKind, value: str, as_json: bool) -> None:
    """Send a header or a query parameter with each live call of the catalog NAME.

    It stays when the catalog is imported again. An API that has this parameter gets the value, and
    no argument replaces it. Keys are no such values: toolsrv keys set.
    """
    refuse_shipped(name, "changed", "its APIs are not called over the network")
    key, equals, text = value.partition("=")
    if not equals:
        raise UsageError(
            f"{value[:80]!r} has no =", hint="write NAME=VALUE: Notion-Version=2022-06-28"
        )
    kept = _file(session, name)
    kept.set(name, kind, key.strip(), text.strip())
    _tell(kept, name, as_json)


@click.command(epilog=example("toolsrv catalog unset notion header Notion-Version"))
@click.argument("name")
@click.argument("kind", type=_KIND)
@click.argument("key", metavar="NAME")
@json_option
@pass_session
def unset(session: Session, name: str, kind: FixedKind, key: str, as_json: bool) -> None:
    """No longer send a header or a query parameter with the calls of the catalog NAME."""
    kept = _file(session, name)
    kept.unset(name, kind, key)
    _tell(kept, name, as_json)


def _file(session: Session, name: str) -> FixedFile:
    """Return the file, once there is such a catalog and its calls have headers."""
    from toolsrv.calls.catalog_files import FixedFile, ServerFile

    bench = session.workbench()
    bench.registry().store.changed(name)  # raises NotFoundError, with the names there are
    folder = bench.settings.data_dir
    if ServerFile(folder).find(name) is not None:
        raise UsageError(
            f"{name} is an MCP server, whose calls are not HTTP requests of their own",
            hint=f"a header of its connection: toolsrv keys set mcp:{name}/HEADER",
        )
    return FixedFile(folder)


def _tell(kept: FixedFile, name: str, as_json: bool) -> None:
    from toolsrv.calls.catalog_files import CatalogValues

    values = kept.all().get(name, CatalogValues())
    if as_json:
        emit_json({"catalog": name, "fixed": values.model_dump()})
        return
    lines = values.lines()
    console().print(
        f"sent with each live call of {name}: {'; '.join(lines) or 'nothing'}", soft_wrap=True
    )


@click.command(epilog=example("toolsrv catalog export offline tools-of-mine.tar.gz --force"))
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@json_option
@pass_session
def export(session: Session, name: str, path: Path, force: bool, as_json: bool) -> None:
    """Write the catalog NAME to PATH, as `toolsrv catalog import` reads it.

    An archive where PATH ends in .tar.gz, .tgz, .tar or .zip, else a folder. What is served is
    written: a changed text that waits to be accepted is not.
    """
    from toolsrv_catalogs.export import export_catalog

    store = session.workbench().registry().store
    catalog = store.catalog(name)
    session.public()
    files = export_catalog(catalog, path.expanduser(), overwrite=force)
    if waiting := len(store.changed(name)):
        waits = pluralize(waiting, "changed text waits", "changed texts wait")
        note(f"note: {waits} to be accepted, and what is served is in it")
    if as_json:
        document = {"catalog": name, "path": str(path), "files": files, "apis": len(catalog.apis)}
        emit_json(document | {"waiting": waiting})
        return
    wrote = f"{pluralize(len(catalog.apis), 'API')} in {pluralize(files, 'file')}"
    console().print(f"wrote {wrote} to {path}")

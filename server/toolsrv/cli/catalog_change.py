"""``toolsrv catalog diff|accept|enable|disable|remove``: what is done to a stored catalog."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import counted
from toolsrv.plain import plain
from toolsrv_registry.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolsrv_registry.store import Store

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
    waits = counted(len(changes), "changed text waits", "changed texts wait")
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
    served = counted(accepted, f"changed text of {name} is", f"changed texts of {name} are")
    console().print(f"{served} served now")
    tell_index(session)


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
        click.confirm(f"Remove {counted(entry['apis'], 'API')} of {name}?", abort=True, err=True)
    removed = store.remove_catalog(name)
    _forget_server(session, name)
    if as_json:
        emit_json({"catalog": name, "removed_apis": removed})
        return
    console().print(f"removed {name} with {counted(removed, 'API')}")


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


def tell_index(session: Session) -> None:
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
    console().print(f"{name} is {done}: {counted(_entry(store, name)['apis'], 'API')}")
    tell_index(session)


def _forget_server(session: Session, name: str) -> None:
    from toolsrv.fixed_values import FixedFile
    from toolsrv.mcp_servers import ServerFile

    FixedFile(session.load().settings.data_dir).forget(name)
    if ServerFile(session.load().settings.data_dir).remove(name):
        note(f"note: the MCP server {name} is forgotten, and the values that were kept for it")


def _entry(store: Store, name: str) -> dict[str, Any]:
    store.changed(name)  # raises NotFoundError, with the names there are
    return next(one.model_dump() for one in store.catalogs() if one.name == name)

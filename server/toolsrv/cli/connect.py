"""``toolsrv connect`` and ``disconnect``: toolsrv in the configuration of MCP clients."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.clients.known import Client, Machine, System
    from toolsrv.clients.register import Change
    from toolsrv.clients.started import Start

dry_option = click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")


@click.command(epilog=example("toolsrv connect --list", "toolsrv connect cursor --dry-run"))
@click.argument("client", required=False)
@click.option("--list", "listed", is_flag=True, help="Show the clients and which are found here.")
@click.option("--replace", is_flag=True, help="Also an entry toolsrv of another program.")
@click.option("--no-try", is_flag=True, help="Do not start the server to see that it answers.")
@dry_option
@json_option
@pass_session
def connect(
    session: Session,
    client: str | None,
    listed: bool,
    replace: bool,
    no_try: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Register `toolsrv serve` in CLIENT's own configuration file.

    Other entries and comments stay, and the old file is kept beside it as *.toolsrv-backup. A data
    folder named by --data-dir or TOOLSRV_DATA_DIR goes into the entry, as other TOOLSRV_ variables
    that are settings do. The server is started afterwards as the client starts it, to see that it
    answers, and its first answers are kept for the next start.
    """
    if listed:
        _list(as_json)
        return
    from toolsrv.clients.register import connecting

    chosen = chosen_client(client)
    own, machine = own_start(session), this_machine()
    changes = [
        connecting(chosen, machine, own.arguments, env=own.env, replace=replace, path=path)
        for path in chosen.paths(machine)
    ]
    _carry_out(changes, dry_run=dry_run, as_json=as_json, then=chosen.then)
    if not dry_run and not no_try:
        _try(own, chosen.opens, as_json=as_json)


def own_start(session: Session) -> Start:
    """Return what an entry for this installation starts, with the settings of this shell.

    Raises:
        DataError: toolsrv is not installed as a command.
    """
    from toolsrv.clients.register import command
    from toolsrv.clients.started import Start

    loaded = session.load()
    moved = loaded.origins["data_dir"] not in ("default", str(loaded.path))
    folder = ("--data-dir", str(loaded.settings.data_dir)) if moved else ()
    return Start(str(command()), (*folder, "serve"), entry_variables(loaded.origins))


def entry_variables(origins: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this shell that an entry must set, as a client has not got them.

    Settings, which ``origins`` say come from variables, and the folders of the XDG standard; no
    secrets: keys are kept in the data folder or the keyring.
    """
    from toolsrv.places import CONFIG_VARIABLE, PREFIX

    named = [f"{PREFIX}{key.upper()}" for key in origins if key != "data_dir"]
    names = [CONFIG_VARIABLE, "XDG_DATA_HOME", "XDG_CONFIG_HOME", *named]
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _try(own: Start, revisions: Sequence[str], *, as_json: bool) -> None:
    """Start the server in the versions that a client opens with: it then gets its answers at once."""
    from toolsrv.clients.handshake import prime
    from toolsrv.clients.registrations import answered

    try:
        heard = prime(own, revisions)
    except ToolsrvError as error:
        note(f"note: {error.message}; look closer with toolsrv doctor")
    else:
        if not as_json:
            note(f"tried: {answered(heard)}")


@click.command(epilog=example("toolsrv disconnect cursor"))
@click.argument("client", required=False)
@dry_option
@json_option
def disconnect(client: str | None, dry_run: bool, as_json: bool) -> None:
    """Take toolsrv out of CLIENT's configuration file, and nothing else.

    An entry of another program that `connect --replace` replaced comes back from the old file.
    """
    from toolsrv.clients.register import disconnecting

    chosen, machine = chosen_client(client), this_machine()
    changes = [disconnecting(chosen, machine, path=path) for path in chosen.paths(machine)]
    _carry_out(changes, dry_run=dry_run, as_json=as_json, then="restart it to let go of toolsrv")


def _carry_out(changes: Sequence[Change], *, dry_run: bool, as_json: bool, then: str) -> None:
    """Write the files of a client, and tell it; with ``as_json`` the other ones are ``others``."""
    views: list[dict[str, Any]] = []
    for change in changes:
        backup = change.write() if change.needed and not dry_run else None
        if as_json:
            views.append(_view(change, backup, dry_run=dry_run))
        elif not change.needed:
            click.echo(f"{change.path}: nothing to change")
        elif dry_run:
            click.echo(change.diff())
        else:
            click.echo(f"{change.path}: written")
            if change.restores:
                note(f"the entry toolsrv is again the one that was there before, from {backup}")
            elif backup is not None:
                note(f"the old file: {backup}")
    if as_json:
        emit_json(views[0] | ({"others": views[1:]} if views[1:] else {}))
    elif not dry_run and any(change.needed for change in changes):
        note(f"{changes[0].client.title}: {then}")


def _view(change: Change, backup: Path | None, *, dry_run: bool) -> dict[str, Any]:
    return {
        "client": change.client.id,
        "path": str(change.path),
        "changed": change.needed and not dry_run,
        "diff": change.diff(),
        "backup": None if backup is None else str(backup),
        "restored": change.restores,
    }


def _list(as_json: bool) -> None:
    from toolsrv.clients.known import CLIENTS

    machine = this_machine()
    rows = [_row(client, machine) for client in CLIENTS.values()]
    if as_json:
        emit_json(rows)
        return
    words = {True: "yes", False: "no", None: "?"}
    table(
        ("client", "name", "found", "connected", "file"),
        [(r["client"], r["name"], words[r["found"]], words[r["connected"]], r["path"]) for r in rows],
    )  # fmt: skip


def _row(client: Client, machine: Machine) -> dict[str, Any]:
    from toolsrv.clients.register import registered

    try:
        connected: bool | None = registered(client, machine)
    except ToolsrvError as error:
        note(f"note: {error.message}")
        connected = None
    return {
        "client": client.id,
        "name": client.title,
        "found": client.found(machine),
        "connected": connected,
        "path": str(client.path(machine)),
    }


def chosen_client(name: str | None) -> Client:
    """Return the client of that name; raise UsageError when there is none."""
    from toolsrv.clients.known import CLIENTS

    if name in CLIENTS:
        return CLIENTS[name]
    problem = "no client is named" if name is None else f"unknown client {name[:80]!r}"
    raise UsageError(problem, hint=f"one of: {', '.join(CLIENTS)}")


def this_machine() -> Machine:
    """Return what decides where clients' files are, here and now."""
    from toolsrv.clients.known import Machine

    system = sys.platform if sys.platform in ("darwin", "win32") else "linux"
    return Machine(cast("System", system), Path.home(), os.environ)

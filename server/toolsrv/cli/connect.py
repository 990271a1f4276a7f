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
    from toolsrv.clients.known import Client, PastedConfig, ServerCommand
    from toolsrv.clients.places import Machine, System
    from toolsrv.clients.register import Change

dry_option = click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")


@click.command(epilog=example("toolsrv connect --list", "toolsrv connect cursor --dry-run"))
@click.argument("client", required=False)
@click.option("--list", "listed", is_flag=True, help="Show the clients and which are found here.")
@click.option("--replace", is_flag=True, help="Also an entry toolsrv of another program.")
@click.option("--scope", type=click.Choice(["user", "project"]), default="user", show_default=True,
              help="The user's own file, or that of the project in this folder.")  # fmt: skip
@click.option("--http", "over_http", is_flag=True,
              help="Connect to `toolsrv serve --http` on this machine; its token goes into the file.")  # fmt: skip
@click.option("--port", type=click.IntRange(1, 65_535),
              help="Port of that server. [default: 8765]")  # fmt: skip
@click.option("--no-try", is_flag=True, help="Do not start the server to see that it answers.")
@dry_option
@json_option
@pass_session
def connect(
    session: Session,
    client: str | None,
    listed: bool,
    replace: bool,
    scope: str,
    over_http: bool,
    port: int | None,
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
    from toolsrv.clients.known import PASTED_CONFIGS
    from toolsrv.clients.register import registration_change

    if client is not None and client in PASTED_CONFIGS:
        _print(PASTED_CONFIGS[client], own_start(session), as_json=as_json)
        return
    chosen, machine = chosen_client(client), this_machine()
    own = own_start(session)
    entry = _http_entry(session, chosen, port) if over_http else None
    changes = [
        registration_change(
            chosen, machine, own.arguments, env=own.env, replace=replace, path=path, entry=entry
        )
        for path in _files(chosen, machine, scope)
    ]
    _carry_out(changes, dry_run=dry_run, as_json=as_json, then=chosen.then)
    if not dry_run and not no_try and not over_http:
        _try(own, chosen.opens, as_json=as_json)


def _files(client: Client, machine: Machine, scope: str) -> tuple[Path, ...]:
    """Return the files that are meant. Raises UsageError for a client without files in projects."""
    if scope == "user":
        return client.paths(machine)
    path = client.project_path(Path.cwd())
    if path is None:
        from toolsrv.clients.places import PROJECT

        raise UsageError(
            f"{client.title} reads no file of a project", hint=f"these do: {', '.join(PROJECT)}"
        )
    return (path,)


def _http_entry(session: Session, client: Client, port: int | None) -> dict[str, Any]:
    """Return the entry that connects to the server on HTTP, with the token that is kept for it."""
    from toolsrv.loopback import HTTP_PORT, TOKEN_FILE, choose_token

    token = choose_token(session.load().settings.data_dir / TOKEN_FILE)
    url = f"http://127.0.0.1:{port or HTTP_PORT}/mcp"
    return client.http_entry(url, {"Authorization": f"Bearer {token}"})


def _print(client: PastedConfig, own: ServerCommand, *, as_json: bool) -> None:
    """Show what a person pastes into a client that has no file of its own to change."""
    text = client.text(own)
    if as_json:
        emit_json({"client": client.title, "where": client.where, "text": text})
        return
    note(f"{client.title}: put this into {client.where}")
    click.echo(text)


def own_start(session: Session) -> ServerCommand:
    """Return what an entry for this installation starts, with the settings of this shell.

    Raises:
        DataError: toolsrv is not installed as a command.
    """
    from toolsrv.clients.known import ServerCommand
    from toolsrv.clients.register import command

    loaded = session.load()
    moved = loaded.origins["data_dir"] not in ("default", str(loaded.path))
    folder = ("--data-dir", str(loaded.settings.data_dir)) if moved else ()
    return ServerCommand(str(command()), (*folder, "serve"), entry_variables(loaded.origins))


def entry_variables(origins: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this shell that an entry must set, as a client has not got them.

    Settings, which ``origins`` say come from variables, and the folders of the XDG standard; no
    secrets: keys are kept in the data folder or the keyring.
    """
    from toolsrv.config_file import CONFIG_VARIABLE, PREFIX

    named = [
        place for key, place in origins.items() if place.startswith(PREFIX) and key != "data_dir"
    ]
    names = [CONFIG_VARIABLE, "XDG_DATA_HOME", "XDG_CONFIG_HOME", *named]
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _try(own: ServerCommand, revisions: Sequence[str], *, as_json: bool) -> None:
    """Start the server in the versions that a client opens with: it then gets its answers at once."""
    from toolsrv.clients.handshake import warm_handshake_cache
    from toolsrv.clients.registrations import handshake_status

    try:
        heard = warm_handshake_cache(own, revisions)
    except ToolsrvError as error:
        note(f"note: {error.message}; look closer with toolsrv doctor")
    else:
        if not as_json:
            note(f"tried: {handshake_status(heard)}")


@click.command(epilog=example("toolsrv disconnect cursor"))
@click.argument("client", required=False)
@click.option("--scope", type=click.Choice(["user", "project"]), default="user", show_default=True,
              help="The user's own file, or that of the project in this folder.")  # fmt: skip
@dry_option
@json_option
def disconnect(client: str | None, scope: str, dry_run: bool, as_json: bool) -> None:
    """Take toolsrv out of CLIENT's configuration file, and nothing else.

    Where nothing else has changed since, the file is again as it was before `connect`, byte for
    byte. An entry of another program that `connect --replace` replaced comes back from the old
    file.
    """
    from toolsrv.clients.register import removal_change

    chosen, machine = chosen_client(client), this_machine()
    changes = [
        removal_change(chosen, machine, path=path) for path in _files(chosen, machine, scope)
    ]
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
        elif change.deletes:
            click.echo(f"{change.path}: removed, as there was none before")
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
    table(
        ("client", "name", "found", "connected", "file"),
        [(r["client"], r["name"], _word(r["found"]), _connected(r), r["path"]) for r in rows],
    )
    for row in rows:
        if row["stale"]:
            note(
                f"{row['client']}: {row['stale']} no longer exists; toolsrv connect {row['client']}"
            )
    from toolsrv.clients.known import PASTED_CONFIGS

    note(f"shown to be pasted: {', '.join(f'toolsrv connect {name}' for name in PASTED_CONFIGS)}")


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[value]


def _connected(row: dict[str, Any]) -> str:
    return "stale" if row["stale"] else _word(row["connected"])


def _row(client: Client, machine: Machine) -> dict[str, Any]:
    """Return what is known of a client; ``stale`` is the program of an entry that is gone."""
    from toolsrv.clients.registrations import UnreadableFile, registrations

    found = list(registrations(machine, [client]))
    damage = [one for one in found if isinstance(one, UnreadableFile)]
    for one in damage:
        note(f"note: {one.error.message}")
    gone = [one.start.command for one in found if not isinstance(one, UnreadableFile)
            and one.start is not None and one.is_stale]  # fmt: skip
    return {
        "client": client.id,
        "name": client.title,
        "found": client.found(machine),
        "connected": None if damage else len(found) == len(client.paths(machine)),
        "stale": gone[0] if gone else None,
        "path": str(client.path(machine)),
    }


def chosen_client(name: str | None) -> Client:
    """Return the client of that name; raise UsageError when there is none."""
    from toolsrv.clients.known import CLIENTS

    if name in CLIENTS:
        return CLIENTS[name]
    problem = "no client is named" if name is None else f"unknown client {name[:80]!r}"
    from toolsrv.clients.known import PASTED_CONFIGS

    raise UsageError(problem, hint=f"one of: {', '.join((*CLIENTS, *PASTED_CONFIGS))}")


def this_machine() -> Machine:
    """Return what decides where clients' files are, here and now."""
    from toolsrv.clients.places import Machine

    system = sys.platform if sys.platform in ("darwin", "win32") else "linux"
    return Machine(cast("System", system), Path.home(), os.environ)

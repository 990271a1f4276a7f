"""``toolsrv config`` and ``toolsrv keys``: settings and API keys.

Keys are read hidden and never shown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, listing, note, read_stdin, table
from toolsrv.cli.session import Session, pass_session

if TYPE_CHECKING:
    from toolsrv.calls.keys import KeyStore
    from toolsrv.settings import Settings


def _note_rules(settings: Settings) -> None:
    """Tell of rules that fit no call, because they name a catalog that is not there."""
    if settings.calls:
        from toolsrv.domains import rule_notes

        for one in rule_notes(settings.data_dir, settings.calls):
            note(one)


@click.group(epilog=example("toolsrv config show"))
def config() -> None:
    """Show and change settings."""


@config.command(epilog=example("TOOLSRV_MAX_CALLS=50 toolsrv config show"))
@json_option
@pass_session
def show(session: Session, as_json: bool) -> None:
    """Show each setting with its value and its origin."""
    from toolsrv import settings

    loaded = session.load()
    fields = settings.Settings.model_fields
    values: dict[str, Any] = loaded.settings.model_dump(mode="json", include=set(fields))
    for name in settings.unknown_variables():
        note(f"note: {name} is set but means nothing to toolsrv")
    _note_rules(loaded.settings)
    if as_json:
        document = {
            key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()
        }
        emit_json({"path": str(loaded.path), "settings": document})
        return
    table(
        ("setting", "value", "origin", "meaning"),
        [
            (key, "" if value is None else value, loaded.origins[key], fields[key].description)
            for key, value in values.items()
        ],
    )


@config.command(epilog=example("toolsrv config path"))
@json_option
@pass_session
def path(session: Session, as_json: bool) -> None:
    """Print the place of the settings file; it need not exist."""
    from toolsrv import config_file

    place = config_file.config_path(session.flags)
    if as_json:
        emit_json({"path": str(place), "exists": place.is_file()})
    else:
        click.echo(place)


@config.command(
    "set",
    short_help="Set a setting in the settings file.",
    epilog=example("toolsrv config set max_seconds 300"),
)
@click.argument("key")
@click.argument("value")
@json_option
@pass_session
def set_(session: Session, key: str, value: str, as_json: bool) -> None:
    """Set KEY to VALUE in the settings file; its comments and other lines stay."""
    from toolsrv import config_file, settings

    place = config_file.config_path(session.flags)
    parsed = settings.parse_value(key, value, "config set", session.flags)
    if key == "model":
        from toolsrv.model_loading import check_model

        check_model(session.load(**{key: value}).settings, origin="")
    config_file.write_key(place, key, parsed)
    loaded = session.load()
    origin = loaded.origins[key]
    if key == "calls":
        _note_rules(loaded.settings)
    if origin not in (str(place), "default"):
        note(f"note: {origin} is set and wins over the file")
    if as_json:
        emit_json({"path": str(place), "key": key, "value": parsed})
    else:
        note(f"{place}: {key} = {parsed}")


_PLACES = {"keyring": "the system keyring", "environment": "the environment"}


@click.group(epilog=example("toolsrv keys set rapidapi"))
def keys() -> None:
    """Manage the keys of live calls.

    A key goes to its own host only, and is shown nowhere. Instead of a stored key the environment
    may hold it: RAPIDAPI_KEY, or TOOLSRV_KEY_ with the host in capitals
    (TOOLSRV_KEY_API_EXAMPLE_COM).
    """


@keys.command("set", epilog=example("toolsrv keys set api.example.com < key.txt"))
@click.argument("name", metavar="HOST-OR-PROVIDER")
@json_option
@pass_session
def set_key(session: Session, name: str, as_json: bool) -> None:
    """Store a key, typed at a hidden prompt or read from stdin.

    The name is "rapidapi", a host, or HOST/SCHEME where a host has several; toolsrv describe names
    it. For Basic and Digest the key is USER:PASSWORD. For OAuth 2 it is a token, or, where the API
    takes client credentials, CLIENT_ID:CLIENT_SECRET: tokens are then fetched with them. If the
    tokens of HOST come from another host, its name is HOST@TOKEN-HOST. mcp:SERVER/NAME is a
    variable or a header of an MCP server that was imported.
    """
    from toolsrv.calls.keys import key_name

    store, known = _store(session), key_name(name)
    if sys.stdin is not None and sys.stdin.isatty():
        secret = click.prompt(f"key for {known}", hide_input=True, err=True)
    else:
        secret = read_stdin()
    place = store.store(known, secret)
    if place == "file":
        note(f"note: this system has no keyring; the key is in {store.path} (mode 0600)")
    if as_json:
        emit_json({"name": known, "place": place})
    else:
        note(f"stored the key for {known} in {_PLACES.get(place, store.path)}")


@keys.command(
    "list", short_help="List for whom there are keys.", epilog=example("toolsrv keys list --json")
)
@json_option
@pass_session
def list_keys(session: Session, as_json: bool) -> None:
    """List for whom there are keys, and where they are kept; never the keys."""
    store = _store(session)
    entries = store.entries()
    if as_json:
        emit_json({"keys": [{"name": one.name, "place": one.place} for one in entries]})
    elif entries:
        listing(
            ("for", "kept in"),
            [(one.name, _PLACES.get(one.place, str(store.path))) for one in entries],
        )
    else:
        note("there are no keys; store one: toolsrv keys set rapidapi")


@keys.command(epilog=example("toolsrv keys remove rapidapi"))
@click.argument("name", metavar="HOST-OR-PROVIDER")
@json_option
@pass_session
def remove(session: Session, name: str, as_json: bool) -> None:
    """Forget a stored key."""
    store = _store(session)
    entry = store.remove(name)
    if as_json:
        emit_json({"name": entry.name, "removed": True})
    else:
        note(f"removed the key for {entry.name} from {_PLACES.get(entry.place, store.path)}")


def _store(session: Session) -> KeyStore:
    from toolsrv.calls.keys import KeyStore

    return KeyStore(session.load().settings.data_dir)

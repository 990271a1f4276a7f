"""``toolsrv config``: the settings in force, where each comes from, and changing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session

if TYPE_CHECKING:
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


@config.command(epilog=example("TOOLSRV_WIDTH=3 toolsrv config show"))
@json_option
@pass_session
def show(session: Session, as_json: bool) -> None:
    """Show each setting with its value and its origin."""
    from toolsrv import settings

    loaded = session.load()
    values: dict[str, Any] = loaded.settings.model_dump(mode="json")
    for name in settings.unknown_variables():
        note(f"note: {name} is set but means nothing to toolsrv")
    _note_rules(loaded.settings)
    if as_json:
        document = {
            key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()
        }
        emit_json({"path": str(loaded.path), "settings": document})
        return
    fields = settings.Settings.model_fields
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
    from toolsrv import places

    place = places.config_path(session.flags)
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
    from toolsrv import config_file, places, settings

    place = places.config_path(session.flags)
    parsed = settings.parse_value(key, value, "config set")
    if key in {"model", "profile", "adapter"}:
        from toolsrv.model_file import check_model

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

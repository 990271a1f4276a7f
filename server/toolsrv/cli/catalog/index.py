"""``toolsrv index``: the search index, built and inspected."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, format_value, index_progress, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

SHIPPED = "shipped"


@click.group(epilog=example("toolsrv index status"))
def index() -> None:
    """Build or inspect the search index."""


@index.command(
    short_help="Build the index, or what changed of it.", epilog=example("toolsrv index build")
)
@click.option(
    "--encoder",
    metavar="NAME",
    help="From now on embed with this sentence-transformers model, a folder or a hub name (extra "
    "lab); shipped: with the one that ships.",
)
@json_option
@pass_session
def build(session: Session, encoder: str | None, as_json: bool) -> None:
    """Build the index; APIs that have not changed are not embedded again.

    --encoder is kept as the setting "encoder" once the index is built; searches use it then.
    """
    bench = session.workbench() if encoder is None else _with_encoder(session, encoder)
    bench.registry()
    started = time.perf_counter()
    status = bench.build_index(index_progress())
    seconds = round(time.perf_counter() - started, 2)
    if encoder is not None:
        _keep(session, bench.settings.encoder)
    _show(status.model_dump(mode="json") | {"seconds": seconds}, as_json)


@index.command(epilog=example("toolsrv index status --json"))
@json_option
@pass_session
def status(session: Session, as_json: bool) -> None:
    """Show whether the index is up to date and its encoder whole; builds nothing."""
    index = session.workbench().registry().index
    damage = hint = ""
    try:
        index.encoder.check()
    except DataError as error:
        damage, hint = error.message, error.hint
    _show(index.status().model_dump(mode="json") | {"encoder_damage": damage}, as_json)
    if damage and not as_json:
        note(f"note: searches go by words alone: {damage} ({hint})")


def _with_encoder(session: Session, name: str) -> Workbench:
    """Return a workbench with another encoder, which has been loaded."""
    value = "" if name == SHIPPED else name
    if value and Path(value).is_dir():
        value = str(Path(value).resolve())
    bench = session.workbench(encoder=value)
    bench.registry().index.encoder.encode(["a text"])
    return bench


def _keep(session: Session, encoder: str) -> None:
    from toolsrv import config_file

    place = config_file.config_path(session.flags)
    config_file.write_key(place, "encoder", encoder)
    origin = session.load().origins["encoder"]
    if origin not in (str(place), "default"):
        note(f"note: {origin} is set and wins over {place}")


def _show(document: dict[str, object], as_json: bool) -> None:
    if as_json:
        emit_json(document)
        return
    rows = [(key, one) for key, one in document.items() if key != "building"]
    table(("index", "value"), [(key.replace("_", " "), format_value(one)) for key, one in rows])
    if isinstance(building := document.get("building"), dict):
        left = building["total"] - building["done"]
        rate = building["per_second"]
        more = f", {rate:.0f}/s, about {left / rate:.0f} s left" if rate else ""
        note(f"note: it is being built: {building['done']:,} of {building['total']:,}{more}")
    elif document["state"] != "ready":
        note("note: build it with: toolsrv index build")

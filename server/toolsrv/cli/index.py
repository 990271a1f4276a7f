"""``toolsrv index``: the search index, built and inspected."""

from __future__ import annotations

import time

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, index_progress, note, table
from toolsrv.cli.session import Session, pass_session


@click.group(epilog=example("toolsrv index status"))
def index() -> None:
    """Build or inspect the search index."""


@index.command(
    short_help="Build the index, or what changed of it.", epilog=example("toolsrv index build")
)
@json_option
@pass_session
def build(session: Session, as_json: bool) -> None:
    """Build the index; APIs that have not changed are not embedded again."""
    registry = session.workbench().registry()
    started = time.perf_counter()
    registry.index.build(index_progress())
    seconds = time.perf_counter() - started
    _show(registry.index.status().model_dump(mode="json") | {"seconds": seconds}, as_json)


@index.command(epilog=example("toolsrv index status --json"))
@json_option
@pass_session
def status(session: Session, as_json: bool) -> None:
    """Show whether the index is up to date; builds nothing."""
    _show(session.workbench().registry().index.status().model_dump(mode="json"), as_json)


def _show(document: dict[str, object], as_json: bool) -> None:
    if as_json:
        emit_json(document)
        return
    table(("index", "value"), [(key.replace("_", " "), value) for key, value in document.items()])
    if document["state"] != "ready":
        note("note: build it with: toolsrv index build")

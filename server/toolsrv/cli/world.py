"""``toolsrv world``: the APIs of the catalogs, for programs that speak ToolBench's protocol."""

from __future__ import annotations

import contextlib
import logging
import sys

import click

from toolsrv.cli.options import example, mode_option
from toolsrv.cli.session import Session, pass_session


@click.group(epilog=example("toolsrv world serve"))
def world() -> None:
    """Serve APIs to programs written for ToolBench or StableToolBench."""


@world.command(
    short_help="Serve ToolBench's protocols on loopback.",
    epilog=example("toolsrv world serve --mode offline --port 8080"),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8766,
    show_default=True,
    help="Port; 0 takes a free one.",
)
@mode_option
@click.option("--no-token", is_flag=True, help="Let every program on this machine in.")
@click.option("--allow-changes", is_flag=True,
              help="Let your rules allow what may change something.")  # fmt: skip
@pass_session
def serve(
    session: Session,
    host: str,
    port: int,
    mode: str | None,
    no_token: bool,
    allow_changes: bool,
) -> None:
    """Speak ToolBench's /rapidapi and StableToolBench's /virtual on loopback.

    Addresses and token are printed on stderr; TOOLSRV_TOKEN sets the token. Clients send it as
    their toolbench_key, or as Authorization: Bearer. Keys, rules, limits and recordings are those
    of every other call. Nobody can be asked here, and behind a request stands a program that has
    read responses: calls that may change something are not made, unless a rule of yours (the
    setting "calls") allows them and you say so with --allow-changes.
    """
    bench = session.workbench(mode=mode)
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    from toolsrv.api_server.serve import serve_world

    with contextlib.suppress(KeyboardInterrupt):  # the ordinary way to end it
        serve_world(bench, host=host, port=port, with_token=not no_token, changes=allow_changes)

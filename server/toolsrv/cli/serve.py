"""``toolsrv serve``: the MCP server."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

import click

from toolsrv.cli.options import (
    adapter_option,
    engine_model_option,
    example,
    profile_option,
    serve_model_option,
    without_effect,
)
from toolsrv.cli.output import note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.greeting import Greeter


@click.command(epilog=example("toolsrv serve", "toolsrv serve --http --port 8765"))
@click.option("--http", "over_http", is_flag=True, help="HTTP on loopback instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port for --http; 0 takes a free one. [default: 8765]",
)
@click.option("--no-warm", is_flag=True, help="Load nothing before the first request needs it.")
@serve_model_option
@profile_option
@adapter_option
@engine_model_option
@pass_session
def serve(
    session: Session,
    over_http: bool,
    host: str,
    port: int | None,
    no_warm: bool,
    model: str | None,
    profile: str | None,
    adapter: str | None,
    engine_model: str | None,
) -> None:
    """Run the MCP server: on stdio for a desktop client, or on HTTP with a bearer token.

    Over HTTP the address and the token are printed on stderr; TOOLSRV_TOKEN sets the token.
    """
    from toolsrv.model_file import check_model

    if port is not None and not over_http:
        raise UsageError(
            "--port is for --http", hint="toolsrv serve --http --port …, or leave it out"
        )
    greeter = None if over_http or _is_terminal() else _greeter(session)
    settings = session.load(
        model=model, profile=profile, adapter=adapter, engine_model=engine_model, http_port=port
    ).settings
    check_model(settings)
    for text in without_effect(settings, {"engine_model": engine_model}):
        note(f"note: {text}")
    gc.disable()  # importing and building schemas only allocates: collecting costs a tenth of it
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    from toolsrv.workbench import Workbench

    bench = Workbench(settings)
    if over_http:
        from toolsrv.mcp_server.http import serve_http

        gc.enable()
        with contextlib.suppress(KeyboardInterrupt):  # the ordinary way to end it
            serve_http(bench, host=host, port=settings.http_port, warm=not no_warm)
        return
    from toolsrv.mcp_server.stdio import serve_stdio

    gc.enable()
    if greeter is None:
        note("an MCP server on stdin and stdout: register it in a client; Ctrl-D ends it")
    serve_stdio(bench, warm=not no_warm, greeter=greeter)


def _is_terminal() -> bool:
    """Whether a person sits at stdin.

    Raises:
        UsageError: stdin or stdout is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise UsageError(
            "MCP over stdio needs an open stdin and stdout",
            hint="let the client start it, or serve over HTTP: toolsrv serve --http",
        )
    return sys.stdin.isatty()


def _greeter(session: Session) -> Greeter:
    """Return the reader of the client's lines, which has begun to answer what it can."""
    from toolsrv.greeting import Greeter, greeting_file
    from toolsrv.mcp_server.wire import claimed_stdin

    greeter = Greeter(claimed_stdin(), os.dup(1), greeting_file(session.flags))
    greeter.start()
    return greeter

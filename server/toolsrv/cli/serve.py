"""``toolsrv serve``: the MCP server."""

from __future__ import annotations

import contextlib
import gc
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
)
from toolsrv.cli.output import note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.mcp_server.handshake_cache import CachedHandshake
    from toolsrv.server_log import Level


@click.command(epilog=example("toolsrv serve", "toolsrv serve --http --port 8765"))
@click.option("--http", "over_http", is_flag=True, help="HTTP on loopback instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port for --http; 0 takes a free one. [default: 8765]",
)
@click.option("--allowed-host", "hosts", multiple=True, metavar="HOST",
              help="For --http: a further name of this machine, as a proxy passes it on.")  # fmt: skip
@click.option("--allowed-origin", "origins", multiple=True, metavar="ORIGIN",
              help="For --http: web pages from there may call (CORS).")  # fmt: skip
@click.option("--new-token", is_flag=True, help="For --http: replace the token that is kept.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
              default="warning", show_default=True,
              help="Of the log on stderr and in the data folder.")  # fmt: skip
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
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    new_token: bool,
    log_level: Level,
    no_warm: bool,
    model: str | None,
    profile: str | None,
    adapter: str | None,
    engine_model: str | None,
) -> None:
    """Run the MCP server: on stdio for a desktop client, or on HTTP with a bearer token.

    Over HTTP the address, the token and a link that opens the web page once are printed on stderr.
    The token is kept in the data folder for the next start; TOOLSRV_TOKEN sets it. /health answers
    without it.
    """
    from toolsrv.model_loading import check_model

    given = {"--port": port is not None, "--allowed-host": hosts, "--allowed-origin": origins,
             "--new-token": new_token}  # fmt: skip
    for name, value in given.items():
        if value and not over_http:
            raise UsageError(
                f"{name} is for --http", hint=f"toolsrv serve --http {name} …, or leave it out"
            )
    greeter = None if over_http or _is_terminal() else _greeter(session)
    settings = session.load(
        model=model, profile=profile, adapter=adapter, engine_model=engine_model
    ).settings
    check_model(settings)
    gc.disable()  # importing and building schemas only allocates: collecting costs a tenth of it
    from toolsrv.server_log import start_log
    from toolsrv.workbench import Workbench

    start_log(settings.data_dir, log_level, http=over_http)

    bench = Workbench(settings)
    if over_http:
        from toolsrv.loopback import HTTP_PORT
        from toolsrv.mcp_server.http import serve_http

        gc.enable()
        with contextlib.suppress(KeyboardInterrupt):  # the ordinary way to end it
            serve_http(
                bench,
                host=host,
                port=HTTP_PORT if port is None else port,
                warm=not no_warm,
                hosts=hosts,
                origins=origins,
                new_token=new_token,
                access_log=log_level in ("debug", "info"),
            )
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


def _greeter(session: Session) -> CachedHandshake:
    """Return the reader of the client's lines, which has begun to answer what it can."""
    from toolsrv.mcp_server.handshake_cache import (
        CachedHandshake,
        claim_stdin,
        handshake_cache_file,
    )

    greeter = CachedHandshake(claim_stdin(), os.dup(1), handshake_cache_file(session.flags))
    greeter.start()
    return greeter

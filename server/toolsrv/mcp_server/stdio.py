"""The server on stdin and stdout: the protocol on stdout, the log on stderr.

The process ends when the client closes stdin or goes away, or at a signal, promptly: runs are
stopped, those that have ended are kept (``Runs.close``), and no thread that still loads a model is
waited for. A second signal waits for nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from mcp.server.stdio import stdio_server

from toolsrv.mcp_server.build import build_server
from toolsrv.mcp_server.wire import claimed_stdout
from toolsrv.signals import ENDING_SERVER, call_on_signal

if TYPE_CHECKING:
    from toolsrv.mcp_server.rim import ToolsrvServer
    from toolsrv.workbench import Workbench

log = logging.getLogger(__name__)

LEAVE_S = 5.0
"""Seconds that runs get to end and be kept after a signal."""


def serve_stdio(bench: Workbench, *, warm: bool = True) -> NoReturn:
    """Serve one client until it leaves, then end the process: 0, or 128 + signal."""
    code = 0
    try:
        asyncio.run(_serve(bench, warm=warm))
    except* (BrokenPipeError, ConnectionError):
        log.info("the client is gone")
    _end(code)


async def _serve(bench: Workbench, *, warm: bool) -> None:
    loop = asyncio.get_running_loop()
    server = build_server(bench, warm=warm)
    leaving: list[asyncio.Task[NoReturn]] = []

    def leave(number: int) -> None:
        if leaving:
            _end(128 + number)
        leaving.append(loop.create_task(_leave(server, 128 + number)))

    for number in ENDING_SERVER:
        call_on_signal(loop, number, leave)
    async with stdio_server(stdout=claimed_stdout()) as (inbox, outbox):
        await server.serve_streams(inbox, outbox)
    _end(0)


async def _leave(server: ToolsrvServer, code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(server.close_runs(), LEAVE_S)
    _end(code)


def _end(code: int) -> NoReturn:
    """Leave now: what is stored is stored in transactions, the rest dies with the process."""
    sys.stderr.flush()
    os._exit(code)

"""The server on stdin and stdout: the protocol on stdout, the log on stderr.

The process ends when the client closes stdin or goes away, promptly: runs are stopped, those that
have ended are kept (``Runs.close``), and no thread that still loads a model is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from toolsrv.mcp_server.build import build_server

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

log = logging.getLogger(__name__)


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
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _end, 128 + number)
    await build_server(bench, warm=warm).run_stdio_async()
    _end(0)


def _end(code: int) -> NoReturn:
    """Leave now: what is stored is stored in transactions, the rest dies with the process."""
    sys.stderr.flush()
    os._exit(code)

"""The server on stdin and stdout: the protocol on stdout, the log on stderr.

The process ends when the client closes stdin or goes away, or at a signal, promptly: runs are
stopped, those that have ended are kept (``Runs.close``), and no thread that still loads a model is
waited for. A second signal waits for nothing.

Lines are read and validated here, since the SDK's reader drops a line that is no message and its
client waits for ever; the SDK writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from toolsrv.mcp_server.build import build_server
from toolsrv.mcp_server.messages import Unreadable, read
from toolsrv.mcp_server.wire import claimed_stdout
from toolsrv.signals import ENDING_SERVER, call_on_signal

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream

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
    await serve_lines(server, _claimed_stdin())
    _end(0)


async def serve_lines(server: ToolsrvServer, lines: AsyncIterator[str]) -> None:
    """Serve the client whose messages are ``lines``, with answers on stdout, until they end."""
    silent = anyio.wrap_file(io.StringIO())
    messages, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    wire = stdio_server(stdin=silent, stdout=claimed_stdout())
    async with wire as (_, outbox), anyio.create_task_group() as group:
        group.start_soon(_read_lines, lines, messages, outbox.send)
        await server.serve_streams(inbox, outbox)
        group.cancel_scope.cancel()


async def _read_lines(
    lines: AsyncIterator[str],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Hand messages on; answer a request that cannot be read with its JSON-RPC error."""
    async with messages:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for line in lines:
                if not line.strip():
                    continue
                found = read(line.strip("\r\n"))
                if isinstance(found, Unreadable):
                    log.warning("a message was refused: %s", found.message)
                    for refusal in found.answers():
                        await answer(SessionMessage(refusal))
                else:
                    await messages.send(SessionMessage(_message(found)))


def _message(value: dict[str, Any]) -> Any:
    """Return a decoded message as the SDK's model.

    A response of the client that is malformed counts as an error response, so that whoever asked
    stops waiting.
    """
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        error = ErrorData(code=INVALID_REQUEST, message="the client's response is malformed")
        known = value.get("id")
        named = known if isinstance(known, int | str) and not isinstance(known, bool) else None
        return JSONRPCError(jsonrpc="2.0", id=named, error=error)


def _claimed_stdin() -> AsyncIterator[str]:
    """Return the lines of stdin, and leave an empty one to libraries and child processes.

    Bytes that are not UTF-8 become U+FFFD. A closed stdin has no lines.
    """
    try:
        private = os.dup(0)
    except OSError:
        return aiter(anyio.wrap_file(io.StringIO()))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return aiter(
        anyio.wrap_file(
            os.fdopen(private, encoding="utf-8-sig", errors="replace", newline="\n", closefd=False)
        )
    )


async def _leave(server: ToolsrvServer, code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(server.close_runs(), LEAVE_S)
    _end(code)


def _end(code: int) -> NoReturn:
    """Leave now: what is stored is stored in transactions, the rest dies with the process."""
    sys.stderr.flush()
    os._exit(code)

"""stdio transport: the protocol on stdout, the log on stderr.

The process ends when the client goes away or at a signal, promptly: runs are stopped, ended ones
are kept (``Runs.close``), and no thread that still loads a model is waited for. A second signal
waits for nothing. Where stdin ends and stdout is still read, as in a pipe of a few lines, the
requests that were made are answered first.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import select
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from toolsrv.mcp_server.handshake_cache import (
    ACKNOWLEDGED,
    LISTEN,
    CachedHandshake,
    acknowledgement,
    claim_stdin,
    claim_stdout,
)
from toolsrv.mcp_server.messages import Unreadable, read
from toolsrv.mcp_server.server import build_server
from toolsrv.signals import SERVER_ENDING_SIGNALS, call_on_signal

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from toolsrv.mcp_server.server import ToolsrvServer
    from toolsrv.workbench import Workbench

NEVER_ANSWERED = frozenset({LISTEN})
"""A stream that lasts as long as the session."""
LOOK_S = 0.2
"""Between two looks whether anybody still reads."""
UNSEEN_S = 30.0
"""So long answers are waited for where the system does not tell that nobody reads them."""


class OpenRequests:
    """The ids of requests without an answer; ``gone`` tells whether nobody reads answers any more."""

    def __init__(self, gone: Callable[[], bool | None]) -> None:
        self._gone = gone
        self._ids: set[int | str] = set()
        self._changed = asyncio.Event()

    def note(self, message: Mapping[str, Any]) -> None:
        """Take note of a message of the client: a request is open, one that it takes back is not."""
        method, known = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            params = message.get("params")
            self.close(params.get("requestId") if isinstance(params, dict) else None)
        elif isinstance(method, str) and known is not None and method not in NEVER_ANSWERED:
            self._ids.add(known)

    def close(self, known: object) -> None:
        """Take note that a request has its answer, or needs none."""
        if isinstance(known, int | str) and known in self._ids:
            self._ids.discard(known)
            self._changed.set()

    async def answered(self) -> None:
        """Wait until every request has its answer, or nobody reads it."""
        end = asyncio.get_running_loop().time() + UNSEEN_S
        while self._ids:
            gone = self._gone()
            if gone or (gone is None and asyncio.get_running_loop().time() > end):
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK_S)


def is_reader_gone(out: int) -> bool | None:
    """Return whether the other end of a pipe is closed; None where the system does not tell."""
    if not hasattr(select, "poll"):
        return None
    look = select.poll()
    look.register(out, 0)  # errors are told without being asked for
    try:
        return bool(look.poll(0))
    except OSError:
        return None


log = logging.getLogger(__name__)

HasAnswered = Callable[[int | str | None, dict[str, Any] | None], bool]
LEAVE_S = 5.0
"""Seconds that runs get to end and be kept after a signal."""


def serve_stdio(
    bench: Workbench, *, warm: bool = True, greeter: CachedHandshake | None = None
) -> NoReturn:
    """Serve one client until it leaves, then end the process: 0, or 128 + signal.

    ``greeter`` reads the client's lines already, and may have answered the first of them.
    """
    if greeter is None:
        greeter = CachedHandshake(claim_stdin(), 1)
        greeter.start()
    code = 0
    try:
        asyncio.run(_serve(bench, greeter, warm=warm))
    except* (BrokenPipeError, ConnectionError):
        log.info("the client is gone")
    _end(code)


async def _serve(bench: Workbench, greeter: CachedHandshake, *, warm: bool) -> None:
    loop = asyncio.get_running_loop()
    server = build_server(bench, warm=warm)
    leaving: list[asyncio.Task[NoReturn]] = []

    def leave(number: int) -> None:
        if leaving:
            _end(128 + number)
        leaving.append(loop.create_task(_leave(server, 128 + number)))

    for number in SERVER_ENDING_SIGNALS:
        call_on_signal(loop, number, leave)
    await serve_lines(server, greeter.lines(), greeter.has_answered)
    _end(0)


async def serve_lines(
    server: ToolsrvServer, lines: AsyncIterator[str], has_answered: HasAnswered
) -> None:
    """Serve the client whose messages are ``lines``, with answers on stdout, until they end.

    A response to what was answered already (``handshake_cache``) is left out.
    """
    silent = anyio.wrap_file(io.StringIO())
    stdout = claim_stdout()
    open_requests = OpenRequests(lambda: is_reader_gone(stdout.wrapped.fileno()))
    messages, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, answered = anyio.create_memory_object_stream[SessionMessage](0)
    wire = stdio_server(stdin=silent, stdout=stdout)
    async with wire as (_, outbox), outbox, anyio.create_task_group() as writing:
        writing.start_soon(_write_answers, answered, outbox.send, has_answered, open_requests)
        async with answers, anyio.create_task_group() as reading:

            async def read() -> None:
                async with messages:
                    await _read_lines(lines, messages, outbox.send, open_requests)
                    server.on_last_line()
                    await open_requests.answered()

            reading.start_soon(read)
            await server.serve_streams(inbox, answers)
            reading.cancel_scope.cancel()


async def _write_answers(
    answers: MemoryObjectReceiveStream[SessionMessage],
    write: Callable[[SessionMessage], Awaitable[None]],
    has_answered: HasAnswered,
    open_requests: OpenRequests,
) -> None:
    """Hand on what the server sends, without what its client was told already."""
    gone = (anyio.ClosedResourceError, anyio.BrokenResourceError)  # nobody reads stdout any more
    async with answers:
        with contextlib.suppress(*gone):
            async for one in answers:
                known: int | str | None = None
                match one.message:
                    case JSONRPCResponse(id=known, result=result):
                        answered = has_answered(known, result)
                    case JSONRPCError(id=known):
                        answered = has_answered(known, None)
                    case JSONRPCNotification(method=method, params=params) if (
                        method == ACKNOWLEDGED and params is not None
                    ):
                        answered = has_answered(*acknowledgement(params))
                    case _:
                        answered = False
                if not answered:
                    await write(one)
                open_requests.close(known)


async def _read_lines(
    lines: AsyncIterator[str],
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
    open_requests: OpenRequests,
) -> None:
    """Hand messages on; answer a request that cannot be read with its JSON-RPC error."""
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
                open_requests.note(found)
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


async def _leave(server: ToolsrvServer, code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        await asyncio.wait_for(server.close_runs(), LEAVE_S)
    _end(code)


def _end(code: int) -> NoReturn:
    """Leave now: what is stored is stored in transactions, the rest dies with the process."""
    sys.stderr.flush()
    os._exit(code)

"""Transports of the MCP client: a subprocess over stdio, and HTTP over checked connections.

Messages have a size limit. A subprocess is ended with all its children. HTTP requests of ``httpx2``
go through ``Connections``, so every address is checked before it is reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import httpx
import httpx2
import psutil
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from toolsrv_runtime.calls.transports import Connections
from toolsrv_runtime.mcp_client import McpServer

LINE_LIMIT = 16_000_000
"""Bytes of one message."""
_READ_BYTES = 65_536
_STDERR_LENGTH = 4_000
"""Bytes of standard error that are kept, its last ones."""
_GRACE_S = 2.0
"""Time to end after standard input was closed, and again after SIGTERM."""
_POLL_S = 0.01

Inbox = MemoryObjectReceiveStream[SessionMessage | Exception]
Outbox = MemoryObjectSendStream[SessionMessage]


class StdioServer:
    """One run of a server's command; enter ``streams`` once."""

    def __init__(self, server: McpServer, env: Mapping[str, str]) -> None:
        self.is_flooding = False
        self._server = server
        self._env = dict(env)
        self._words = bytearray()

    @property
    def last_words(self) -> str:
        """The end of what it wrote on standard error."""
        return self._words.decode(errors="replace")

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Inbox, Outbox]]:
        """Start the process and yield its streams of messages; the process ends with the block.

        Raises:
            OSError: it cannot be started.
            ValueError: the command holds a null byte.
        """
        process = await self._start()
        arrived, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outbox, waiting = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, arrived)),
            asyncio.create_task(_write(process, waiting, arrived)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield inbox, outbox
        finally:
            inbox.close()
            outbox.close()
            with anyio.CancelScope(shield=True):
                await _end(process)
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            arrived.close()
            waiting.close()

    async def _start(self) -> asyncio.subprocess.Process:
        command = self._server.command
        if sys.platform == "win32":  # finds npx.cmd
            command = shutil.which(command) or command
        return await asyncio.create_subprocess_exec(
            command,
            *self._server.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=get_default_environment() | self._env,
            cwd=self._server.cwd or None,
            start_new_session=sys.platform != "win32",
        )

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        arrived: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Hand messages on, line by line; what is no message is passed over.

        Goes on to read when nobody listens any more, so that the process can write and end.
        """
        assert process.stdout is not None  # noqa: S101 - a pipe
        line, is_heard = bytearray(), True
        async with arrived:
            while part := await process.stdout.read(_READ_BYTES):
                first, *rest = part.split(b"\n")
                line += first
                for one in rest:
                    is_heard = is_heard and await _forward(arrived, bytes(line))
                    line[:] = one
                if not is_heard:
                    line.clear()
                if len(line) > LINE_LIMIT:
                    self.is_flooding = True
                    _kill(process)
                    return

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # noqa: S101 - a pipe
        while part := await process.stderr.read(_READ_BYTES):
            self._words += part[-_STDERR_LENGTH:]
            del self._words[:-_STDERR_LENGTH]


async def _forward(
    arrived: MemoryObjectSendStream[SessionMessage | Exception], line: bytes
) -> bool:
    """Hand one line on; return whether anybody still listens."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return True
    try:
        await arrived.send(SessionMessage(message))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return False
    return True


async def _write(
    process: asyncio.subprocess.Process,
    waiting: MemoryObjectReceiveStream[SessionMessage],
    arrived: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """Write messages; a pipe that is closed ends the conversation, though the process lives."""
    assert process.stdin is not None  # noqa: S101 - a pipe
    try:
        async with waiting:
            async for one in waiting:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode(errors="replace") + b"\n")
                await process.stdin.drain()
    except OSError:
        await arrived.aclose()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close standard input, wait a while, then end the process with all that it started."""
    if process.stdin is not None:
        process.stdin.close()
    if not await _has_ended(process):
        _signal(process, "terminate")
        if not await _has_ended(process):
            _kill(process)
            await _has_ended(process)
    # A process that outlives it may hold its pipes open; asyncio has no other way to close them.
    if (transport := getattr(process, "_transport", None)) is not None:
        transport.close()


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Wait for the end, but not for that of the pipes, which a child may have inherited."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            while process.returncode is None:  # noqa: ASYNC110 - wait() waits for the pipes too
                await asyncio.sleep(_POLL_S)
    return process.returncode is not None


def _kill(process: asyncio.subprocess.Process) -> None:
    _signal(process, "kill")


def _signal(process: asyncio.subprocess.Process, how: str) -> None:
    """End a process and its children: its group, on Windows the tree."""
    if sys.platform != "win32":
        number = signal.SIGKILL if how == "kill" else signal.SIGTERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        return
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(process.pid)
        for one in (*root.children(recursive=True), root):
            with contextlib.suppress(psutil.Error):
                one.kill()


BODY_LIMIT = 16_000_000
"""Bytes of one response; of a stream of events the client limits each."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of ``httpx2`` through ``Connections``."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises ``httpx2``'s transport errors, and PolicyError for an address."""
        headers = [one for one in request.headers.raw if one[0].lower() != b"accept-encoding"]
        sent = httpx.Request(
            request.method,
            str(request.url),
            headers=[*headers, (b"Accept-Encoding", b"identity")],
            stream=httpx.ByteStream(await request.aread()),
            extensions={"timeout": request.extensions.get("timeout", {})},
        )
        try:
            response = await self._connections.handle_async_request(sent)
        except httpx.TimeoutException as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except httpx.TransportError as error:
            raise httpx2.ConnectError(str(error) or type(error).__name__) from error
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):  # what it unpacks to would have no limit
            await response.aclose()
            raise httpx2.ReadError(f"the response is compressed as {encoding[:40]!r}")
        events = "text/event-stream" in response.headers.get("content-type", "")
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=_Body(response, None if events else BODY_LIMIT),
            request=request,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpx.Response, limit: int | None) -> None:
        self._response = response
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        got = 0
        stream = self._response.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError(f"not an asynchronous body: {stream!r}")
        try:
            async for part in stream:
                got += len(part)
                if self._limit is not None and got > self._limit:
                    raise httpx2.ReadError(f"the response has more than {self._limit:,} bytes")
                yield part
        except httpx.TimeoutException as error:
            raise httpx2.ReadTimeout(str(error)) from error
        except httpx.TransportError as error:
            raise httpx2.ReadError(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        await self._response.aclose()

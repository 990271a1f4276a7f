"""A real proxy on loopback: forwards HTTP and tunnels CONNECT, every host to 127.0.0.1.

``heads`` are the requests that it got. With ``login`` it wants that user and password; ``refuses``
answers every CONNECT with 403. With ``socks`` it speaks SOCKS 5 and keeps the names it is asked for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import Self
from urllib.parse import urlsplit


class ProxyServer:
    """The proxy. Use as an async context."""

    def __init__(self, *, login: str = "", refuses: bool = False, socks: bool = False) -> None:
        self.heads: list[bytes] = []
        self._login = base64.b64encode(login.encode()) if login else b""
        self._refuses = refuses
        self._socks = socks
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await (self._tunnel_socks if self._socks else self._talk)(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target, _ = head.split(b" ", 2)
        if self._login and b"Basic " + self._login not in head:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        elif method == b"CONNECT" and self._refuses:
            writer.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        elif method == b"CONNECT":
            port = int(target.rpartition(b":")[2])
            await _relayed(reader, writer, port, b"", b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            parts = urlsplit(target.decode())
            path = parts._replace(scheme="", netloc="").geturl() or "/"
            sent = head.replace(target, path.encode(), 1)
            await _relayed(reader, writer, parts.port or 80, sent, b"")

    async def _tunnel_socks(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        name = await reader.readexactly(4 if kind == 1 else (await reader.readexactly(1))[0])
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.heads.append(name)
        await _relayed(reader, writer, port, b"", b"\x05\x00\x00\x01" + bytes(6))


async def _relayed(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    port: int,
    first: bytes,
    answer: bytes,
) -> None:
    """Relay both ways until one side ends."""
    there, back = await asyncio.open_connection("127.0.0.1", port)
    back.write(first)
    writer.write(answer)

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()

    ways = {asyncio.ensure_future(pump(reader, back)), asyncio.ensure_future(pump(there, writer))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        back.transport.abort()

"""A real server on loopback that answers as badly as its path says; it keeps every request's head.

Plain sockets, so that it can break HTTP at any place. Runs in the test's own event loop.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import socket
import ssl
import struct
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Self

import h2.config
import h2.connection
import h2.events

MEGABYTE = 1_000_000


class HostileHost:
    """The server. Use as an async context; ``http2`` speaks HTTP/2 over the given TLS."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, http2: bool = False) -> None:
        self.heads: list[bytes] = []
        self.seen: Counter[str] = Counter()
        self.connections = 0
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self._tls = tls
        self._http2 = http2
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    def url(self, path: str, host: str = "api.test") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}/{path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Handshakes that failed have no task; their sockets close once the loop has seen the end.
        await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await (self._talk2 if self._http2 else self._talk)(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            return
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            path = head.split()[1].decode().split("?")[0].strip("/")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    self.heads[-1] += await reader.readexactly(int(line.split(b":")[1]))
            self.seen[path] += 1
            if path.startswith("reset"):
                await _reset(writer, path)
                return
            async for part in self._answer(path):
                writer.write(part)
                await writer.drain()
            if path in {"short", "long"}:
                return

    async def _answer(self, path: str) -> AsyncIterator[bytes]:
        match path:
            case "slow":
                yield _head(length=1_000)
                while True:
                    yield b"["
                    await asyncio.sleep(0.05)
            case "held" | "held_500":
                self.reached.set()
                await self.released.wait()
                yield _head(500 if path == "held_500" else 200, length=2) + b"{}"
            case "silent":
                await asyncio.sleep(30)
            case "endless":
                yield _head(more="Transfer-Encoding: chunked")
                while True:
                    yield b"10000\r\n" + b" " * 0x10000 + b"\r\n"
            case "bomb":
                body = bomb()
                yield _head(length=len(body), more="Content-Encoding: gzip") + body
            case "stunted":
                body = gzip.compress(b'{"a": 1}')[:-6]
                yield _head(length=len(body), more="Content-Encoding: gzip") + body
            case "broken_gzip":
                yield _head(length=7, more="Content-Encoding: gzip") + b"no gzip"
            case "brotli":
                yield _head(length=3, more="Content-Encoding: br") + b"abc"
            case "zipped":
                body = zlib.compress(b'{"a": 1}')
                yield _head(length=len(body), more="Content-Encoding: deflate") + body
            case "short":
                yield _head(length=1_000) + b'{"a":'
            case "long":
                yield _head(length=8) + b'{"a": 1}' + b"x" * 1_000
            case "charset":
                yield _head(length=3, kind="text/plain; charset=klingon") + "å!".encode()
            case "latin":
                yield _head(length=2, kind="text/plain; charset=iso-8859-1") + b"\xe5!"
            case "comments":
                body = b"<!---->" * 10_000 + b"no page"
                yield _head(length=len(body), kind="text/plain") + body
            case "commented_page":
                body = b" <!-- a -->\n<!---->" * 100 + b"<!DOCTYPE html><p>Hi"
                yield _head(length=len(body), kind="text/plain") + body
            case "punycode":
                yield _head(length=3, kind="text/plain; charset=punycode") + b"a-b"
            case "utf8_lie":
                yield _head(length=9, kind="application/json; charset=ascii") + b'{"a":"\xff"}'
            case "deep":
                yield _head(length=200_000) + b"[" * 100_000 + b"]" * 100_000
            case "rather_deep":
                yield _head(length=1_000) + b"[" * 500 + b"]" * 500
            case "big":
                yield _head(length=100 * MEGABYTE)
                yield b"["
                for _ in range(100):
                    yield b"1," * (MEGABYTE // 2)
            case "page":
                yield (
                    _head(length=44, kind="text/html")
                    + b"<!DOCTYPE html><html><body>Hi</body></html>\n"
                )
            case "nan":
                yield _head(length=22) + b'{"a": NaN, "b": 1e999}'
            case "private":
                yield _redirect(f"http://127.0.0.1:{self.port}/fine")
            case "other_port":
                yield _redirect("http://api.test:1/fine")
            case "user":
                yield _redirect(f"http://me:you@api.test:{self.port}/fine")
            case "no_label":
                yield _redirect("https://xn--/")
            case "circle":
                yield _redirect("/circle")
            case "moved":
                yield _redirect("/fine?x=1")
            case "busy" if self.seen[path] <= 2:
                yield _head(429, length=2, more="Retry-After: 0") + b"{}"
            case "shut":
                yield _head(429, length=2, more="Retry-After: 86400") + b"{}"
            case "some_day":
                when = "Mon, 1 Jan 99999999999999999999 00:00:00 GMT"
                yield _head(429, length=2, more=f"Retry-After: {when}") + b"{}"
            case "flaky" if self.seen[path] <= 1:
                yield _head(503, length=2) + b"{}"
            case "headers":
                yield b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000
            case "no_http":
                yield b"SSH-2.0-OpenSSH_9.6\r\n\r\n"
            case "echo":
                body = json.dumps({"head": self.heads[-1].decode("latin-1")}).encode()
                yield _head(length=len(body)) + body
            case "subscribe":
                said = b'{"message": "You are not subscribed to this API."}'
                yield _head(403, length=len(said)) + said
            case "gone_api":
                said = b'{"message": "API doesn\'t exists"}'
                yield _head(404, length=len(said)) + said
            case _ if path.isdigit():
                yield _head(int(path), length=2) + b"{}"
            case _:
                yield _head(length=8) + b'{"a": 1}'

    async def _talk2(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        self.heads.append(str(chosen).encode())
        how = h2.config.H2Configuration(client_side=False, validate_outbound_headers=False)
        talk = h2.connection.H2Connection(how)
        talk.initiate_connection()
        while True:
            writer.write(talk.data_to_send())
            await writer.drain()
            data = await reader.read(65_536)
            if not data:
                return
            for event in talk.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.heads.append(repr(event.headers).encode())
                    path = dict(event.headers)[b":path"].decode().strip("/")
                    status = path.removeprefix("status_") if "status_" in path else "200"
                    talk.send_headers(
                        event.stream_id, [(":status", status), ("content-type", "application/json")]
                    )
                    if path == "broken_frame":
                        talk.ping(event.stream_id.to_bytes(8, "big"))
                        continue
                    talk.send_data(event.stream_id, b'{"a": 2}', end_stream=True)
                if isinstance(event, h2.events.PingAckReceived):  # the headers have been read
                    writer.write(talk.data_to_send() + _broken_frame(event.ping_data))


@functools.cache
def bomb() -> bytes:
    """60 MB of blanks, in 60 KB."""
    return gzip.compress(b" " * 60 * MEGABYTE)


def _head(
    status: int = 200,
    *,
    length: int | None = None,
    kind: str = "application/json",
    more: str = "",
) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    if more:
        lines.append(more)
    return "\r\n".join([*lines, "", ""]).encode()


def _broken_frame(stream: bytes) -> bytes:
    """A frame of HTTP/2 with headers that no table of headers has."""
    return b"\0\0\1" + b"\1\4" + stream[-4:] + b"\xff"


def _redirect(target: str) -> bytes:
    return _head(302, length=0, more=f"Location: {target}")


async def _reset(writer: asyncio.StreamWriter, path: str) -> None:
    """Break the connection before, within or after the head, with a TCP reset."""
    if path == "reset_head":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
    elif path == "reset_body":
        writer.write(_head(length=1_000) + b'{"a": ')
    await writer.drain()
    await asyncio.sleep(0.01)
    end: socket.socket = writer.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

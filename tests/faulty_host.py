"""A real HTTP server on loopback whose paths misbehave, each in its own way; it notes every call.

``/fine``, ``/slow`` (0.4 s), ``/never``, ``/reset``, ``/half`` (a body that breaks off), ``/html``,
``/error`` (200 with only an error),
``/cut`` (half surrogate pairs in keys and values; ``/cut/bad`` as a 404), ``/empty``, ``/nothing`` ([]), ``/text``, ``/500``, ``/404``,
``/401``, ``/busy`` (429 twice, then fine), ``/flaky`` (503 once, then fine), ``/shut`` (429
always), ``/echo`` (what was sent). Anything after the first part of the path is free. Only
``/write`` takes a POST; what it was sent stands in ``written``.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class FaultyHost:
    """The server. Use as a context."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, str, str]] = []
        self.written: list[str] = []
        self.closing = threading.Event()
        self.gate = threading.Event()
        self._seen: Counter[str] = Counter()
        self._lock = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def note(self, host: str, path: str) -> int:
        """Note a call; return how many this path has had, this one included."""
        with self._lock:
            self.calls.append((time.monotonic(), host, path))
            self._seen[path] += 1
            self._lock.notify_all()
            return self._seen[path]

    def wait_for(self, many: int, seconds: float = 60) -> bool:
        """Wait until there have been so many calls; return whether it came to that."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self.calls) >= many, seconds)

    def times(self, host: str) -> list[float]:
        with self._lock:
            return sorted(at for at, one, _ in self.calls if one == host)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


def _handler(state: FaultyHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen = state.note(self.headers["Host"], self.path)
            kind = self.path.split("?")[0].split("/")[1]
            match kind:
                case "slow":
                    state.closing.wait(0.4)
                    self._say(200, b'{"a": 1}')
                case "never":
                    state.closing.wait(20)
                case "gate":
                    state.gate.wait(20)
                    self._say(200, b'{"a": 1}')
                case "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.close_connection = True
                case "half":
                    self._say(200, b'{"a": ', length=1000)
                    self.close_connection = True
                case "html":
                    page = b"<!DOCTYPE html><html><body>Welcome</body></html>"
                    self._say(200, page, "text/html")
                case "error":
                    self._say(200, b'{"message": "Endpoint \'/x\' does not exist"}')
                case "cut":
                    body = b'{"cut \\ud83d": ["\\ude00 text", {"\\ud83d": "\\ud83d\\ude00"}]}'
                    self._say(404 if "bad" in self.path else 200, body)
                case "empty":
                    self._say(200, b"")
                case "nothing":
                    self._say(200, b"[]")
                case "text":
                    self._say(200, b"a,b\n1,2\n", "text/csv")
                case "busy" if seen <= 2:
                    self._say(429, b'{"message": "Too many requests"}', retry="0")
                case "shut":
                    self._say(429, b'{"message": "You have exceeded the quota"}', retry="86400")
                case "flaky" if seen == 1:
                    self._say(503, b"")
                case "echo":
                    said = {"path": self.path, "headers": dict(self.headers.items())}
                    self._say(200, json.dumps(said).encode())
                case _ if kind.isdigit():
                    self._say(int(kind), b'{"message": "no"}')
                case _:
                    self._say(200, b'{"a": 1}')

        def do_POST(self) -> None:
            state.note(self.headers["Host"], self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path.split("?")[0] != "/write":
                return self.send_error(501)
            state.written.append(sent.decode())
            return self._say(200, json.dumps({"written": len(sent), "place": "page 7"}).encode())

        def _say(
            self,
            status: int,
            body: bytes,
            kind: str = "application/json",
            *,
            retry: str = "",
            length: int | None = None,
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            if retry:
                self.send_header("Retry-After", retry)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - inherited
            """Say nothing."""

    return Handler

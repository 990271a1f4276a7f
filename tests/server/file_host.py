"""A host that takes files and gives one, and the OpenAPI document of its API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
BINARY = {"type": "string", "format": "binary"}


@dataclass
class FileHost:
    """``url`` is where it listens, ``seen`` the media type and body of each POST."""

    url: str = ""
    seen: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        form = {
            "type": "object",
            "properties": {
                "photo": BINARY,
                "papers": {"type": "array", "items": BINARY},
                "note": {"type": "string"},
            },
        }
        return {
            "openapi": "3.1.0",
            "info": {"title": "box", "version": "1"},
            "servers": [{"url": self.url}],
            "paths": {
                "/send": _post("send", {"multipart/form-data": {"schema": form}}),
                "/store": _post("store", {"application/octet-stream": {"schema": BINARY}}),
                "/picture": {"get": {"operationId": "picture", "responses": {"200": _IT}}},
            },
        }


_IT = {"description": "it"}


def _post(name: str, content: dict[str, Any]) -> dict[str, Any]:
    body = {"required": True, "content": content}
    return {"post": {"operationId": name, "requestBody": body, "responses": {"200": _IT}}}


@contextmanager
def serving() -> Iterator[FileHost]:
    """Serve on loopback."""
    host = FileHost()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            host.seen.append((self.headers["Content-Type"], content))
            self._answer("application/json", json.dumps({"bytes": len(content)}).encode())

        def do_GET(self) -> None:
            self._answer("image/png", PNG)

        def _answer(self, media: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            if media == "image/png":
                self.send_header("Content-Disposition", 'attachment; filename="a <b>.png"')
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    host.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

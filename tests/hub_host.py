"""A Hugging Face hub on loopback: lists repositories, redirects to a store, serves ranges.

``files`` maps a repository to its files; ``cuts`` are byte counts after which a download breaks
off, used up one by one; ``wrong`` names files whose content is not what is listed; ``status`` maps
a repository to (code, X-Error-Code) that it answers; ``listing`` is answered to every request
below ``/api`` instead of what it must be. A data set is a repository named ``datasets/OWNER/NAME``;
``tags`` maps repositories to theirs, ``gone`` names revisions that there are none of, and
``retry_after`` is sent with every refusal where it is set. ``ranges`` notes each download's Range header, ``asked``
the path of every request.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubHost:
    """The hub. Use as a context."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.cuts: list[int] = []
        self.wrong: set[str] = set()
        self.status: dict[str, tuple[int, str]] = {}
        self.listing: bytes | None = None
        self.tags: dict[str, list[str]] = {}
        self.gone: set[str] = set()
        self.retry_after: str | None = None
        self.ranges: list[str | None] = []
        self.asked: list[str] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def store(self) -> str:
        """Where the content is: another host, as at the real hub."""
        return f"http://localhost:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that went away."""


def _handler(hub: HubHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            hub.asked.append(self.path)
            self._resolve()

        def do_GET(self) -> None:
            hub.asked.append(self.path)
            path = self.path.partition("?")[0].strip("/").split("/")
            if path[0] == "api" and hub.listing is not None:
                self._say(200, hub.listing, {"Content-Type": "application/json"})
            elif path[:2] == ["api", "models"]:
                self._listing("/".join(path[2:4]))
            elif path[:2] == ["api", "datasets"]:
                self._listing("/".join(path[1:4]))
            elif path[0] == "store":
                end = 4 if path[1] == "datasets" else 3
                self._content("/".join(path[1:end]), "/".join(path[end:]))
            else:
                self._resolve()

        def _listing(self, repo: str) -> None:
            if not self._may(repo):
                return
            siblings = [
                {
                    "rfilename": name,
                    "size": len(data),
                    "blobId": "0" * 40,
                    "lfs": {"sha256": _hash(data), "size": len(data), "pointerSize": 130},
                }
                for name, data in hub.files[repo].items()
            ]
            body = json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings,
                               "tags": hub.tags.get(repo, [])})  # fmt: skip
            self._say(200, body.encode(), {"Content-Type": "application/json"})

        def _resolve(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            end = 3 if path[0] == "datasets" else 2
            repo, revision = "/".join(path[:end]), path[end + 1]
            name = "/".join(path[end + 2 :])
            if not self._may(repo):
                return
            if revision in hub.gone:
                self._say(404, b"", {"X-Error-Code": "RevisionNotFound"})
                return
            data = hub.files[repo].get(name)
            if data is None:
                self._say(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            headers = {
                "Location": f"{hub.store}/store/{repo}/{name}",
                "X-Repo-Commit": COMMIT,
                "X-Linked-Etag": f'"{_hash(data)}"',
                "X-Linked-Size": str(len(data)),
                "ETag": '"1"',
            }
            self._say(302, b"", headers)

        def _content(self, repo: str, name: str) -> None:
            data = hub.files[repo][name]
            asked = self.headers.get("Range")
            hub.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            if name in hub.wrong:
                data = bytes(len(data))
            cut = hub.cuts.pop(0) if hub.cuts else None
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start : None if cut is None else start + cut])
            if cut is not None:
                self._break_off()

        def _break_off(self) -> None:
            """End the connection in the middle of what was promised."""
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _may(self, repo: str) -> bool:
            if repo in hub.status:
                code, word = hub.status[repo]
                more = {"Retry-After": hub.retry_after} if hub.retry_after else {}
                self._say(code, b"", more | ({"X-Error-Code": word} if word else {}))
            elif repo not in hub.files:
                self._say(404, b"", {"X-Error-Code": "RepoNotFound"})
            else:
                return True
            return False

        def _say(self, code: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""A real HTTP server on loopback that wants credentials and checks them.

``/digest`` is behind HTTP Digest (user ``ann``, password ``pass:word-7``), ``/odd`` behind a
challenge that nobody can answer, ``/data`` behind a bearer token of ``/token``, and ``/echo`` is open
and sends back the headers and the path that it got. ``/token`` takes client credentials (id
``client``, secret ``se cret+9``) in a header, or, with ``in_body``, in the body alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus
from urllib.request import parse_http_list, parse_keqv_list

USER, PASSWORD = "ann", "pass:word-7"
CLIENT, SECRET = "client", "se cret+9"


class LoginHost:
    """The server. Use as a context; ``requests`` are method, path, headers, body as they came."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.expires_in: Any = 3600
        self.in_body = False
        self.answer: dict[str, Any] = {}
        self.algorithm = "MD5"
        self.nonce = "n0"
        self.tokens: list[str] = []
        self.valid: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{path}"

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]

    def revoke(self) -> None:
        self.valid.clear()

    def new_token(self) -> str:
        self.tokens.append(f"token-{len(self.tokens)}-abcdefgh")
        self.valid.add(self.tokens[-1])
        return self.tokens[-1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _knows(host: LoginHost, method: str, path: str, header: str) -> bool:
    """Whether a Digest response is that of the user (RFC 7616, 3.4.1)."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "digest":
        return False
    said = parse_keqv_list(parse_http_list(rest))
    name = "sha256" if host.algorithm == "SHA-256" else "md5"

    def digest(text: str) -> str:
        return hashlib.new(name, text.encode()).hexdigest()

    first = digest(f"{USER}:house:{PASSWORD}")
    second = digest(f"{method}:{path}")
    parts = (first, said["nonce"], said["nc"], said["cnonce"], said["qop"], second)
    fits = said["nonce"] == host.nonce and said["uri"] == path and said["username"] == USER
    return fits and said["response"] == digest(":".join(parts))


def _handler(host: LoginHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the port
            """Say nothing."""

        def do_GET(self) -> None:
            self._serve("")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

        def _serve(self, body: str) -> None:
            headers = dict(self.headers.items())
            host.requests.append((self.command, self.path, headers, body))
            given = self.headers.get("Authorization", "")
            match self.path.split("?")[0]:
                case "/digest":
                    if _knows(host, self.command, self.path, given):
                        return self._say(200, {"in": True, "got": body, "sent": given})
                    challenge = (
                        f'Digest realm="house", nonce="{host.nonce}", qop="auth", '
                        f"algorithm={host.algorithm}"
                    )
                    return self._say(401, {}, {"WWW-Authenticate": challenge})
                case "/odd":
                    odd = 'Digest realm="house", nonce="1", qop="auth-int"'
                    return self._say(401, {}, {"WWW-Authenticate": odd})
                case "/data":
                    kind, _, token = given.partition(" ")
                    good = kind == "Bearer" and token in host.valid
                    return self._say(200 if good else 401, {"got": given, "body": body})
                case "/token":
                    return self._token(given, parse_qs(body))
            return self._say(200, {"headers": headers, "path": self.path, "body": body})

        def _token(self, given: str, form: dict[str, list[str]]) -> None:
            coded = base64.b64decode(given.partition(" ")[2]).decode() if given else ":"
            user, _, secret = (unquote_plus(part) for part in coded.partition(":"))
            if host.in_body:
                user, secret = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
            if (user, secret) != (CLIENT, SECRET) or form["grant_type"] != ["client_credentials"]:
                return self._say(401, {"error": "invalid_client", "sent": [user, secret]})
            told = {"access_token": host.new_token(), "token_type": "Bearer"}
            if host.expires_in is not None:
                told["expires_in"] = host.expires_in
            return self._say(200, told | host.answer)

        def _say(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler

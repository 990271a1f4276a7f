"""HTTP transport on loopback, for clients that hold the token.

Every request but health and well-known paths needs ``Authorization: Bearer <token>``. The SDK's
checks of Host and Origin (against DNS rebinding) stay on beneath that. A request that cannot be
read is answered here, as on stdio, with its id where one can be read.
"""

from __future__ import annotations

import hmac
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse

import toolsrv
from toolsrv.loopback import TOKEN_FILE, choose_token, listen, origin
from toolsrv.mcp_server.messages import Unreadable, read
from toolsrv.mcp_server.server import build_server
from toolsrv_registry import wellformed
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolsrv.workbench import Workbench

HEALTH = "/health"
WELL_KNOWN = "/.well-known/"
KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays: after uvicorn's five, requests of clients that send every few
seconds met the end of their connection.
"""
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
)
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}")
_OWN = ("127.0.0.1", "localhost", "[::1]")
_METHODS = ("GET", "POST", "DELETE")
_HEADERS = (
    "authorization", "content-type", "last-event-id", "mcp-method", "mcp-name",
    "mcp-protocol-version", "mcp-session-id",
)  # fmt: skip
_EXPOSED = ("mcp-session-id", "mcp-protocol-version", "www-authenticate")


def security(hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> TransportSecuritySettings:
    """Return which Host and Origin headers are served: those of loopback and the named ones.

    A host without a port stands for every port.

    Raises:
        UsageError: a host or an origin is none; a wildcard is none either.
    """
    for one in hosts:
        if not _HOST.fullmatch(one):
            raise UsageError(
                f"{one[:80]!r} is no host", hint="write it as toolsrv.example.com or box.lan:8765"
            )
    for one in origins:
        if not _ORIGIN.fullmatch(one):
            raise UsageError(
                f"{one[:80]!r} is no origin", hint="write it as https://app.example.com, no path"
            )
    named = [one.lower() for one in hosts]
    anywhere = [f"{one}:*" for one in named if not re.search(r":\d+$", one)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{one}:*" for one in _OWN), *named, *anywhere],
        allowed_origins=[*(f"http://{one}:*" for one in _OWN), *(one.lower() for one in origins)],
    )


class PublicPaths:
    """ASGI middleware: ``/health``, and 404 below ``/.well-known``; everything else is handed on.

    A 401 there would tell clients to look for an authorization server, and there is none.
    """

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app = app
        self._guard = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is public, or hand the request on."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path.startswith(WELL_KNOWN):
            missing = JSONResponse({"error": "there is nothing here"}, status_code=404)
            await missing(scope, receive, send)
        elif path == HEALTH:
            await self._health(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = await self._guard.validate_request(Request(scope))
        if refused is not None:
            await refused(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            allow = {"allow": "GET, HEAD"}
            wrong = JSONResponse({"error": "GET or HEAD"}, status_code=405, headers=allow)
            await wrong(scope, receive, send)
            return
        state = {"status": "ok", "name": "toolsrv", "version": toolsrv.__version__}
        await JSONResponse(state)(scope, receive, send)


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Return the application with the CORS headers for pages of these origins; as it is without any."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=[one.lower() for one in origins],
        allow_methods=_METHODS,
        allow_headers=_HEADERS,
        expose_headers=_EXPOSED,
        allow_private_network=True,
    )


PATH = "/mcp"
BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of a body that is read here: the SDK's limit, which refuses a longer one."""


class BearerGate:
    """ASGI middleware: 401 for every HTTP request without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what carries the token, and the server's own start and stop."""
        if scope["type"] == "lifespan" or self._allowed(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send, given=_authorization(scope) is not None)

    def _allowed(self, scope: Scope) -> bool:
        given = _authorization(scope)
        if scope["type"] != "http" or given is None:
            return False
        scheme, _, token = given.partition(b" ")
        # the scheme is case-insensitive (RFC 9110 11.1), the token is not
        return hmac.compare_digest(scheme.title() + b" " + token.strip(), self._expected)


class ReadableMessages:
    """ASGI middleware: 400 with a JSON-RPC error for a body that is no message of JSON-RPC.

    What is handed on is UTF-8 without lone surrogates, and header values without the white space
    around them (RFC 9110 5.5), which not every HTTP parser takes away.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body of a POST, and answer it or hand it on."""
        if scope["type"] == "http":
            trimmed = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            scope = {**scope, "headers": trimmed}
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, last = b"", False
        while not last and len(body) <= BODY_LIMIT:
            message = await receive()
            if message["type"] != "http.request":  # the client is gone
                return
            body += message.get("body", b"")
            last = not message.get("more_body", False)
        if last and len(body) <= BODY_LIMIT:
            text = body.decode("utf-8-sig", "replace")
            found = read(text)
            if isinstance(found, Unreadable):
                await _answer_unreadable(send, found)
                return
            body = wellformed.json_text(text).encode()
        await self._app(scope, _replayed(body, receive, last=last), send)


def serve_http(
    bench: Workbench,
    *,
    host: str,
    port: int,
    warm: bool = True,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    new_token: bool = False,
    access_log: bool = False,
) -> None:
    """Serve until interrupted; tells address, token and the link of the web page on stderr.

    The token is kept in the data folder between starts, unless ``new_token``. ``hosts`` are further
    values of the Host header that are served, and ``origins`` those of web pages that may call.

    Raises:
        UsageError: The host is not this machine's loopback, TOOLSRV_TOKEN is too short, or a host
            or an origin is none.
        BusyError: The port is taken.
    """
    import uvicorn

    from toolsrv.web.app import WebPage

    allowed = security(hosts, origins)
    token = choose_token(bench.settings.data_dir / TOKEN_FILE, renew=new_token)
    listener = listen(host, port)
    server = build_server(bench, warm=warm)
    inner = ReadableMessages(server.streamable_http_app(host=host, transport_security=allowed))
    endpoint = with_cors(PublicPaths(BearerGate(inner, token), allowed), origins)
    here, port = origin(host, listener), listener.getsockname()[1]
    app = WebPage(endpoint, server, bench, token=token, port=port, allowed=allowed)
    sys.stderr.write(
        f"MCP server at {here}{PATH}\nAuthorization: Bearer {token}\n"
        f"web page (this link opens it once): {here}{app.login}\n"
    )
    sys.stderr.flush()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=access_log,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _authorization(scope: Scope) -> bytes | None:
    found = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
    return found[0] if len(found) == 1 else None


def _replayed(body: bytes, receive: Receive, *, last: bool) -> Receive:
    """Return a ``receive`` that begins with a body that was read already."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": not last}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


async def _answer_unreadable(send: Send, found: Unreadable) -> None:
    """Answer with the one error that an HTTP response has room for."""
    known = found.ids[0] if len(found.ids) == 1 else None
    error = {"code": found.code, "message": found.message}
    await _send_json(send, 400, {"jsonrpc": "2.0", "id": known, "error": error})


async def _refuse(send: Send, *, given: bool) -> None:
    why = "the bearer token is wrong" if given else "a bearer token is required"
    challenge = b'Bearer realm="toolsrv"' + (b', error="invalid_token"' if given else b"")
    await _send_json(send, 401, {"error": why}, (b"www-authenticate", challenge))


async def _send_json(
    send: Send, status: int, document: dict[str, Any], *headers: tuple[bytes, bytes]
) -> None:
    body = json.dumps(document).encode()
    given = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})

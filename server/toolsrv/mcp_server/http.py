"""The server on loopback HTTP, for clients on this machine that know the token.

Every request needs ``Authorization: Bearer <token>``; the SDK's checks of Host and Origin
(against DNS rebinding) stay on beneath that.
"""

from __future__ import annotations

import hmac
import json
import sys
from typing import TYPE_CHECKING

from toolsrv.loopback import choose_token, listen, origin
from toolsrv.mcp_server.build import build_server

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolsrv.workbench import Workbench

PATH = "/mcp"


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


def serve_http(bench: Workbench, *, host: str, port: int, warm: bool = True) -> None:
    """Serve until interrupted; tells address and token on stderr.

    Raises:
        UsageError: The host is not this machine's loopback, or TOOLSRV_TOKEN is too short.
        BusyError: The port is taken.
    """
    import uvicorn

    token = choose_token()
    listener = listen(host, port)
    app = BearerGate(build_server(bench, warm=warm).streamable_http_app(host=host), token)
    sys.stderr.write(
        f"MCP server at {origin(host, listener)}{PATH}\nAuthorization: Bearer {token}\n"
    )
    sys.stderr.flush()
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listener])


def _authorization(scope: Scope) -> bytes | None:
    found = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
    return found[0] if len(found) == 1 else None


async def _refuse(send: Send, *, given: bool) -> None:
    why = "the bearer token is wrong" if given else "a bearer token is required"
    challenge = b'Bearer realm="toolsrv"' + (b', error="invalid_token"' if given else b"")
    body = json.dumps({"error": why}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": 401,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"www-authenticate", challenge),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})

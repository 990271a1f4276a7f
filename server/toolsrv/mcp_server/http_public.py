"""What the HTTP server says without its token, and to whom: health, well-known paths, hosts, origins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse

import toolsrv
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HEALTH = "/health"
WELL_KNOWN = "/.well-known/"
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

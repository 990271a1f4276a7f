"""HTTP routes: ToolBench's ``/rapidapi`` and StableToolBench's ``/virtual``.

Both take the same POST and give ``{"error": …, "response": …}``. What a call came to stands in
``error`` under status 200, as clients expect; other statuses tell of requests that made no call,
in the same two fields. Where an answer came from stands in the header ``x-toolsrv-source``, since
clients show the whole body to their model.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from toolsrv.api_server.protocol import (
    KEY_FIELD,
    RAPIDAPI_FIELDS,
    VIRTUAL_FIELDS,
    World,
    read_object,
    read_request,
)
from toolsrv.loopback import LOOPBACK
from toolsrv_registry.errors import BusyError, DataError, NotFoundError, ToolsrvError, UsageError

BODY_LIMIT = 256 * 1024
"""Bytes of a request's body."""
PATIENCE_S = 14.0
"""ToolBench's client breaks off after 15 s and loses its run; ``/virtual``'s waits for ever."""

_STATUS: Mapping[type[ToolsrvError], int] = {
    UsageError: 422,
    NotFoundError: 404,
    BusyError: 503,
    DataError: 500,
}
_WHY = {
    404: "only /rapidapi and /virtual are here",
    405: "only POST is understood here",
    500: "something went wrong in the server",
}


def create_app(
    world: World, token: str | None, close: Callable[[], Awaitable[None]] | None = None
) -> Starlette:
    """Return the ASGI application; without a ``token`` every client is let in.

    ``close`` is awaited when the server has ended its last request.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        if close is not None:
            await close()

    def route(path: str, fields: tuple[str, ...], seconds: float | None) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _answered(request, world, token, fields, seconds)

        return Route(path, endpoint, methods=["POST"])

    return Starlette(
        routes=[
            route("/rapidapi", RAPIDAPI_FIELDS, PATIENCE_S),
            route("/virtual", VIRTUAL_FIELDS, None),
        ],
        exception_handlers={
            HTTPException: _http_error_reply,
            ToolsrvError: _toolsrv_error_reply,
            500: _http_error_reply,
        },
        lifespan=lifespan,
    )


async def _answered(
    request: Request,
    world: World,
    token: str | None,
    fields: tuple[str, ...],
    seconds: float | None,
) -> Response:
    """Let the client in, read what it wants, answer."""
    _check_place(request)
    known = token is None or _has_token(request, token)
    body = read_object(await _body(request))
    if token is not None and not known and not _same(body.get(KEY_FIELD), token):
        _refuse_stranger()
    got = await world.answer(read_request(body, fields), seconds)
    headers = {"x-toolsrv-source": got.source, "x-toolsrv-kind": got.kind}
    return _response(200, got.error, got.response, headers)


def _check_place(request: Request) -> None:
    """Refuse what a web page in a browser on this machine could send."""
    if _name(request.headers.get("host", "")) not in LOOPBACK:
        raise HTTPException(421, "this server is for clients of its own machine")
    origin = request.headers.get("origin")
    if origin is not None and _name(origin.partition("://")[2]) not in LOOPBACK:
        raise HTTPException(403, "web pages of other places are not answered")


def _name(authority: str) -> str:
    """Return the host name of ``host:port``, "" where there is none."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def _has_token(request: Request, token: str) -> bool:
    """Whether a header carries the token; False where none says who asks.

    Raises:
        HTTPException: a header carries another one: no body need be read.
    """
    given = request.headers.getlist("authorization") + request.headers.getlist(KEY_FIELD)
    if not given:
        return False
    for one in given:
        scheme, _, rest = one.partition(" ")
        if not _same(rest.strip() if scheme.lower() == "bearer" else one, token):
            _refuse_stranger()
    return True


def _same(given: Any, token: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(
        given.encode(errors="replace"), token.encode()
    )


def _refuse_stranger() -> NoReturn:
    raise HTTPException(
        401,
        f"the token is missing or wrong; send it as Authorization: Bearer, or as {KEY_FIELD}",
        headers={"www-authenticate": 'Bearer realm="toolsrv"'},
    )


async def _body(request: Request) -> bytes:
    """Return the body; no more of it than may be is ever held.

    Raises:
        HTTPException: it is too large, or does not come.
    """
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > BODY_LIMIT:
        raise HTTPException(413, f"a request has at most {BODY_LIMIT:,} bytes")
    parts = bytearray()
    try:
        async for part in request.stream():
            parts += part
            if len(parts) > BODY_LIMIT:
                raise HTTPException(413, f"a request has at most {BODY_LIMIT:,} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the request breaks off") from None
    return bytes(parts)


async def _http_error_reply(_request: Request, error: Exception) -> Response:
    """Say what is wrong with a request; of our own faults, no more than that there is one."""
    if not isinstance(error, HTTPException):
        return _refusal(500, _WHY[500])
    return _refusal(
        error.status_code, _WHY.get(error.status_code, error.detail), dict(error.headers or {})
    )


async def _toolsrv_error_reply(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ToolsrvError):
        raise error
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return _refusal(status, f"{error.message} ({error.hint})")


def _refusal(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    return _response(status, error, "", headers)


def _response(
    status: int, error: str, response: Any, headers: Mapping[str, str] | None
) -> Response:
    # In ASCII, since half a surrogate pair from an API's JSON has no other encoding.
    text = json.dumps({"error": error, "response": response})
    return Response(text, status, headers, media_type="application/json")

"""Sessions of the web page, and the gate that every request of it passes.

A link with a one-time code, or the access token in a form, is exchanged for a cookie that no
script reads and no other site sends. The gate checks the Host header, refuses requests that other
sites make, and takes a POST only with the Origin of the page itself and the session's CSRF token.
Cookies know no ports, so Origin must be this very port's.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from toolsrv.web.uploads import MOST_BODY, MOST_UPLOAD, close_files, read_form

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from toolsrv_runtime.outcome import KeptFile

PREFIX = "/ui"
LOGIN = f"{PREFIX}/login"
STATIC = f"{PREFIX}/static/"
CALL = f"{PREFIX}/call"
"""Where a form may have files."""
IDLE_S = 12 * 3600.0
"""Seconds after its last request that a session ends."""
MOST_SESSIONS = 20
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # not no-referrer: a browser would send "Origin: null" with the page's own forms
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Waiting(Protocol):
    """What waits for its person."""

    def close(self) -> None:
        """Let go of its files. Idempotent."""


@dataclass(eq=False)
class Session:
    """One browser that is logged in.

    ``kept`` holds calls that wait for its person's consent, ``files`` what calls brought.
    """

    id: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    seen: float = 0.0
    kept: OrderedDict[str, Waiting] = field(default_factory=OrderedDict)
    files: OrderedDict[str, KeptFile] = field(default_factory=OrderedDict)

    def close(self) -> None:
        """Let go of everything that waits. Idempotent."""
        while self.kept:
            self.kept.popitem()[1].close()


class Sessions:
    """The sessions of one server, in memory: they end with it."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the access token, which logs in as well as the code of the link does."""
        self._token = token
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._code = secrets.token_urlsafe(32)

    @property
    def code(self) -> str:
        """The code of the link; it is taken once."""
        return self._code

    def by_code(self, code: str) -> Session | None:
        """Return a new session for the link's code, None where it is wrong or was taken before."""
        if not self._code or not _same(code, self._code):
            return None
        self._code = ""
        return self._open()

    def by_token(self, token: str) -> Session | None:
        """Return a new session for the access token, None where it is wrong."""
        return self._open() if _same(token.strip(), self._token) else None

    def get(self, session_id: str) -> Session | None:
        """Return a session that has not ended, and note that it is used."""
        found = self._sessions.get(session_id)
        if found is None:
            return None
        if found.seen + IDLE_S < self._clock():
            self.end(found)
            return None
        found.seen = self._clock()
        self._sessions.move_to_end(session_id)
        return found

    def end(self, session: Session) -> None:
        """Forget a session."""
        self._sessions.pop(session.id, None)
        session.close()

    def _open(self) -> Session:
        session = Session(seen=self._clock())
        self._sessions[session.id] = session
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)[1].close()
        return session


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


class Gate:
    """ASGI middleware: hand on what this machine's person asks for, refuse everything else.

    ``scope["state"]`` has the ``session`` (None before the login) and the ``form`` of a POST with its
    ``files``; those that a handler leaves there are closed at the end.
    """

    def __init__(
        self, app: ASGIApp, sessions: Sessions, allowed: TransportSecuritySettings, cookie: str
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._hosts = TransportSecurityMiddleware(allowed)
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and answer it, or hand it on."""
        request = Request(scope, receive)
        request.state.session, request.state.form, request.state.files = None, {}, {}
        try:
            answer = await self._checked(request)
            if answer is None:
                await self._app(scope, receive, _with_headers(send))
            else:
                await answer(scope, receive, _with_headers(send))
        finally:
            close_files(request.state.files)

    async def _checked(self, request: Request) -> Response | None:
        """Return the answer to a request that is not handed on."""
        headers, path = request.headers, request.scope["path"]  # its URL has parts of Host
        host = [one for one in headers.raw if one[0] == b"host"]  # Origin has a stricter check
        refused = await self._hosts.validate_request(Request({**request.scope, "headers": host}))
        if refused is not None:
            return refused
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("GET or POST", 405, {"allow": "GET, HEAD, POST"})
        if foreign := _foreign(request.method, headers):
            return PlainTextResponse(foreign, 403)
        session = self._sessions.get(request.cookies.get(self._cookie, ""))
        request.state.session = session
        if request.method == "POST":
            return await self._post(request, session)
        if session is None and path != LOGIN and not path.startswith(STATIC):
            return RedirectResponse(LOGIN, 303)
        return None

    async def _post(self, request: Request, session: Session | None) -> Response | None:
        path = request.scope["path"]
        if session is None and path != LOGIN:
            return PlainTextResponse("the session has ended: log in again", 403)
        try:
            form = await read_form(request, with_files=path == CALL)
        except OSError as error:
            return PlainTextResponse(f"no room for the files: {error.strerror or error}", 507)
        if form is None:
            most = f"{MOST_BODY:,} bytes, {MOST_UPLOAD:,} with files," if path == CALL else ""
            return PlainTextResponse(
                f"a form of at most {most or f'{MOST_BODY:,} bytes'} is taken", 413
            )
        request.state.form, request.state.files = form.fields, form.files
        if session is None:
            return None
        if not _same(form.fields.get("csrf", ""), session.csrf):
            return PlainTextResponse("this form is not of this session: load its page again", 403)
        return None


def _foreign(method: str, headers: Mapping[str, str]) -> str:
    """Say why a request may be another site's; "" where it is the page's own or a link."""
    site = headers.get("sec-fetch-site", "none")
    is_link = method != "POST" and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if site not in ("none", "same-origin") and not is_link:
        return "another site asks for this"
    if method == "POST":
        origin = headers.get("origin", "")
        if origin.partition("://")[2].lower() != headers["host"].lower():
            return "the Origin is not this page's"
    return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending

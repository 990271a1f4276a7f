"""Access tokens for OAuth 2 client credentials: fetched, kept until they expire, fetched again.

A token is asked for over the connections that calls go over, so that their addresses are checked.
It is kept in memory, and where there is a ``TokenKeeper`` for the next process too. Knows nothing of
APIs or of where keys are stored.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard
from urllib.parse import quote_plus, urlencode

import httpx

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls.auth import ClientCredentials
from toolsrv_runtime.calls.body import without
from toolsrv_runtime.calls.exchange import Exchange, Message

Send = Callable[[Message], Awaitable[Exchange]]
"""Make one exchange."""

EARLY_S = 30.0
"""A token is no longer used so many seconds before it expires, but for half of a short life."""
UNSTATED_S = 300.0
"""How long a token is kept whose server does not say."""
_LONGEST_S = 86_400.0
_TOKEN_LIMIT = 16_384
_SAID_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Token:
    """An access token; ``fresh``: it was fetched for this call. ``until`` is a monotonic time."""

    text: str = field(repr=False)
    until: float
    fresh: bool = True


class TokenKeeper(Protocol):
    """Keeps tokens from one process to the next; ``until`` is in seconds since 1970.

    Its methods may block, and raise nothing: a token that cannot be kept is fetched again.
    """

    def find(self, client: ClientCredentials) -> tuple[str, float] | None:
        """Return a token and until when it is used, None where there is none."""
        ...

    def keep(self, client: ClientCredentials, token: str, until: float) -> None:
        """Keep a token instead of the one before."""
        ...

    def drop(self, client: ClientCredentials, token: str) -> None:
        """Forget a token, unless another has taken its place."""
        ...


class Tokens:
    """The access tokens of one process. Used from one event loop."""

    def __init__(
        self,
        keeper: TokenKeeper | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take who keeps tokens for other processes, a monotonic clock and the time of day."""
        self._keeper = keeper
        self._clock = clock
        self._wall = wall
        self._kept: dict[ClientCredentials, Token] = {}
        self._turns: dict[ClientCredentials, asyncio.Lock] = {}

    async def get(self, client: ClientCredentials, send: Send) -> Token | Exchange:
        """Return a token that is valid, or the exchange that brought none.

        ``send`` makes one exchange with the token server. Calls that want the same token wait for
        one request.
        """
        async with self._turns.setdefault(client, asyncio.Lock()):
            kept = self._kept.get(client)
            if kept is not None and kept.until > self._clock():
                return Token(kept.text, kept.until, fresh=False)
            if (kept := await self._found(client)) is not None:
                self._kept[client] = kept
                return kept
            got = await _fetched(client, send, self._clock())
            if isinstance(got, Token):
                self._kept[client] = got
                left = got.until - self._clock()
                if self._keeper is not None and left > 0:
                    until = self._wall() + left
                    await asyncio.to_thread(self._keeper.keep, client, got.text, until)
            return got

    async def _found(self, client: ClientCredentials) -> Token | None:
        """Return a token that another process has fetched and that is still valid."""
        if self._keeper is None:
            return None
        found = await asyncio.to_thread(self._keeper.find, client)
        if found is None or not _is_token(found[0]):
            return None
        left = min(found[1] - self._wall(), _LONGEST_S)
        return Token(found[0], self._clock() + left, fresh=False) if left > 0 else None

    async def forget(self, client: ClientCredentials, token: Token) -> None:
        """Let a token go that a host refused, unless another has taken its place."""
        kept = self._kept.get(client)
        if kept is not None and kept.text == token.text:
            del self._kept[client]
        if self._keeper is not None:
            await asyncio.to_thread(self._keeper.drop, client, token.text)


async def _fetched(client: ClientCredentials, send: Send, start: float) -> Token | Exchange:
    """Ask for a token: with the credentials in the header, where that is refused in the body."""
    user, _, password = client.secret.partition(":")
    form = {"grant_type": "client_credentials"}
    if client.scopes:
        form["scope"] = " ".join(client.scopes)
    coded = base64.b64encode(f"{quote_plus(user)}:{quote_plus(password)}".encode()).decode()
    shown = (client.secret, password, coded)
    got = await send(_request(client.url, form, {"Authorization": f"Basic {coded}"}))
    if got.status in (400, 401) and _error_code(got) in ("invalid_client", "invalid_request"):
        named = {**form, "client_id": user, "client_secret": password}
        got = await send(_request(client.url, named, {}))
    if got.kind != "ok":
        return _failed(client, got, _error_code(got) or got.error, shown)
    value = got.response if isinstance(got.response, dict) else {}
    text, kind = value.get("access_token"), value.get("token_type", "bearer")
    if not _is_token(text):
        return _failed(client, got, "its answer holds no access token", shown)
    if not isinstance(kind, str) or kind.lower() != "bearer":
        return _failed(client, got, f"its tokens are of the type {str(kind)[:40]!r}", shown)
    return Token(text, start + _seconds(value.get("expires_in")))


def _request(url: httpx.URL, form: dict[str, str], headers: dict[str, str]) -> Message:
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return Message("POST", url, {**kind, **headers}, urlencode(form).encode(), counted=False)


def _is_token(text: Any) -> TypeGuard[str]:
    if not isinstance(text, str) or not 0 < len(text) <= _TOKEN_LIMIT:
        return False
    return text.isascii() and text.isprintable() and " " not in text


def _seconds(told: Any) -> float:
    """Return how long a token is used, in seconds, from what its server says of its life."""
    try:
        life = float(told)
    except (TypeError, ValueError, OverflowError):
        return UNSTATED_S
    if not life > 0:  # NaN too
        return 0.0
    life = min(life, _LONGEST_S)
    return max(life - EARLY_S, life / 2)


def _error_code(got: Exchange) -> str:
    """Return the error that a token server names (RFC 6749, 5.2), ``""`` where it names none."""
    said = got.response.get("error") if isinstance(got.response, dict) else None
    return clean(said, _SAID_LIMIT) if isinstance(said, str) else ""


def _failed(
    client: ClientCredentials, got: Exchange, why: str, secrets: tuple[str, ...]
) -> Exchange:
    """Return the end of a call for which no token came."""
    told = without(f"no access token came from {client.url.host}: {why}", secrets)
    if got.kind == "ok":
        return Exchange("unauthorized", 0, None, told)
    kind = "unauthorized" if got.status in (400, 401, 403) else got.kind
    return Exchange(kind, got.status, None, told, got.retry_after, got.sent)

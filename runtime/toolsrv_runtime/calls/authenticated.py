"""Send calls with credentials: API keys, Digest logins, OAuth 2 access tokens, and fixed values.

Access tokens of client credentials (RFC 6749, 4.4) are cached until they expire. Digest challenges
are remembered per host. ``FixedValues`` are headers and query parameters that a person set for a
catalog; they go into each of its live calls and hold no credentials. Does not decide whether a call
is allowed.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeGuard
from urllib.parse import quote_plus, urlencode

import httpx

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.numerals import spell
from toolsrv_registry.security import CONNECTION_HEADERS, TOKEN
from toolsrv_runtime.calls import credentials
from toolsrv_runtime.calls.credentials import ClientCredentials, with_header, with_parameter
from toolsrv_runtime.calls.exchange import CallLimits, Exchange, PreparedRequest, exchange
from toolsrv_runtime.calls.rate_limits import HostLimiter
from toolsrv_runtime.calls.request import BODILESS, OutgoingRequest, address_too_long
from toolsrv_runtime.calls.response_body import redact
from toolsrv_runtime.errors import ArgumentError, CredentialsError

Send = Callable[[PreparedRequest], Awaitable[Exchange]]
"""Make one exchange."""

EARLY_S = 30.0
"""A token is no longer used so many seconds before it expires, but for half of a short life."""
UNSTATED_S = 300.0
"""How long a token is kept whose server does not say."""
_LONGEST_S = 86_400.0
_TOKEN_LIMIT = 16_384
_ERROR_LENGTH = 200


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token; ``fresh``: it was fetched for this call. ``until`` is a monotonic time."""

    text: str = field(repr=False)
    until: float
    fresh: bool = True


class TokenStore(Protocol):
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


class TokenCache:
    """The access tokens of one process. Used from one event loop."""

    def __init__(
        self,
        keeper: TokenStore | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take who keeps tokens for other processes, a monotonic clock and the time of day."""
        self._keeper = keeper
        self._clock = clock
        self._wall = wall
        self._kept: dict[ClientCredentials, AccessToken] = {}
        self._turns: dict[ClientCredentials, asyncio.Lock] = {}

    async def get(self, client: ClientCredentials, send: Send) -> AccessToken | Exchange:
        """Return a token that is valid, or the exchange that brought none.

        ``send`` makes one exchange with the token server. Calls that want the same token wait for
        one request.
        """
        async with self._turns.setdefault(client, asyncio.Lock()):
            kept = self._kept.get(client)
            if kept is not None and kept.until > self._clock():
                return AccessToken(kept.text, kept.until, fresh=False)
            if (kept := await self._found(client)) is not None:
                self._kept[client] = kept
                return kept
            got = await _fetch_token(client, send, self._clock())
            if isinstance(got, AccessToken):
                self._kept[client] = got
                left = got.until - self._clock()
                if self._keeper is not None and left > 0:
                    until = self._wall() + left
                    await asyncio.to_thread(self._keeper.keep, client, got.text, until)
            return got

    async def _found(self, client: ClientCredentials) -> AccessToken | None:
        """Return a token that another process has fetched and that is still valid."""
        if self._keeper is None:
            return None
        found = await asyncio.to_thread(self._keeper.find, client)
        if found is None or not _is_token(found[0]):
            return None
        left = min(found[1] - self._wall(), _LONGEST_S)
        return AccessToken(found[0], self._clock() + left, fresh=False) if left > 0 else None

    async def forget(self, client: ClientCredentials, token: AccessToken) -> None:
        """Let a token go that a host refused, unless another has taken its place."""
        kept = self._kept.get(client)
        if kept is not None and kept.text == token.text:
            del self._kept[client]
        if self._keeper is not None:
            await asyncio.to_thread(self._keeper.drop, client, token.text)


async def _fetch_token(
    client: ClientCredentials, send: Send, start: float
) -> AccessToken | Exchange:
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
    return AccessToken(text, start + _seconds(value.get("expires_in")))


def _request(url: httpx.URL, form: dict[str, str], headers: dict[str, str]) -> PreparedRequest:
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return PreparedRequest(
        "POST", url, {**kind, **headers}, urlencode(form).encode(), counted=False
    )


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
    return clean(said, _ERROR_LENGTH) if isinstance(said, str) else ""


def _failed(
    client: ClientCredentials, got: Exchange, why: str, secrets: tuple[str, ...]
) -> Exchange:
    """Return the end of a call for which no token came."""
    told = redact(f"no access token came from {client.url.host}: {why}", secrets)
    if got.kind == "ok":
        return Exchange("unauthorized", 0, None, told)
    kind = "unauthorized" if got.status in (400, 401, 403) else got.kind
    return Exchange(kind, got.status, None, told, got.retry_after, got.sent)


_LOGINS_KEPT = 200
_LEAST_S = 0.05
_PORTS = {"http": 80, "https": 443}


class NetworkAccess(Protocol):
    """How hosts are reached; ``caller.Network`` is one."""

    @property
    def transport(self) -> httpx.AsyncBaseTransport:
        """What sends requests."""

    @property
    def keys(self) -> credentials.KeyLookup:
        """The keys."""

    @property
    def hosts(self) -> HostLimiter | None:
        """The limits of each host."""

    @property
    def own(self) -> Callable[[str, int], bool]:
        """Whether a host and port are a person's own."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """What a person's rules say.

    ``may_follow`` whether a redirect from one address to another may be followed, ``may_fetch``
    whether a token may come from an address. ``catalog`` is the one that they are asked for.
    """

    may_follow: Callable[[httpx.URL, httpx.URL], bool]
    may_fetch: Callable[[httpx.URL], bool]
    catalog: str = ""


class AuthenticatedCalls:
    """Sends requests with their credentials; ``keeper`` keeps tokens for other processes."""

    def __init__(self, keeper: TokenStore | None = None) -> None:
        self._tokens = TokenCache(keeper)
        self._logins: dict[tuple[str, str, str], httpx.DigestAuth] = {}

    async def send(
        self,
        api: Api,
        outgoing: OutgoingRequest,
        way: NetworkAccess,
        limits: CallLimits,
        rules: AddressRules,
    ) -> Exchange:
        """Return what came of a request; a token that a host refuses (401) is fetched anew once.

        Raises:
            ArgumentError: with a key in its query the address is too long.
            CredentialsError: the credentials are missing or not supported; nothing was sent.
            PolicyError: an address may not be called.
        """
        end = time.monotonic() + limits.seconds
        plain = way.own(outgoing.url.host, _port(outgoing.url))
        signed = await asyncio.to_thread(
            credentials.authorize, api, outgoing, way.keys, plain=plain
        )
        if signed.client is None:
            got = await self._exchange(signed, outgoing, way, limits, rules)
            return replace(got, note=signed.note)
        self._check(signed.client, way, rules)
        while True:
            token = await self._tokens.get(
                signed.client,
                lambda message: exchange(
                    way.transport, message, replace(_remaining(limits, end), spool=None), way.hosts
                ),
            )
            if isinstance(token, Exchange):
                return token
            ready = signed.with_token(token.text)
            got = await self._exchange(ready, outgoing, way, _remaining(limits, end), rules)
            if got.status != 401 or token.fresh:
                return got
            await self._tokens.forget(signed.client, token)

    async def _exchange(
        self,
        signed: credentials.AuthorizedRequest,
        outgoing: OutgoingRequest,
        way: NetworkAccess,
        limits: CallLimits,
        rules: AddressRules,
    ) -> Exchange:
        message = PreparedRequest(
            outgoing.method,
            signed.url,
            signed.headers,
            outgoing.content,
            signed.secrets,
            self._login(signed),
            lambda target: rules.may_follow(signed.url, target),
            rules.catalog,
        )
        return await exchange(way.transport, message, limits, way.hosts)

    def _login(self, signed: credentials.AuthorizedRequest) -> httpx.DigestAuth | None:
        """Return the login of a host; it answers the next request without a new challenge."""
        if signed.digest is None:
            return None
        key = (signed.url.netloc.decode("ascii"), *signed.digest)
        if key not in self._logins and len(self._logins) >= _LOGINS_KEPT:
            self._logins.clear()
        return self._logins.setdefault(key, httpx.DigestAuth(*signed.digest))

    @staticmethod
    def _check(
        client: credentials.ClientCredentials, way: NetworkAccess, rules: AddressRules
    ) -> None:
        url = client.url
        if url.scheme != "https" and not way.own(url.host, _port(url)):
            raise CredentialsError(
                f"access tokens come from {url.host} over unencrypted HTTP, and no key is sent that "
                "way",
                hint="for a service of your own: toolsrv config set own_hosts HOST",
            )
        if not rules.may_fetch(url):
            raise CredentialsError(
                f"access tokens come from {url.host}, which your settings deny",
                hint="see the setting calls: toolsrv config show",
            )


def _port(url: httpx.URL) -> int:
    return url.port or _PORTS.get(url.scheme, 0)


def _remaining(limits: CallLimits, end: float) -> CallLimits:
    """Return the limits with what is left of a call's time."""
    return replace(limits, seconds=max(_LEAST_S, end - time.monotonic()))


FixedKind = Literal["header", "query"]
MAX_FIXED_VALUES = 50
"""Values of one catalog."""
NAME_LIMIT, VALUE_LIMIT = 200, 4_000
_CREDENTIALS = frozenset({"authorization", "cookie", "x-rapidapi-key", "x-rapidapi-host"})
_BODY = frozenset({"content-type", "content-encoding"})
_PLACEHOLDER = re.compile(r"\{\{?([^{}]+)\}?\}")


@dataclass(frozen=True, slots=True)
class FixedValues:
    """The values of one catalog, by name."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def split(self, api: Api, arguments: Mapping[str, Any]) -> tuple[Api, dict[str, Any]]:
        """Return an API without the parameters that are fixed, and the arguments of the others.

        Raises:
            ArgumentError: an argument says otherwise than the value that is fixed.
        """
        fixed = {one.name: text for one in api.parameters if (text := self._of(api, one))}
        if not fixed:
            return api, dict(arguments)
        left = dict(arguments)
        for key, parameter in parameter_keys(api).items():
            for name in (key, parameter.name):
                if parameter.name in fixed and name in left:
                    _check(api, name, left.pop(name), fixed[parameter.name])
        kept = {
            kind: tuple(one for one in parameters if one.name not in fixed)
            for kind, parameters in (("required", api.required), ("optional", api.optional))
        }
        return api.model_copy(update=kept), left

    def added(self, api: Api, outgoing: OutgoingRequest) -> OutgoingRequest:
        """Return a request with the values in it.

        Raises:
            ArgumentError: the address becomes too long.
        """
        headers, url = dict(outgoing.headers), outgoing.url
        for name, value in self.headers.items():
            headers = with_header(headers, name, value)
        try:
            for name, value in self.query.items():
                url = with_parameter(url, name, value)
        except httpx.InvalidURL:
            raise address_too_long(api) from None
        return replace(outgoing, url=url, headers=headers)

    def _of(self, api: Api, parameter: Parameter) -> str:
        """Return the value that is fixed for a parameter, ``""`` for none."""
        name = parameter.wire or parameter.name
        if parameter.place == "header":
            return next((v for k, v in self.headers.items() if k.lower() == name.lower()), "")
        open_place = not parameter.place and api.method.upper() in BODILESS
        if parameter.place == "query" or (open_place and name not in _PLACEHOLDER.findall(api.url)):
            return self.query.get(name, "")
        return ""


FixedValuesLookup = Callable[[str], FixedValues]
"""From a catalog's name to its values."""


def no_fixed_values(catalog: str) -> FixedValues:
    """Return no values."""
    del catalog
    return FixedValues()


def fixed_fault(kind: FixedKind, name: str, value: str) -> str:
    """Return why a value cannot be fixed, ``""`` where it can."""
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        return f"{name[:80]!r} is no name"
    if not value or len(value) > VALUE_LIMIT or not value.isprintable():
        return "the value is empty, too long, or holds a line end or a control character"
    if kind == "query":
        return ""
    if not TOKEN.fullmatch(name):
        return f"{name[:80]!r} is no name of a header"
    if name.lower() in _CREDENTIALS:
        return f"the header {name!r} is for credentials, which are keys: toolsrv keys set"
    if name.lower() in CONNECTION_HEADERS or name.lower().startswith("proxy-"):
        return f"the header {name!r} belongs to the connection"
    if name.lower() in _BODY:
        return f"the header {name!r} is that of the body, and follows from its document"
    return "" if value.isascii() else "a header takes unaccented letters, digits and signs only"


def _check(api: Api, name: str, given: Any, fixed: str) -> None:
    if (given if isinstance(given, str) else spell(given)) != fixed:
        raise ArgumentError(
            f"{api.id}: the argument {name!r} is fixed for its catalog and cannot be given",
            hint=f"leave it out: {fixed[:80]!r} is sent",
        )

"""Choose the credentials of a call and put them into its request; hints for calls that failed.

RapidAPI's hosts take their two headers. Other APIs declare OpenAPI security schemes: keys in a
header, the query or a cookie, Basic, Bearer and Digest, and OAuth 2 client credentials. A key is
stored under the name of the one host that it is sent to; client credentials for a token server at
another host are named by both. A scheme that is not supported raises CredentialsError. Knows
nothing of where keys are stored; ``authenticated`` fetches the tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote_to_bytes

import httpx

from toolsrv_catalogs.hosts import address_fault
from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_registry.security import needs_unsupported, unsupported
from toolsrv_runtime.calls.request import (
    ADDRESS_LIMIT,
    OutgoingRequest,
    address_too_long,
    encode_form,
    web_address,
)
from toolsrv_runtime.calls.result import ResultKind
from toolsrv_runtime.calls.serialization import percent_encode
from toolsrv_runtime.errors import CredentialsError

KeyLookup = Callable[[str], str]
"""From a key's name to the secret, ``""`` when there is none. May block: a keyring may ask a person.

Called in threads.
"""

RAPIDAPI = "rapidapi"
ANY_SECRET = "had:had"  # noqa: S105 - stands for one
"""Stands for a secret that is known to exist and not looked at; it may be of any form."""
_RAPIDAPI_HOST = ".rapidapi.com"
_LOGIN = frozenset({"basic", "digest"})
_FLOWS = frozenset({"oauth2", "openIdConnect"})


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """What is exchanged for an access token: OAuth 2's client credentials (RFC 6749, 4.4).

    ``secret`` is ``CLIENT_ID:CLIENT_SECRET``, ``key`` the name that it is kept under.
    """

    url: httpx.URL
    key: str
    secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorizedRequest:
    """A request with its credentials. ``secrets`` are what must never be shown.

    ``digest`` are user and password that answer a Digest challenge, ``client`` what a bearer token
    is to be fetched with. ``note`` says that a key was asked for and none was there.
    """

    url: httpx.URL
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    digest: tuple[str, str] | None = field(default=None, repr=False)
    client: ClientCredentials | None = None
    note: str = ""

    def with_token(self, token: str) -> AuthorizedRequest:
        """Return the request with a bearer token."""
        headers = with_header(self.headers, "Authorization", f"Bearer {token}")
        return replace(self, headers=headers, secrets=(*self.secrets, token))


def header_safe_keys(keys: KeyLookup) -> KeyLookup:
    """Return the keys that can stand in a header; others are as good as none."""

    def found(name: str) -> str:
        secret = keys(name) or ""
        return secret if secret.isascii() and secret.isprintable() else ""

    return found


def no_keys(name: str) -> str:
    """Have no key for any name."""
    del name
    return ""


def is_rapidapi_host(host: str) -> bool:
    """Return whether a host answers only with RapidAPI's key."""
    return host.endswith(_RAPIDAPI_HOST)


def key_names(api: Api, host: str) -> tuple[str, ...]:
    """Return the names of keys a call would use, in the order they are looked for.

    ``rapidapi`` for RapidAPI's hosts; ``HOST/SCHEME`` and ``HOST`` for an API that asks for
    credentials, ``HOST@TOKEN-HOST`` where they go to another host; none for the others.
    """
    if is_rapidapi_host(host):
        return (RAPIDAPI,)
    schemes = [scheme for group in api.security for scheme in group]
    elsewhere = (_token_host_key(scheme, api, host) for scheme in schemes)
    names = [*filter(None, elsewhere), *(f"{host}/{scheme.name}" for scheme in schemes)]
    return (*dict.fromkeys(names), host) if schemes else ()


def key_to_set(api: Api, host: str, scheme: SecurityScheme) -> str:
    """Return the name under which the key of a scheme is best kept, ``""`` without a host."""
    if other := _token_host_key(scheme, api, host):
        return other
    several = len({one.name for group in api.security for one in group}) > 1
    return f"{host}/{scheme.name}" if several and host else host


def has_credentials(api: Api, host: str, keys: KeyLookup) -> bool:
    """Whether a call can be made with the keys that there are."""
    if is_rapidapi_host(host):
        return bool(header_safe_keys(keys)(RAPIDAPI))
    return not api.security or _alternative(api, host, header_safe_keys(keys)) is not None


def missing_credentials(api: Api, host: str, keys: KeyLookup) -> str:
    """Return what a call lacks besides arguments, with the command that sets it; ``""`` for nothing.

    Reads after "needs": ``a key that is not set (toolsrv keys set api.example.com)``.
    """
    if has_credentials(api, host, keys):
        return ""
    if fault := needs_unsupported(api):
        return f"{fault}, which is not supported"
    if not (missing := missing_keys(api, host, keys)):
        return "credentials that cannot be sent together"
    many = "keys that are" if len(missing) > 1 else "a key that is"
    return f"{many} not set ({_key_commands(missing)})"


def missing_keys(api: Api, host: str, keys: KeyLookup) -> tuple[str, ...]:
    """Return the names of the keys to set for the alternative that lacks the fewest."""
    if is_rapidapi_host(host):
        return (RAPIDAPI,)
    keys = header_safe_keys(keys)
    able = [group for group in api.security if not any(map(unsupported, group))]
    lacks = [
        tuple(
            dict.fromkeys(
                key_to_set(api, host, scheme)
                for scheme, use in zip(group, _uses(api, host, group, keys), strict=True)
                if use is None
            )
        )
        for group in able
    ]
    return min(lacks, key=len, default=())


def authorize(
    api: Api, outgoing: OutgoingRequest, keys: KeyLookup, *, plain: bool = False
) -> AuthorizedRequest:
    """Return the request with the credentials that there are. Blocks while ``keys`` does.

    None go over unencrypted HTTP, unless ``plain`` says that the host is a person's own. A key that
    a document asks for and nobody has set is left to the host to refuse, and noted.

    Raises:
        ArgumentError: with a key in its query the address is too long.
        CredentialsError: what the API asks for is not supported, or is there in part only, or would
            go over unencrypted HTTP.
    """
    host, keys = outgoing.url.host, header_safe_keys(keys)
    secure = outgoing.url.scheme == "https" or plain
    if is_rapidapi_host(host):
        return _for_rapidapi(outgoing, keys if secure else no_keys)
    request = AuthorizedRequest(outgoing.url, dict(outgoing.headers))
    if not api.security:
        return request
    uses = _alternative(api, host, keys)
    if uses is None:
        return replace(request, note=_unauthenticated_note(api, host, keys))
    if uses and not secure:
        raise CredentialsError(
            f"{api.id}: {host} is called over unencrypted HTTP, and no key is sent that way",
            hint="for a service of your own: toolsrv config set own_hosts HOST",
        )
    for use in uses:
        try:
            request = _apply(request, use)
        except httpx.InvalidURL:  # a key in the query is more than it holds
            raise address_too_long(api) from None
    return request


def with_header(headers: Mapping[str, str], name: str, value: str) -> dict[str, str]:
    """Return headers with one more, in place of one of that name in any spelling."""
    kept = {one: text for one, text in headers.items() if one.lower() != name.lower()}
    return {**kept, name: value}


def with_parameter(url: httpx.URL, name: str, value: str) -> httpx.URL:
    """Return an address with one more parameter; what stands in its query stays as it is.

    Raises:
        httpx.InvalidURL: it is too long.
    """
    kept = [
        one
        for one in url.query.split(b"&")
        if one and unquote_to_bytes(one.partition(b"=")[0]) != name.encode()
    ]
    query = b"&".join([*kept, encode_form([(name, percent_encode(value))])])
    if len(query) + len(str(url.copy_with(query=None))) > ADDRESS_LIMIT:
        raise httpx.InvalidURL("too long")
    return url.copy_with(query=query)


@dataclass(frozen=True, slots=True)
class _Use:
    """A secret for one scheme; ``client`` where it is to be exchanged for a token first."""

    scheme: SecurityScheme
    secret: str = field(repr=False)
    client: ClientCredentials | None = None


def _for_rapidapi(outgoing: OutgoingRequest, keys: KeyLookup) -> AuthorizedRequest:
    headers = dict(outgoing.headers)
    headers = with_header(headers, "X-RapidAPI-Host", outgoing.url.raw_host.decode("ascii"))
    if key := keys(RAPIDAPI):
        headers = with_header(headers, "X-RapidAPI-Key", key)
        return AuthorizedRequest(outgoing.url, headers, (key,))
    return AuthorizedRequest(outgoing.url, headers)


def _alternative(api: Api, host: str, keys: KeyLookup) -> tuple[_Use, ...] | None:
    """Return the first alternative that every key is there for; None where none is."""
    for group in sorted(api.security, key=lambda one: not one):  # no credentials at all comes last
        if any(map(unsupported, group)) or _schemes_collide(group):
            continue
        uses = _uses(api, host, group, keys)
        if None not in uses:
            return tuple(use for use in uses if use is not None)
    return None


def _uses(
    api: Api, host: str, group: Iterable[SecurityScheme], keys: KeyLookup
) -> tuple[_Use | None, ...]:
    """Return what each scheme of a group is served with, None where a key is missing.

    The host's own key serves one scheme of a group: one secret is not sent in two places.
    """
    found = {scheme.name: _named_use(api, host, scheme, keys) for scheme in group}
    without = [scheme for scheme in group if found[scheme.name] is None]
    if len(without) == 1:
        found[without[0].name] = _use(api, host, without[0], host, keys(host))
    return tuple(found[scheme.name] for scheme in group)


def _named_use(api: Api, host: str, scheme: SecurityScheme, keys: KeyLookup) -> _Use | None:
    """Return what is kept for this very scheme."""
    if other := _token_host_key(scheme, api, host):
        client = _use(api, host, scheme, other, keys(other))
        if client is not None:
            return client
    name = f"{host}/{scheme.name}"
    return _use(api, host, scheme, name, keys(name))


def _use(api: Api, host: str, scheme: SecurityScheme, name: str, secret: str) -> _Use | None:
    """Return what a secret does for a scheme, None where it is none, or not one for it.

    Where client credentials are exchanged, a secret with a colon is an id and a secret: no bearer
    token has one (RFC 6750, 2.1). They go to a host that their name says, and to no other.
    """
    if not secret:
        return None
    url = _token_url(scheme, api)
    if url is None or ":" not in secret or secret == ANY_SECRET:
        return _Use(scheme, secret)
    if url.host != host and name != _token_host_key(scheme, api, host):
        return None
    return _Use(scheme, secret, ClientCredentials(url, name, secret, scheme.scopes))


def _token_host_key(scheme: SecurityScheme, api: Api, host: str) -> str:
    """Return the name of client credentials that go to another host than the API's, else ``""``."""
    url = _token_url(scheme, api)
    return f"{host}@{url.host}" if url is not None and url.host != host else ""


def _token_url(scheme: SecurityScheme, api: Api) -> httpx.URL | None:
    """Return where tokens come from, None where that is no web address."""
    if scheme.kind != "oauth2" or not scheme.token_url:
        return None
    try:
        url = web_address(str(web_address(api.url.partition("{")[0]).join(scheme.token_url)))
    except (httpx.InvalidURL, ValueError):
        return None
    return url if not address_fault(str(url)) else None


def _schemes_collide(group: Iterable[SecurityScheme]) -> bool:
    """Whether two schemes of a group would stand in one place of a request."""
    places = [
        (scheme.place, scheme.key.lower())
        if scheme.kind == "apiKey"
        else ("header", "authorization")
        for scheme in group
    ]
    return len(set(places)) < len(places)


def _unauthenticated_note(api: Api, host: str, keys: KeyLookup) -> str:
    """Return what to say of a call that goes out without a key that nobody has set.

    Raises:
        CredentialsError: it cannot go out so.
    """
    if fault := needs_unsupported(api):
        raise CredentialsError(
            f"{api.id} needs {fault}, which is not supported; nothing was sent",
            hint="choose another API",
        )
    missing = missing_keys(api, host, keys)
    if not missing:
        raise CredentialsError(
            f"{api.id} needs credentials that cannot be sent together; nothing was sent",
            hint="choose another API",
        )
    simple = any(group and all(map(_is_optional, group)) for group in api.security)
    set_already = any(keys(name) for name in key_names(api, host))
    command = _key_commands(missing)
    if simple and not set_already:
        return f"sent without the key that it asks for: {command}"
    lacks = [
        scheme
        for group in api.security
        for scheme in group
        if key_to_set(api, host, scheme) in missing and not unsupported(scheme)
    ]
    flows = any(one.kind in _FLOWS for one in lacks)
    raise CredentialsError(
        f"{api.id} needs {' and '.join(dict.fromkeys(map(secret_form, lacks))) or 'a key'} and has "
        "none; nothing was sent",
        hint=f"{'get it from the provider and ' if flows else ''}set it: {command}",
    )


def _is_optional(scheme: SecurityScheme) -> bool:
    """Whether a host is asked without it: documents name keys that their hosts do not insist on."""
    return scheme.kind == "apiKey" or (scheme.kind == "http" and scheme.scheme != "digest")


def secret_form(scheme: SecurityScheme) -> str:
    """Return in words what is kept for a scheme."""
    if scheme.kind == "oauth2" and scheme.token_url:
        return "OAuth 2 client credentials CLIENT_ID:CLIENT_SECRET, or a bearer token"
    if scheme.kind == "apiKey":
        return "a key"
    return f"{scheme.scheme} USER:PASSWORD" if scheme.scheme in _LOGIN else "a bearer token"


def _key_commands(names: Iterable[str]) -> str:
    return " and ".join(f"toolsrv keys set {name}" for name in names)


def _apply(request: AuthorizedRequest, use: _Use) -> AuthorizedRequest:
    scheme, secret = use.scheme, use.secret
    url, headers, shown = request.url, dict(request.headers), [*request.secrets, secret]
    if use.client is not None:
        return replace(request, client=use.client, secrets=(*shown, secret.partition(":")[2]))
    if scheme.kind == "apiKey" and scheme.place == "query":
        url = with_parameter(url, scheme.key, secret)
    elif scheme.kind == "apiKey" and scheme.place == "cookie":
        before = [value for name, value in headers.items() if name.lower() == "cookie"]
        headers = with_header(headers, "Cookie", "; ".join([*before, f"{scheme.key}={secret}"]))
    elif scheme.kind == "apiKey":
        headers = with_header(headers, scheme.key, secret)
    elif scheme.scheme in _LOGIN:
        user, _, password = secret.partition(":")
        shown.append(password)
        if scheme.scheme == "digest":
            return replace(request, secrets=tuple(shown), digest=(user, password))
        coded = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = with_header(headers, "Authorization", f"Basic {coded}")
        shown.append(coded)
    else:
        headers = with_header(headers, "Authorization", f"Bearer {secret}")
    return replace(request, url=url, headers=headers, secrets=tuple(shown))


TOO_LARGE = "ask for less, with a limit or a page"
_HINTS: dict[ResultKind, str] = {
    "not_found": "look at the arguments, or choose another API",
    "gone": "choose another API; its provider has taken it away",
    "timed_out": "try again, or raise the setting call_seconds",
    "too_large": TOO_LARGE,
    "not_json": "choose another API if the text is of no use",
    "server_error": "try again later, or choose another API",
    "network_error": "look at the network, or try again later",
    "blocked_by_policy": "only hosts of the catalog are called",
}
_UNSURE: frozenset[ResultKind] = frozenset({"timed_out", "server_error", "network_error"})


def recovery_hint(kind: ResultKind, api: Api, host: str, retry_after: float | None) -> str:
    """Return what to do about an outcome, "" where nothing is wrong."""
    if kind in _UNSURE and api.method.upper() in ("POST", "PATCH"):
        return f"the {api.method.upper()} may have been carried out: look before calling again"
    match kind:
        case "network_error" if api.mcp is not None:
            return f"see whether its server works: toolsrv catalog import mcp:{api.mcp.server}"
        case "gone" if api.mcp is not None:
            return f"read its server again: toolsrv catalog import mcp:{api.mcp.server}"
        case "unauthorized":
            names = key_names(api, host) or (host,)
            name = names[0] if "@" in names[0] else names[-1]
            return f"store a key that the host takes: toolsrv keys set {name}"
        case "bad_arguments":
            return f"look at the arguments: toolsrv describe {api.id}"
        case "not_subscribed":
            return "subscribe on the provider's page, then call again"
        case "rate_limited" if retry_after is not None:
            return f"wait {retry_after:.0f} seconds, then call again"
        case "rate_limited":
            return "wait a while, then call again"
    return _HINTS.get(kind, "")


def subscription_page(api: Api, host: str, known: str) -> str:
    """Return the page where an API is subscribed to."""
    if known.startswith("https://"):
        return known
    if is_rapidapi_host(host):
        return f"https://rapidapi.com/search/{quote(api.tool, safe='')}"
    return f"https://{host}"

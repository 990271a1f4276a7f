"""Which credentials a call needs, and where in the request they go.

RapidAPI's hosts want their two headers; other APIs say it in their OpenAPI security schemes: keys
in a header, the query or a cookie, Basic, Bearer and Digest, and tokens that OAuth 2 client
credentials are exchanged for. A key is found under the name of the one host it belongs to and is
put into requests to that host only; client credentials for a token server at another host are named
by both. A call whose document asks for what cannot be sent is refused. Knows nothing of where keys
are stored; ``oauth`` fetches the tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote_to_bytes

import httpx

from toolsrv_catalogs.hosts import address_fault
from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_registry.security import needs_unsupported, unsupported
from toolsrv_runtime.calls.content import form_text
from toolsrv_runtime.calls.request import ADDRESS_LIMIT, Outgoing, too_long, web_address
from toolsrv_runtime.calls.styles import escaped
from toolsrv_runtime.errors import CredentialsError

Keys = Callable[[str], str]
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
class Authorized:
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

    def with_token(self, token: str) -> Authorized:
        """Return the request with a bearer token."""
        headers = with_header(self.headers, "Authorization", f"Bearer {token}")
        return replace(self, headers=headers, secrets=(*self.secrets, token))


def usable(keys: Keys) -> Keys:
    """Return the keys that can stand in a header; others are as good as none."""

    def found(name: str) -> str:
        secret = keys(name) or ""
        return secret if secret.isascii() and secret.isprintable() else ""

    return found


def no_keys(name: str) -> str:
    """Have no key for any name."""
    del name
    return ""


def on_rapidapi(host: str) -> bool:
    """Return whether a host answers only with RapidAPI's key."""
    return host.endswith(_RAPIDAPI_HOST)


def key_names(api: Api, host: str) -> tuple[str, ...]:
    """Return the names of keys a call would use, in the order they are looked for.

    ``rapidapi`` for RapidAPI's hosts; ``HOST/SCHEME`` and ``HOST`` for an API that asks for
    credentials, ``HOST@TOKEN-HOST`` where they go to another host; none for the others.
    """
    if on_rapidapi(host):
        return (RAPIDAPI,)
    schemes = [scheme for group in api.security for scheme in group]
    elsewhere = (_elsewhere(scheme, api, host) for scheme in schemes)
    names = [*filter(None, elsewhere), *(f"{host}/{scheme.name}" for scheme in schemes)]
    return (*dict.fromkeys(names), host) if schemes else ()


def key_to_set(api: Api, host: str, scheme: SecurityScheme) -> str:
    """Return the name under which the key of a scheme is best kept, ``""`` without a host."""
    if other := _elsewhere(scheme, api, host):
        return other
    several = len({one.name for group in api.security for one in group}) > 1
    return f"{host}/{scheme.name}" if several and host else host


def has_what_it_needs(api: Api, host: str, keys: Keys) -> bool:
    """Whether a call can be made with the keys that there are."""
    if on_rapidapi(host):
        return bool(usable(keys)(RAPIDAPI))
    return not api.security or _alternative(api, host, usable(keys)) is not None


def lacking(api: Api, host: str, keys: Keys) -> str:
    """Return what a call lacks besides arguments, with the command that sets it; ``""`` for nothing.

    Reads after "needs": ``a key that is not set (toolsrv keys set api.example.com)``.
    """
    if has_what_it_needs(api, host, keys):
        return ""
    if fault := needs_unsupported(api):
        return f"{fault}, which is not supported"
    if not (missing := missing_keys(api, host, keys)):
        return "credentials that cannot be sent together"
    many = "keys that are" if len(missing) > 1 else "a key that is"
    return f"{many} not set ({_commands(missing)})"


def missing_keys(api: Api, host: str, keys: Keys) -> tuple[str, ...]:
    """Return the names of the keys to set for the alternative that lacks the fewest."""
    if on_rapidapi(host):
        return (RAPIDAPI,)
    keys = usable(keys)
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


def authorize(api: Api, outgoing: Outgoing, keys: Keys, *, plain: bool = False) -> Authorized:
    """Return the request with the credentials that there are. Blocks while ``keys`` does.

    None go over unencrypted HTTP, unless ``plain`` says that the host is a person's own. A key that
    a document asks for and nobody has set is left to the host to refuse, and noted.

    Raises:
        ArgumentError: with a key in its query the address is too long.
        CredentialsError: what the API asks for is not supported, or is there in part only, or would
            go over unencrypted HTTP.
    """
    host, keys = outgoing.url.host, usable(keys)
    secure = outgoing.url.scheme == "https" or plain
    if on_rapidapi(host):
        return _for_rapidapi(outgoing, keys if secure else no_keys)
    request = Authorized(outgoing.url, dict(outgoing.headers))
    if not api.security:
        return request
    uses = _alternative(api, host, keys)
    if uses is None:
        return replace(request, note=_unsigned(api, host, keys))
    if uses and not secure:
        raise CredentialsError(
            f"{api.id}: {host} is called over unencrypted HTTP, and no key is sent that way",
            hint="for a service of your own: toolsrv config set own_hosts HOST",
        )
    for use in uses:
        try:
            request = _with(request, use)
        except httpx.InvalidURL:  # a key in the query is more than it holds
            raise too_long(api) from None
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
    query = b"&".join([*kept, form_text([(name, escaped(value))])])
    if len(query) + len(str(url.copy_with(query=None))) > ADDRESS_LIMIT:
        raise httpx.InvalidURL("too long")
    return url.copy_with(query=query)


@dataclass(frozen=True, slots=True)
class _Use:
    """A secret for one scheme; ``client`` where it is to be exchanged for a token first."""

    scheme: SecurityScheme
    secret: str = field(repr=False)
    client: ClientCredentials | None = None


def _for_rapidapi(outgoing: Outgoing, keys: Keys) -> Authorized:
    headers = dict(outgoing.headers)
    headers = with_header(headers, "X-RapidAPI-Host", outgoing.url.raw_host.decode("ascii"))
    if key := keys(RAPIDAPI):
        headers = with_header(headers, "X-RapidAPI-Key", key)
        return Authorized(outgoing.url, headers, (key,))
    return Authorized(outgoing.url, headers)


def _alternative(api: Api, host: str, keys: Keys) -> tuple[_Use, ...] | None:
    """Return the first alternative that every key is there for; None where none is."""
    for group in sorted(api.security, key=lambda one: not one):  # no credentials at all comes last
        if any(map(unsupported, group)) or _collide(group):
            continue
        uses = _uses(api, host, group, keys)
        if None not in uses:
            return tuple(use for use in uses if use is not None)
    return None


def _uses(
    api: Api, host: str, group: Iterable[SecurityScheme], keys: Keys
) -> tuple[_Use | None, ...]:
    """Return what each scheme of a group is served with, None where a key is missing.

    The host's own key serves one scheme of a group: one secret is not sent in two places.
    """
    found = {scheme.name: _named_use(api, host, scheme, keys) for scheme in group}
    without = [scheme for scheme in group if found[scheme.name] is None]
    if len(without) == 1:
        found[without[0].name] = _use(api, host, without[0], host, keys(host))
    return tuple(found[scheme.name] for scheme in group)


def _named_use(api: Api, host: str, scheme: SecurityScheme, keys: Keys) -> _Use | None:
    """Return what is kept for this very scheme."""
    if other := _elsewhere(scheme, api, host):
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
    if url.host != host and name != _elsewhere(scheme, api, host):
        return None
    return _Use(scheme, secret, ClientCredentials(url, name, secret, scheme.scopes))


def _elsewhere(scheme: SecurityScheme, api: Api, host: str) -> str:
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


def _collide(group: Iterable[SecurityScheme]) -> bool:
    """Whether two schemes of a group would stand in one place of a request."""
    places = [
        (scheme.place, scheme.key.lower())
        if scheme.kind == "apiKey"
        else ("header", "authorization")
        for scheme in group
    ]
    return len(set(places)) < len(places)


def _unsigned(api: Api, host: str, keys: Keys) -> str:
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
    simple = any(group and all(map(_left_to_the_host, group)) for group in api.security)
    set_already = any(keys(name) for name in key_names(api, host))
    command = _commands(missing)
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


def _left_to_the_host(scheme: SecurityScheme) -> bool:
    """Whether a host is asked without it: documents name keys that their hosts do not insist on."""
    return scheme.kind == "apiKey" or (scheme.kind == "http" and scheme.scheme != "digest")


def secret_form(scheme: SecurityScheme) -> str:
    """Return in words what is kept for a scheme."""
    if scheme.kind == "oauth2" and scheme.token_url:
        return "OAuth 2 client credentials CLIENT_ID:CLIENT_SECRET, or a bearer token"
    if scheme.kind == "apiKey":
        return "a key"
    return f"{scheme.scheme} USER:PASSWORD" if scheme.scheme in _LOGIN else "a bearer token"


def _commands(names: Iterable[str]) -> str:
    return " and ".join(f"toolsrv keys set {name}" for name in names)


def _with(request: Authorized, use: _Use) -> Authorized:
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

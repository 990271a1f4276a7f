"""Which key a call needs, and where in the request it goes.

RapidAPI's hosts want their two headers; other APIs say it in their OpenAPI security schemes: a
key in a header, the query or a cookie, a bearer token, or basic credentials. A key is found under
the name of the one host it belongs to and is put into requests to that host only. Knows nothing of
where keys are stored.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

import httpx

from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_runtime.calls.content import form_text
from toolsrv_runtime.calls.request import ADDRESS_LIMIT, Outgoing, too_long
from toolsrv_runtime.calls.styles import escaped

Keys = Callable[[str], str]
"""From a key's name to the secret, ``""`` when there is none. May block: a keyring may ask a person.

Called in threads.
"""

RAPIDAPI = "rapidapi"
_RAPIDAPI_HOST = ".rapidapi.com"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Authorized:
    """A request with its credentials. ``secrets`` are what must never be shown."""

    url: httpx.URL
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


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
    credentials; none for the others.
    """
    if on_rapidapi(host):
        return (RAPIDAPI,)
    schemes = dict.fromkeys(one.name for group in api.security for one in group)
    return (*(f"{host}/{name}" for name in schemes), host) if schemes else ()


def has_what_it_needs(api: Api, host: str, keys: Keys) -> bool:
    """Whether a call can be made with the keys that there are."""
    if on_rapidapi(host):
        return bool(usable(keys)(RAPIDAPI))
    return not api.security or _alternative(api, host, usable(keys)) is not None


def authorize(api: Api, outgoing: Outgoing, keys: Keys, *, plain: bool = False) -> Authorized:
    """Return the request with the credentials that there are. Blocks while ``keys`` does.

    None go over unencrypted HTTP, unless ``plain`` says that the host is a person's own.

    Raises:
        ArgumentError: with a key in its query the address is too long.
    """
    host, headers, keys = outgoing.url.host, dict(outgoing.headers), usable(keys)
    if outgoing.url.scheme != "https" and not plain:
        keys = no_keys
    if on_rapidapi(host):
        headers["X-RapidAPI-Host"] = outgoing.url.raw_host.decode("ascii")
        if key := keys(RAPIDAPI):
            headers["X-RapidAPI-Key"] = key
            return Authorized(outgoing.url, headers, (key,))
        return Authorized(outgoing.url, headers)
    request = Authorized(outgoing.url, headers)
    for scheme, secret in _alternative(api, host, keys) or ():
        try:
            request = _with(request, scheme, secret)
        except httpx.InvalidURL:  # a key in the query is more than it holds
            raise too_long(api) from None
    return request


def _alternative(api: Api, host: str, keys: Keys) -> tuple[tuple[SecurityScheme, str], ...] | None:
    """Return the first alternative that every key is there for; None where none is."""
    for group in sorted(api.security, key=lambda one: not one):  # no credentials at all comes last
        secrets = [keys(f"{host}/{scheme.name}") or keys(host) for scheme in group]
        if all(secrets) and all(_known(scheme) for scheme in group):
            return tuple(zip(group, secrets, strict=True))
    return None


def _known(scheme: SecurityScheme) -> bool:
    if scheme.kind == "apiKey":
        return bool(scheme.place and _HEADER_NAME.fullmatch(scheme.key))
    return scheme.kind in {"oauth2", "openIdConnect"} or scheme.scheme in {"bearer", "basic"}


def _with(request: Authorized, scheme: SecurityScheme, secret: str) -> Authorized:
    url, headers, shown = request.url, dict(request.headers), [*request.secrets, secret]
    if scheme.kind == "apiKey" and scheme.place == "query":
        url = _with_parameter(url, scheme.key, secret)
    elif scheme.kind == "apiKey" and scheme.place == "cookie":
        before = headers.get("Cookie")
        headers["Cookie"] = "; ".join(one for one in (before, f"{scheme.key}={secret}") if one)
    elif scheme.kind == "apiKey":
        headers[scheme.key] = secret
    elif scheme.scheme == "basic":
        coded = base64.b64encode(secret.encode()).decode()
        headers["Authorization"] = f"Basic {coded}"
        shown += [coded, secret.partition(":")[2]]
    else:
        headers["Authorization"] = f"Bearer {secret}"
    return Authorized(url, headers, tuple(shown))


def _with_parameter(url: httpx.URL, name: str, value: str) -> httpx.URL:
    """Return an address with one more parameter; what stands in its query stays as it is."""
    kept = [
        one
        for one in url.query.split(b"&")
        if one and unquote_to_bytes(one.partition(b"=")[0]) != name.encode()
    ]
    query = b"&".join([*kept, form_text([(name, escaped(value))])])
    if len(query) + len(str(url.copy_with(query=None))) > ADDRESS_LIMIT:
        raise httpx.InvalidURL("too long")
    return url.copy_with(query=query)

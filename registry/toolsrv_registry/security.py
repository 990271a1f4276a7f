"""Which security schemes can be served. Pure; knows nothing of keys or requests."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, SecurityScheme

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header or a cookie (RFC 9110, 5.6.2)."""

CONNECTION_HEADERS = frozenset(
    [
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "upgrade",
        "trailer",
        "expect",
        "accept-encoding",
        "proxy-authorization",
    ]
)
"""Headers that belong to the connection: no parameter, key or setting may set them."""

HTTP_SCHEMES = frozenset({"basic", "bearer", "digest"})
"""The HTTP authentication schemes that are served."""


def unsupported(scheme: SecurityScheme) -> str:
    """Return what a scheme asks for that no call can have, ``""`` where it is supported."""
    match scheme.kind:
        case "mutualTLS":
            return "a client certificate (mutual TLS)"
        case "unknown":
            return f"{scheme.name[:80]!r}, a security scheme that its document does not describe"
        case "http" if scheme.scheme not in HTTP_SCHEMES:
            return f"HTTP authentication of the scheme {scheme.scheme[:80]!r}"
        case "apiKey":
            return _misplaced(scheme)
    return ""


def needs_unsupported(api: Api) -> str:
    """Return what every alternative of an API asks for that no call can have, ``""`` for nothing."""
    faults = [next(filter(None, map(unsupported, group)), "") for group in api.security]
    return faults[0] if faults and all(faults) else ""


def _misplaced(scheme: SecurityScheme) -> str:
    if not scheme.place or not scheme.key:
        return "a key whose place is not said"
    if scheme.place == "query":
        return ""
    if not TOKEN.fullmatch(scheme.key):
        return f"a key in the {scheme.place} {scheme.key[:80]!r}, which is no name"
    if scheme.place == "header" and scheme.key.lower() in CONNECTION_HEADERS:
        return f"a key in the header {scheme.key!r}, which belongs to the connection"
    return ""

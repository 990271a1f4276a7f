"""Which keys a call of an API needs, and where each goes: as a typed shape, and in words.

Says what the catalog says; whether there is a key, and what it is, is not looked at.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from toolsrv.plain import plain
from toolsrv_registry.api import Api, SecurityScheme


class KeyView(BaseModel):
    """A key that a call needs."""

    name: str = Field(description="What `toolsrv keys set` takes; empty: the API has no address.")
    goes: str = Field(description="Where it goes, for example: header X-API-Key.")


KeyViews = tuple[tuple[KeyView, ...], ...]
"""Alternatives, each of keys that are needed together: an empty one is a call without a key."""


def key_views(api: Api) -> KeyViews:
    """Return the keys that an API asks for; ``()`` where it asks for none."""
    from toolsrv_runtime.calls.auth import RAPIDAPI, on_rapidapi

    host = _host(api)
    if on_rapidapi(host):
        return ((KeyView(name=RAPIDAPI, goes="header X-RapidAPI-Key"),),)
    several = len({one.name for group in api.security for one in group}) > 1
    return tuple(
        tuple(
            KeyView(name=plain(f"{host}/{one.name}") if several and host else host, goes=_goes(one))
            for one in group
        )
        for group in api.security
    )


def key_words(keys: KeyViews) -> str:
    """Return the keys on one line, ``""`` where none is asked for."""
    return ", or ".join(" and ".join(_word(one) for one in group) or "none" for group in keys)


def _word(key: KeyView) -> str:
    return f"{key.goes} (toolsrv keys set {key.name})" if key.name else key.goes


def _goes(scheme: SecurityScheme) -> str:
    match scheme.kind:
        case "apiKey":
            return plain(f"{scheme.place} {scheme.key}").strip()
        case "mutualTLS":
            return "client certificate, which is not sent"
        case "http" if scheme.scheme == "basic":
            return "basic USER:PASSWORD"
        case "http" if scheme.scheme != "bearer":
            return plain(f"{scheme.scheme} credentials, which are not sent").strip()
    return "bearer token"


def _host(api: Api) -> str:
    try:
        return urlsplit(api.url).hostname or ""
    except ValueError:
        return ""

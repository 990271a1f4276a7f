"""Which keys a call of an API needs, and where each goes: as a typed shape, and in words.

Says what the catalog says; no key is looked at.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from toolsrv.plain import plain
from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_registry.security import unsupported


class KeyView(BaseModel):
    """A key that a call needs."""

    name: str = Field(
        description="What `toolsrv keys set` takes; empty: the API has no address, or no key serves."
    )
    goes: str = Field(description="Where it goes, for example: header X-API-Key.")


KeyViews = tuple[tuple[KeyView, ...], ...]
"""Alternatives, each of keys that are needed together: an empty one is a call without a key."""


def key_views(api: Api) -> KeyViews:
    """Return the keys that an API asks for; ``()`` where it asks for none."""
    from toolsrv_runtime.calls.auth import RAPIDAPI, key_to_set, on_rapidapi

    host = _host(api)
    if on_rapidapi(host):
        return ((KeyView(name=RAPIDAPI, goes="header X-RapidAPI-Key"),),)
    return tuple(
        tuple(
            KeyView(
                name="" if unsupported(one) else plain(key_to_set(api, host, one)), goes=_goes(one)
            )
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
    from toolsrv_runtime.calls.auth import secret_form

    if fault := unsupported(scheme):
        return plain(f"{fault}, which is not supported: calls that need it are refused")
    if scheme.kind == "apiKey":
        return plain(f"{scheme.place} {scheme.key}").strip()
    return plain(secret_form(scheme).removeprefix("a "))


def _host(api: Api) -> str:
    try:
        return urlsplit(api.url).hostname or ""
    except ValueError:
        return ""

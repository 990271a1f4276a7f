"""Pages about what belongs to the person: keys, which are set and never shown, and settings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolsrv.calls.keys import KeyStore
from toolsrv.plain import plain
from toolsrv.settings import Settings
from toolsrv.threads import in_thread
from toolsrv.web.site import form_of, go, page, show, site_of

PLACES = {"keyring": "system keyring", "environment": "environment", "file": "file of mode 0600"}


@page("/keys")
async def keys(request: Request) -> Response:
    """List for whom there are keys."""
    store = KeyStore(site_of(request).bench.settings.data_dir)
    entries = await in_thread(store.entries)
    name = request.query_params.get("name", "")
    return show(request, "keys.html", "/keys", entries=entries, places=PLACES, name=name)


@page("/keys")
async def set_key(request: Request) -> Response:
    """Keep a key."""
    store, form = KeyStore(site_of(request).bench.settings.data_dir), form_of(request)
    await in_thread(lambda: store.store(form.get("name", ""), form.get("key", "")))
    return go("/keys")


@page("/keys")
async def remove_key(request: Request) -> Response:
    """Forget a key."""
    store, form = KeyStore(site_of(request).bench.settings.data_dir), form_of(request)
    await in_thread(lambda: store.remove(form.get("name", "")))
    return go("/keys")


@page("/settings")
async def settings(request: Request) -> Response:
    """Show each setting of this server with its value and its origin."""
    used = site_of(request).bench.settings
    values = used.model_dump(mode="json", include=set(Settings.model_fields))
    rows = [
        {
            "name": name,
            "value": "" if values[name] is None else plain(str(values[name])),
            "origin": used.origin(name) or "default",
            "meaning": field.description or "",
        }
        for name, field in Settings.model_fields.items()
    ]
    return show(request, "settings.html", "/settings", rows=rows)

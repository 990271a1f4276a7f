"""Pages about catalogs: what there is, how healthy it is, and whether searches find it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolsrv.plain import plain
from toolsrv.threads import in_thread
from toolsrv.views.apis import check_line, check_view
from toolsrv.web.site import Site, form_of, go, page, show, site_of
from toolsrv_registry.errors import NotFoundError

SECTION = "/catalogs"
LISTED = 100
STANDINGS = ("alive", "unknown", "dead")


@page(SECTION)
async def listing(request: Request) -> Response:
    """List the catalogs with what the last checks of their APIs found."""
    site = site_of(request)
    rows, index = await in_thread(lambda: _rows(site))
    return show(request, "catalogs.html", SECTION, catalogs=rows, index=index)


def _rows(site: Site) -> tuple[list[dict[str, Any]], str]:
    registry = site.bench.registry()
    store = registry.store
    rows = []
    for one in store.catalogs():
        checks = store.health.of_catalog(one.name).values()
        rows.append(
            {
                "name": one.name,
                "tools": one.tools,
                "apis": one.apis,
                "enabled": one.enabled,
                "changed": one.changed,
                "source": plain(one.source) or "ships with toolsrv",
                "updated": one.updated_at,
                "health": _health(Counter(str(check.standing) for check in checks), one.apis),
            }
        )
    return rows, str(registry.index.status().state)


def _health(standings: Counter[str], apis: int) -> list[tuple[str, int, float]]:
    """Return name, number and percent of the APIs of each standing, those never checked last."""
    found = [(name, standings[name]) for name in STANDINGS]
    found.append(("never checked", apis - sum(standings.values())))
    return [(name, count, 100 * count / apis if apis else 0.0) for name, count in found]


@page(SECTION)
async def catalog(request: Request) -> Response:
    """Show one catalog: its categories, the verdicts of its checks, the APIs that failed."""
    site, name = site_of(request), request.path_params["name"]
    values = await in_thread(lambda: _catalog(site, name))
    return show(request, "catalog.html", SECTION, **values)


def _catalog(site: Site, name: str) -> dict[str, Any]:
    store = site.bench.registry().store
    store.changed(name)  # raises NotFoundError, with the catalogs that there are
    entry = next((one for one in store.catalogs() if one.name == name), None)
    if entry is None:  # removed since
        raise NotFoundError(f"no catalog {name!r}", hint="see the list of catalogs")
    checks = store.health.of_catalog(name)
    categories: Counter[str] = Counter()
    for tool in store.tools(catalog=name):
        categories[tool.category] += tool.apis
    failed = [
        (api_id, check_line(check_view(one)))
        for api_id, one in checks.items()
        if one.standing == "dead"
    ]
    standings = Counter(str(one.standing) for one in checks.values())
    return {
        "catalog": entry,
        "source": plain(entry.source) or "ships with toolsrv",
        "health": _health(standings, entry.apis),
        "verdicts": Counter(one.verdict.value for one in checks.values()).most_common(),
        "categories": sorted(categories.items()),
        "failed": failed[:LISTED],
        "failed_in_all": len(failed),
        "last": max((one.checked_at for one in checks.values()), default=""),
    }


@page(SECTION)
async def switch(request: Request) -> Response:
    """Let searches and solves find a catalog, or hide it."""
    site, name = site_of(request), request.path_params["name"]
    enabled = form_of(request).get("enabled") == "1"
    await in_thread(lambda: site.bench.registry().store.set_enabled(name, enabled))
    return go("/catalogs")

"""Page of the models: those on the list, the one in use, and downloads with their progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from toolsrv.model_list import ModelList
from toolsrv.model_loading import is_file
from toolsrv.plain import plain
from toolsrv.threads import in_thread
from toolsrv.web.pulls import Pull
from toolsrv.web.site import (
    Site,
    event_stream,
    form_of,
    go,
    page,
    render,
    session_of,
    show,
    site_of,
)

SECTION = "/models"
PAUSE_S = 0.5


@page(SECTION)
async def listing(request: Request) -> Response:
    """List the models, and those that are recommended."""
    from toolsrv_runtime.hub import recommended_models

    site = site_of(request)
    rows = await in_thread(lambda: _rows(site))
    have = {row["name"] for row in rows}
    return show(
        request,
        "models.html",
        SECTION,
        rows=rows,
        recommended=[one for one in recommended_models() if one.name not in have],
        progress=site.pulls.now,
    )


def _rows(site: Site) -> list[dict[str, Any]]:
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL, SHIPPED_MODELS
    from toolsrv_runtime.requirements import format_bytes

    settings = site.bench.settings
    used = settings.model or SHIPPED_MODEL
    place = str(used if isinstance(used, str) else used.absolute())
    found = [(name, str(path), "ships with toolsrv") for name, path in SHIPPED_MODELS.items()]
    found += [
        (one.name, one.path, plain(one.source)) for one in ModelList(settings.data_dir).entries()
    ]
    if place not in {path for _, path, _ in found}:
        found.append(("", place, f"named by {settings.origin('model') or 'the settings'}"))
    return [
        {
            "name": name,
            "path": plain(path),
            "source": source,
            "used": path == place,
            "size": format_bytes(Path(path).stat().st_size) if is_file(Path(path)) else "",
        }
        for name, path, source in found
    ]


@page(SECTION)
async def pull(request: Request) -> Response:
    """Begin to bring a model, or stop the one that comes."""
    site, form = site_of(request), form_of(request)
    if form.get("stop"):
        site.pulls.stop()
    else:
        site.pulls.start(form.get("model", ""))
    return go("/models")


@page(SECTION)
async def events(request: Request) -> Response:
    """Send the progress of a download as server-sent events, until it has ended."""
    site, csrf = site_of(request), session_of(request).csrf
    return event_stream(lambda leaving: _states(site, csrf, leaving))


async def _states(site: Site, csrf: str, leaving: anyio.Event) -> AsyncIterator[ServerSentEvent]:
    sent: Pull | None = None
    while True:
        now = site.pulls.now
        ended = now.state != "working"
        if now != sent:
            html = render("model_progress.html", progress=now, csrf=csrf)
            data = json.dumps({"progress": html})
            yield ServerSentEvent(data, event="end" if ended else "state")
        if ended or leaving.is_set():
            return
        sent = now
        await asyncio.sleep(PAUSE_S)

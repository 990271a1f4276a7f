"""Pages about tasks: start one, follow its tree, answer what it asks, past runs."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, get_args

import anyio
from markupsafe import Markup
from mcp.types import ElicitResult
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from toolsrv import operations
from toolsrv.mcp_server.elicitation import ConsentQuestion, ValueQuestion
from toolsrv.mcp_server.resources import SEARCHED
from toolsrv.model_list import SAMPLING
from toolsrv.plain import compact_json, plain
from toolsrv.runs.queue import Run, RunStatus
from toolsrv.runs.records import RunRecord, record_of, response_text
from toolsrv.threads import in_thread
from toolsrv.trees.live import shown_live
from toolsrv.trees.page import LIVE, picture
from toolsrv.trees.page import page as whole_page
from toolsrv.trees.shown import ShownRun, shown_record
from toolsrv.views.runs import phase, record_view, status_words
from toolsrv.web.forms import MARK, FormField, parse_value, schema_field
from toolsrv.web.site import (
    Site,
    event_stream,
    form_of,
    go,
    offset_of,
    page,
    render,
    session_of,
    show,
    site_of,
)
from toolsrv.web.uploads import download
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.outcome import Evidence

SECTION = "/runs"
LISTED = 50
STATUSES = get_args(RunStatus)
PAUSE_S = 0.4
"""Between two states of a run that are sent: what changes faster is sent once."""
RESPONSE_PAGE = 40_000
"""Characters of a whole response that one page shows."""
EVIDENCE_SHOWN = 2_000


@page(SECTION)
async def listing(request: Request) -> Response:
    """List live and past runs, the newest first."""
    site, given = site_of(request), request.query_params
    words, status = plain(given.get("q", "")), given.get("status", "")
    found = await site.kept.recent(SEARCHED, words)
    if status:
        found = [one for one in found if one.status == status]
    categories = await in_thread(lambda: sorted(site.bench.registry().store.names.categories()))
    return show(
        request,
        "runs.html",
        SECTION,
        runs=found[:LISTED],
        more=max(0, len(found) - LISTED),
        q=words,
        status=status,
        statuses=STATUSES,
        categories=categories,
        task=given.get("task", ""),
    )


@page(SECTION)
async def start(request: Request) -> Response:
    """Start a run and show it."""
    site, form = site_of(request), form_of(request)
    if site.bench.settings.model == SAMPLING:
        raise UsageError(
            "the model is the MCP client's own, and this page has none",
            hint="start the server with a model of this machine or of a server",
        )
    given = {
        "category": form.get("category") or None,
        "max_seconds": _seconds(form.get("max_seconds", "")),
    }
    task, options = await in_thread(
        lambda: operations.prepare(
            site.bench,
            form.get("task", ""),
            given,
            form.get("answer_to", ""),
            form.get("continues", ""),
        )
    )
    run = site.runs.start(task, options)
    site.consents.open(run.stop, run.task)
    return go(f"/runs/{run.id}")


def _seconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 86_400:
        raise UsageError(
            f"{text[:40]!r} is no number of seconds", hint="a number up to 86400 is taken"
        )
    return value


@page(SECTION)
async def run(request: Request) -> Response:
    """Show a run: live, or as it ended."""
    site, run_id = site_of(request), request.path_params["run_id"]
    held = site.kept.remembered(run_id)
    record = None if held is not None and held.live else await site.kept.record(run_id)
    if request.query_params.get("form") == "file":
        return _file(site, held, record)
    parts = _parts(site, held, record, session_of(request).csrf)
    ended = record is not None
    task = plain(record.task if record is not None else held.task if held is not None else "")
    return show(
        request, "run.html", SECTION, run_id=run_id, task=task, ended=ended, parts_html=parts
    )


def _file(site: Site, held: Run | None, record: RunRecord | None) -> Response:
    """Return the page of `toolsrv run show --html`, to keep; it has a policy of its own."""
    shown = _shown(site, held, record)
    name = f"{shown.name}.html"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return HTMLResponse(whole_page(shown), headers=headers)


def _shown(site: Site, held: Run | None, record: RunRecord | None) -> ShownRun:
    if record is not None:
        return shown_record(record)
    assert held is not None  # noqa: S101 - for the type checker: one of the two is there
    return shown_live(held, site.kept.position(held))


def _parts(site: Site, held: Run | None, record: RunRecord | None, csrf: str) -> dict[str, Markup]:
    """Return the parts of a run's page as HTML, by the id of the element that holds them."""
    shown = _shown(site, held, record)
    tree = picture(shown)
    values: dict[str, Any] = {
        "csrf": csrf,
        "run": shown,
        "live": shown.status in LIVE,
        "phase": phase(held, site.kept.position(held)) if held is not None and held.live else "",
        "question": _question(site, held),
        "tree": Markup(tree),  # noqa: S704 - trees.page escapes all that it is made of
        "evidence": [_evidence(one) for one in _evidences(record)],
        "record": record,
        "view": record_view(record) if record is not None else None,
    }
    names = ("state", "facts", "question", "answer", "tree", "evidence")
    return {name: Markup(render(f"run_{name}.html", **values)) for name in names}  # noqa: S704 - templates escape


def _evidences(record: RunRecord | None) -> tuple[Evidence, ...]:
    return record.outcome.evidence if record is not None and record.outcome is not None else ()


def _evidence(one: Evidence) -> dict[str, Any]:
    text = response_text(one)
    return {
        "node": one.node,
        "api_id": one.api_id,
        "arguments": compact_json(one.arguments),
        "status": status_words(one),
        "ok": one.ok,
        "used": one.used,
        "source": one.source,
        "seconds": one.seconds,
        "error": plain(one.error),
        "text": plain(text[:EVIDENCE_SHOWN]),
        "characters": one.characters or len(text),
        "cut": (one.characters or len(text)) > EVIDENCE_SHOWN,
        "files": one.files,
    }


def _question(site: Site, held: Run | None) -> dict[str, Any] | None:
    """Return what a run waits to be answered, None where that is nothing."""
    asked = None if held is None else site.consents.question(held.stop)
    if held is None or asked is None or not asked.open:
        return None
    field = _value_field(asked) if isinstance(asked, ValueQuestion) else None
    return {"run_id": held.id, "token": asked.token, "text": asked.text, "field": field}


def _value_field(asked: ValueQuestion) -> FormField:
    wanted = asked.wanted
    return schema_field(wanted.parameter, wanted.json_schema, required=True)


@page(SECTION)
async def answer(request: Request) -> Response:
    """Give a run the answer to its question."""
    site, form = site_of(request), form_of(request)
    held = site.runs.get(request.path_params["run_id"])
    asked = site.consents.question(held.stop)
    if asked is None or not asked.open or asked.token != form.get("question"):
        raise UsageError("this question is not open any more", hint="look at the run again")
    asked.answer(_reply(asked, form))
    return go(f"/runs/{held.id}")


def _reply(asked: ConsentQuestion | ValueQuestion, form: Mapping[str, str]) -> ElicitResult:
    if form.get("say") != "yes":
        return ElicitResult(action="decline")
    if isinstance(asked, ConsentQuestion):
        return ElicitResult(action="accept", content={"ok": True})
    field, schema = _value_field(asked), asked.wanted.json_schema
    typed = field.model_copy(update={"value": form.get(MARK + field.name, "")})
    if not typed.value.strip():
        raise UsageError(f"{field.name}: no value was given", hint="type one, or leave it out")
    value = parse_value(typed, schema)
    return ElicitResult.model_construct(action="accept", content={field.name: value})


@page(SECTION)
async def cancel(request: Request) -> Response:
    """Stop a run at its next token."""
    held = site_of(request).runs.cancel(request.path_params["run_id"])
    return go(f"/runs/{held.id}")


@page(SECTION)
async def response(request: Request) -> Response:
    """Show the whole response of a call, a page at a time."""
    run_id, node = request.path_params["run_id"], request.path_params["node"]
    offset = offset_of(request)
    found = await site_of(request).kept.response(run_id, node, offset, RESPONSE_PAGE)
    return show(request, "response.html", SECTION, found=found, text=plain(found.text))


@page(SECTION)
async def kept_file(request: Request) -> Response:
    """Return a file that a call of a run brought."""
    site, given = site_of(request), request.path_params
    made = (await site.kept.record(given["run_id"])).evidence(given["node"])
    files = made.files if made is not None else ()
    kept = files[given["number"]] if given["number"] < len(files) else None
    return download(site.bench.settings.data_dir, kept)


@page(SECTION)
async def events(request: Request) -> Response:
    """Send the states of a live run as server-sent events, until it has ended."""
    site = site_of(request)
    held = site.runs.get(request.path_params["run_id"])
    csrf = session_of(request).csrf
    return event_stream(lambda leaving: _states(site, held, csrf, leaving))


async def _states(
    site: Site, held: Run, csrf: str, leaving: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    sent: dict[str, Markup] = {}
    while True:
        version, ended = held.version, not held.live
        parts = _parts(site, held, record_of(held) if ended else None, csrf)
        changed = {name: html for name, html in parts.items() if sent.get(name) != html}
        sent = parts
        yield ServerSentEvent(json.dumps(changed), event="end" if ended else "state")
        if ended:
            return
        while not await held.changed(version, PAUSE_S):
            if leaving.is_set():
                return
        await asyncio.sleep(PAUSE_S)

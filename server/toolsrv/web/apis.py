"""Pages about APIs: search, one API with the form of its arguments, a call and its consent."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolsrv import operations
from toolsrv.calls.consent import question
from toolsrv.plain import plain
from toolsrv.threads import in_thread
from toolsrv.views.apis import (
    ApiView,
    CallView,
    allowed_words,
    call_line,
    call_view,
    check_line,
    describe_keys,
    kept_view,
)
from toolsrv.web.forms import form_fields, parse_arguments, typed_example
from toolsrv.web.site import Site, form_of, offset_of, page, session_of, show, site_of
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.result import CallResult, Consent, declined_result

PAGE_HITS = 10
SHOWN = 20_000
"""Characters of a response that stand on the page."""
MOST_KEPT = 20
SECTION = "/search"


@dataclass(frozen=True)
class WaitingCall:
    """A call that its person has not said yes to; ``token`` names it in the form."""

    arguments: dict[str, Any]
    typed: dict[str, str]
    asked: CallResult
    consent: Consent
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))


@page(SECTION)
async def search(request: Request) -> Response:
    """Search the catalog."""
    site, given = site_of(request), request.query_params
    text = given.get("q", "").strip()
    chosen: dict[str, Any] = {name: given.get(name, "") for name in ("category", "catalog")}
    chosen |= {name: given.get(name) == "1" for name in ("callable_only", "include_dead")}
    offset = offset_of(request)
    places = await in_thread(lambda: _places(site))
    view = None
    if text:
        view = await site.searches.in_thread(
            lambda haste: operations.search(
                site.bench,
                text,
                limit=PAGE_HITS,
                offset=offset,
                category=chosen["category"] or None,
                catalog=chosen["catalog"] or None,
                detail="summary",
                callable_only=chosen["callable_only"],
                include_dead=chosen["include_dead"],
                without_matcher=haste,
            )
        )
    told: dict[str, Any] = {"q": text, "view": view, "page_hits": PAGE_HITS}
    return show(request, "search.html", SECTION, **told, **places, **chosen)


def _places(site: Site) -> dict[str, Any]:
    store = site.bench.registry().store
    return {
        "categories": sorted(store.names.categories()),
        "catalogs": [one.name for one in store.catalogs() if one.enabled],
    }


@page(SECTION)
async def api(request: Request) -> Response:
    """Show one API and the form of its arguments."""
    view = await _described(site_of(request), request.query_params.get("id", ""))
    typed = typed_example(view) if request.query_params.get("example") else {}
    return _api_page(request, view, typed)


@page(SECTION)
async def call(request: Request) -> Response:
    """Make a call, or show what a person has to say yes to first."""
    site, typed = site_of(request), dict(form_of(request))
    view = await _described(site, typed.get("id", ""))
    try:
        arguments = parse_arguments(view, typed)
        async with site.calls.place():
            result = await operations.call(site.bench, view.id, arguments)
    except UsageError as error:
        problem = f"{plain(error.message)} ({plain(error.hint)})"
        return _api_page(request, view, typed, http_status=400, problem=problem)
    return _called(request, view, typed, arguments, result)


@page(SECTION)
async def consent(request: Request) -> Response:
    """Make the call that a person has said yes to, and no other; or note that they said no."""
    site, form = site_of(request), form_of(request)
    waiting: WaitingCall | None = session_of(request).kept.pop(form.get("call", ""), None)
    if waiting is None:
        raise UsageError("this call does not wait for consent any more", hint="call the API again")
    view = await _described(site, waiting.consent.api_id)
    if form.get("say") != "yes":
        result = declined_result(waiting.asked)
        return _called(request, view, waiting.typed, waiting.arguments, result)

    async def allowed(wanted: Consent) -> bool | None:
        return True if waiting.consent.covers(wanted) else None

    async with site.calls.place():
        result = await operations.call(site.bench, view.id, waiting.arguments, confirm=allowed)
    return _called(request, view, waiting.typed, waiting.arguments, result)


def _called(
    request: Request,
    view: ApiView,
    typed: dict[str, str],
    arguments: dict[str, Any],
    result: CallResult,
) -> Response:
    """Return the page of an API with what came of a call, or with the question about it."""
    if result.kind == "needs_consent" and result.consent is not None:
        kept = session_of(request).kept
        waiting = WaitingCall(arguments, typed, result, result.consent)
        kept[waiting.token] = waiting
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
        asked = {"token": waiting.token, "text": question(result.consent)}
        return _api_page(request, view, typed, asked=asked)
    files = tuple(map(kept_view, result.kept))
    shown = call_view(result, None, files)
    return _api_page(request, view, typed, result=shown, response=response_parts(shown))


def response_parts(view: CallView) -> dict[str, Any]:
    """Return what the page shows of a response, and how long the whole is as text."""
    if view.response in (None, ""):
        return {"text": "", "characters": 0, "cut": False}
    text = view.response
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, indent=2, default=str)
    return {"text": plain(text[:SHOWN]), "characters": len(text), "cut": len(text) > SHOWN}


async def _described(site: Site, api_id: str) -> ApiView:
    return await in_thread(lambda: operations.describe(site.bench, api_id, schema=True))


def _api_page(
    request: Request, view: ApiView, typed: dict[str, str], *, http_status: int = 200, **told: Any
) -> Response:
    facts = {
        "call": call_line(view),
        "key": describe_keys(view.keys),
        "now": view.now.words if view.now is not None else "",
        "terms": view.now.terms.words if view.now is not None else "",
        "last check": check_line(view.check) if view.check is not None else "never checked",
    }
    values: dict[str, Any] = {"result": None, "asked": None, "response": None, "problem": ""}
    return show(
        request,
        "api.html",
        SECTION,
        http_status=http_status,
        api=view,
        fields=form_fields(view, typed),
        allowed={one.name: allowed_words(one) for one in view.parameters},
        facts={name: text for name, text in facts.items() if text},
        key_names=sorted({one.name for group in view.keys for one in group if one.name}),
        **(values | told),
    )

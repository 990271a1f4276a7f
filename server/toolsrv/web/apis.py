"""Pages about APIs: search, one API with the form of its arguments, a call and its consent."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
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
from toolsrv.web.forms import FILE_MARK, form_fields, parse_arguments, typed_example
from toolsrv.web.security import Waiting
from toolsrv.web.site import Site, files_of, form_of, offset_of, page, session_of, show, site_of
from toolsrv.web.uploads import (
    MOST_KNOWN,
    MOST_UPLOAD,
    Uploads,
    chosen_files,
    close_files,
    download,
    every_file,
    file_arguments,
    file_name,
)
from toolsrv_registry.errors import BusyError, UsageError
from toolsrv_runtime.calls.result import AskConsent, CallResult, Consent, declined_result
from toolsrv_runtime.calls.serialization import FILE_LIMIT, abbreviate_data_urls

PAGE_HITS = 10
SHOWN = 20_000
"""Characters of a response that stand on the page."""
MOST_KEPT = 20
MOST_KEPT_BYTES = 2 * MOST_UPLOAD
"""Of the files of calls that wait for consent; the oldest calls go first."""
CONSENT_S = 600.0
"""Seconds that a call waits for consent."""
SECTION = "/search"


@dataclass(frozen=True)
class WaitingCall:
    """A call that its person has not said yes to; ``token`` names it in the form.

    Its files stay spooled: ``asked`` and ``consent`` have their size and digest.
    """

    arguments: dict[str, Any]
    typed: dict[str, str]
    asked: CallResult
    consent: Consent
    files: Uploads = field(default_factory=dict)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @property
    def bytes(self) -> int:
        """Of its files."""
        return sum(one.size or 0 for one in every_file(self.files))

    def close(self) -> None:
        """Remove its files. Idempotent."""
        close_files(self.files)


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
    site, typed, sent = site_of(request), dict(form_of(request)), files_of(request)
    view = await _described(site, typed.get("id", ""))
    try:
        arguments = parse_arguments(view, typed)
        files = chosen_files(form_fields(view, typed), sent)
        result = await _made(site, view, arguments, files)
    except UsageError as error:
        problem = f"{plain(error.message)} ({plain(error.hint)})"
        return _api_page(request, view, typed, http_status=400, problem=problem)
    for name, several in files.items():
        typed[FILE_MARK + name] = ", ".join(map(file_name, several))
    if result.kind == "needs_consent" and result.consent is not None:
        wanted = await in_thread(partial(_abbreviated, result.consent))
        shown = await in_thread(partial(abbreviate_data_urls, result.arguments))
        asked = result.model_copy(update={"arguments": shown})
        waiting = WaitingCall(arguments, typed, asked, wanted, dict(files))
        sent.clear()  # they are the waiting call's now
        return _ask(request, view, waiting)
    return _called(request, view, typed, result)


async def _made(
    site: Site,
    view: ApiView,
    arguments: dict[str, Any],
    files: Uploads,
    confirm: AskConsent | None = None,
) -> CallResult:
    """Make a call with its files, which are in memory for as long as it takes."""
    fields = form_fields(view)
    async with site.calls.place():
        given = arguments | await in_thread(lambda: file_arguments(fields, files))
        return await operations.call(site.bench, view.id, given, confirm=confirm)


def _abbreviated(consent: Consent) -> Consent:
    """Return a consent in which files are their size and digest."""
    return consent.model_copy(update={"arguments": abbreviate_data_urls(consent.arguments)})


@page(SECTION)
async def consent(request: Request) -> Response:
    """Make the call that a person has said yes to, and no other; or note that they said no."""
    site, form = site_of(request), form_of(request)
    waiting = session_of(request).kept.pop(form.get("call", ""), None)
    if not isinstance(waiting, WaitingCall):
        raise UsageError("this call does not wait for consent any more", hint="call the API again")
    try:
        view = await _described(site, waiting.consent.api_id)
        if form.get("say") != "yes":
            waiting.close()
            return _called(request, view, waiting.typed, declined_result(waiting.asked))

        async def allowed(wanted: Consent) -> bool | None:
            shown = await in_thread(partial(_abbreviated, wanted))
            return True if waiting.consent.covers(shown) else None

        result = await _made(site, view, waiting.arguments, waiting.files, allowed)
    except BusyError:  # nothing was called: the same yes may be said again
        session_of(request).kept[waiting.token] = waiting
        raise
    except BaseException:
        waiting.close()
        raise
    waiting.close()
    return _called(request, view, waiting.typed, result)


def _ask(request: Request, view: ApiView, waiting: WaitingCall) -> Response:
    """Return the page of an API with the question about a call, which waits from now on."""
    kept = session_of(request).kept
    kept[waiting.token] = waiting
    while len(kept) > 1 and (len(kept) > MOST_KEPT or _kept_bytes(kept.values()) > MOST_KEPT_BYTES):
        kept.popitem(last=False)[1].close()

    def forget() -> None:
        if (late := kept.pop(waiting.token, None)) is not None:
            late.close()

    asyncio.get_running_loop().call_later(CONSENT_S, forget)
    asked = {"token": waiting.token, "text": question(waiting.consent)}
    return _api_page(request, view, waiting.typed, asked=asked)


def _kept_bytes(kept: Iterable[Waiting]) -> int:
    return sum(one.bytes for one in kept if isinstance(one, WaitingCall))


def _called(request: Request, view: ApiView, typed: dict[str, str], result: CallResult) -> Response:
    """Return the page of an API with what came of a call."""
    known, downloads = session_of(request).files, []
    for one in result.kept:
        handle = secrets.token_urlsafe(16)
        known[handle] = one
        downloads.append((handle, kept_view(one)))
    while len(known) > MOST_KNOWN:
        known.popitem(last=False)
    shown = call_view(result, None, tuple(file for _, file in downloads))
    parts = response_parts(shown)
    return _api_page(request, view, typed, result=shown, response=parts, downloads=downloads)


@page(SECTION)
async def kept_file(request: Request) -> Response:
    """Return a file that a call made in this login brought."""
    kept = session_of(request).files.get(request.path_params["handle"])
    return download(site_of(request).bench.settings.data_dir, kept)


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
    values: dict[str, Any] = {
        "result": None,
        "asked": None,
        "response": None,
        "problem": "",
        "downloads": (),
    }
    return show(
        request,
        "api.html",
        SECTION,
        http_status=http_status,
        api=view,
        fields=form_fields(view, typed),
        most_file=FILE_LIMIT,
        most_files=MOST_UPLOAD,
        allowed={one.name: allowed_words(one) for one in view.parameters},
        facts={name: text for name, text in facts.items() if text},
        key_names=sorted({one.name for group in view.keys for one in group if one.name}),
        **(values | told),
    )

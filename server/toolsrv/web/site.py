"""What the handlers of the web page share: the parts of the server, templates, errors as pages."""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import anyio
import jinja2
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import toolsrv
from toolsrv import faults
from toolsrv.plain import plain
from toolsrv.web.security import PREFIX, Session, Sessions
from toolsrv_registry.errors import BusyError, NotFoundError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.mcp_server.admission import Admission
    from toolsrv.mcp_server.elicitation import RunConsents
    from toolsrv.mcp_server.resources import EndedRuns
    from toolsrv.runs.queue import Runs
    from toolsrv.web.pulls import ModelPulls
    from toolsrv.web.uploads import Uploads
    from toolsrv.workbench import Workbench

log = logging.getLogger(__name__)
LEAVING_S = 0.8
"""Seconds that a stream gets to end where the server ends."""
Handler = Callable[[Request], Awaitable[Response]]
SECTIONS = (
    ("/", "Home"),
    ("/search", "APIs"),
    ("/runs", "Tasks"),
    ("/catalogs", "Catalogs"),
    ("/models", "Models"),
    ("/keys", "Keys"),
    ("/settings", "Settings"),
)
_STATUS: tuple[tuple[type[ToolsrvError], int], ...] = (
    (NotFoundError, 404),
    (UsageError, 400),
    (BusyError, 503),
)


@dataclass(frozen=True)
class Site:
    """The parts of one server that the page shows and uses."""

    bench: Workbench
    runs: Runs
    kept: EndedRuns
    consents: RunConsents
    searches: Admission
    calls: Admission
    sessions: Sessions
    pulls: ModelPulls
    cookie: str


def site_of(request: Request) -> Site:
    """Return the site that a request belongs to."""
    site: Site = request.app.state.site
    return site


def session_of(request: Request) -> Session:
    """Return the session of a request that the gate has let pass."""
    session: Session = request.state.session
    return session


def form_of(request: Request) -> Mapping[str, str]:
    """Return the form of a POST."""
    form: Mapping[str, str] = request.state.form
    return form


def files_of(request: Request) -> Uploads:
    """Return the files of a POST; they are closed with it, except those that are taken out."""
    files: Uploads = request.state.files
    return files


@functools.cache
def templates() -> jinja2.Environment:
    """Return the templates; everything that they are given is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("toolsrv.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(ui=PREFIX, sections=SECTIONS, version=toolsrv.__version__)
    environment.filters["plain"] = plain
    environment.filters["moment"] = lambda text: str(text)[:16].replace("T", " ")
    return environment


def render(name: str, /, **values: Any) -> str:
    """Return a template with values."""
    return templates().get_template(name).render(**values)


def show(
    request: Request, name: str, section: str, /, *, http_status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a page of the site; ``section`` is the path of the part that it belongs to."""
    session: Session | None = getattr(request.state, "session", None)
    csrf = session.csrf if session is not None else ""
    text = render(name, section=section, csrf=csrf, **values)
    return HTMLResponse(text, http_status)


def go(path: str) -> RedirectResponse:
    """Return the way to another page, after a POST."""
    return RedirectResponse(f"{PREFIX}{path}", 303)


def event_stream(states: Callable[[anyio.Event], AsyncIterator[ServerSentEvent]]) -> Response:
    """Return server-sent events; ``states`` is given what is set where the server ends."""
    leaving = anyio.Event()
    return EventSourceResponse(
        states(leaving), shutdown_event=leaving, shutdown_grace_period=LEAVING_S
    )


def page(section: str) -> Callable[[Handler], Handler]:
    """Decorate a handler: an error that it raises becomes a page with what to do next."""

    def decorated(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except ToolsrvError as error:
                return error_page(request, section, error)
            except Exception as error:  # noqa: BLE001 - the error handler of the page
                return _fault_page(request, section, error)

        return handled

    return decorated


def _fault_page(request: Request, section: str, error: Exception) -> HTMLResponse:
    """Return the page of what nobody expected; its details are in a file of the data folder."""
    line = faults.summary(error, site_of(request).bench.settings.data_dir)
    log.error(line)
    return show(request, "error.html", section, http_status=500, message=line, hint="")


def error_page(request: Request, section: str, error: ToolsrvError) -> HTMLResponse:
    """Return the page of an error."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    message, hint = plain(error.message), plain(error.hint)
    return show(request, "error.html", section, http_status=status, message=message, hint=hint)


def offset_of(request: Request) -> int:
    """Return the offset that a request names, 0 where that is no number."""
    text = request.query_params.get("offset", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


@functools.cache
def static(name: str) -> tuple[bytes, str] | None:
    """Return a file of the page and its media type, None where there is no such file."""
    if name not in _FILES:
        return None
    package, file, media = _FILES[name]
    return resources.files(package).joinpath(file).read_bytes(), media


_FILES = {
    "page.css": ("toolsrv.web", "static/page.css", "text/css"),
    "page.js": ("toolsrv.web", "static/page.js", "text/javascript"),
    "icon.svg": ("toolsrv.web", "static/icon.svg", "image/svg+xml"),
    "tree.css": ("toolsrv.trees", "tree.css", "text/css"),
    "tree.js": ("toolsrv.trees", "page.js", "text/javascript"),
}

"""The web page as an ASGI application, and the way to it beside the MCP endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from toolsrv.web import apis, catalogs, models, owner, runs
from toolsrv.web.pulls import ModelPulls
from toolsrv.web.security import CALL, LOGIN, PREFIX, Gate, Session, Sessions
from toolsrv.web.site import Site, form_of, go, page, session_of, show, site_of, static

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolsrv.mcp_server.server import ToolsrvServer
    from toolsrv.workbench import Workbench

RECENT = 8


class WebPage:
    """ASGI middleware: the web page below ``/ui``; everything else is handed on.

    ``login`` is the path of the link that opens the page, with the code that is taken once.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: ToolsrvServer,
        bench: Workbench,
        *,
        token: str,
        port: int,
        allowed: TransportSecuritySettings,
    ) -> None:
        """Take what the page is shown beside, and the parts of the server that it uses."""
        self._app = app
        sessions = Sessions(token)
        site = Site(
            bench=bench,
            runs=server.runs,
            kept=server.kept,
            consents=server.consents,
            searches=server.searches,
            calls=server.calls,
            sessions=sessions,
            pulls=ModelPulls(bench.settings.data_dir),
            cookie=f"toolsrv-{port}",  # cookies know no ports: two servers keep apart by the name
        )
        inner = Starlette(routes=_routes())
        inner.state.site = site
        self._page = Gate(inner, sessions, allowed, site.cookie)
        self.login = f"{LOGIN}?code={sessions.code}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show the page, or hand the request on."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path == PREFIX or path.startswith(f"{PREFIX}/"):
            await self._page(scope, receive, send)
        elif path == "/" and _is_browser(scope):
            await RedirectResponse(f"{PREFIX}/", 307)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_browser(scope: Scope) -> bool:
    """Whether a person opens the address in a browser."""
    headers = dict(scope["headers"])
    accepts = headers.get(b"accept", b"").startswith(b"text/html")
    return scope["method"] == "GET" and accepts and b"authorization" not in headers


def _routes() -> list[Route]:
    return [
        Route(PREFIX, _to_home),
        Route(f"{PREFIX}/", home),
        Route(LOGIN, login, methods=["GET", "POST"]),
        Route(f"{PREFIX}/logout", logout, methods=["POST"]),
        Route(f"{PREFIX}/static/{{name}}", static_file),
        Route(f"{PREFIX}/search", apis.search),
        Route(f"{PREFIX}/api", apis.api),
        Route(CALL, apis.call, methods=["POST"]),
        Route(f"{PREFIX}/consent", apis.consent, methods=["POST"]),
        Route(f"{PREFIX}/files/{{handle}}", apis.kept_file),
        Route(f"{PREFIX}/runs", runs.listing),
        Route(f"{PREFIX}/runs", runs.start, methods=["POST"]),
        Route(f"{PREFIX}/runs/{{run_id}}", runs.run),
        Route(f"{PREFIX}/runs/{{run_id}}/events", runs.events),
        Route(f"{PREFIX}/runs/{{run_id}}/cancel", runs.cancel, methods=["POST"]),
        Route(f"{PREFIX}/runs/{{run_id}}/answer", runs.answer, methods=["POST"]),
        Route(f"{PREFIX}/runs/{{run_id}}/responses/{{node:int}}", runs.response),
        Route(f"{PREFIX}/runs/{{run_id}}/files/{{node:int}}/{{number:int}}", runs.kept_file),
        Route(f"{PREFIX}/catalogs", catalogs.listing),
        Route(f"{PREFIX}/catalogs/{{name}}", catalogs.catalog),
        Route(f"{PREFIX}/catalogs/{{name}}/switch", catalogs.switch, methods=["POST"]),
        Route(f"{PREFIX}/models", models.listing),
        Route(f"{PREFIX}/models", models.pull, methods=["POST"]),
        Route(f"{PREFIX}/models/events", models.events),
        Route(f"{PREFIX}/keys", owner.keys),
        Route(f"{PREFIX}/keys", owner.set_key, methods=["POST"]),
        Route(f"{PREFIX}/keys/remove", owner.remove_key, methods=["POST"]),
        Route(f"{PREFIX}/settings", owner.settings),
    ]


async def _to_home(_: Request) -> Response:
    return go("/")


async def static_file(request: Request) -> Response:
    """Return a style or script."""
    found = static(request.path_params["name"])
    if found is None:
        return PlainTextResponse("there is nothing here", 404)
    return Response(found[0], media_type=found[1], headers={"cache-control": "no-cache"})


@page("/")
async def home(request: Request) -> Response:
    """Show where to begin, and what was done last."""
    recent = await site_of(request).kept.recent(RECENT)
    return show(request, "home.html", "/", runs=recent)


@page("/")
async def login(request: Request) -> Response:
    """Exchange the link's code, or the access token, for a session."""
    site = site_of(request)
    code = request.query_params.get("code", "")
    if request.method == "POST":
        session = site.sessions.by_token(form_of(request).get("token", ""))
        if session is None:
            return _ask_token(request, "That is not the access token.")
        return _logged_in(go("/"), site, session)
    if code:
        session = site.sessions.by_code(code)
        if session is None and request.state.session is None:
            return _ask_token(request, "This link was used already, or is of another start.")
        # A page, not a redirect: it is this site that then asks for the next page, so that the
        # cookie goes with it wherever the link was followed from.
        answer = show(request, "welcome.html", "/")
        return answer if session is None else _logged_in(answer, site, session)
    return go("/") if request.state.session is not None else _ask_token(request, "")


def _ask_token(request: Request, problem: str) -> Response:
    return show(request, "login.html", "/", http_status=401 if problem else 200, problem=problem)


def _logged_in(answer: Response, site: Site, session: Session) -> Response:
    answer.set_cookie(site.cookie, session.id, path=PREFIX, httponly=True, samesite="strict")
    return answer


async def logout(request: Request) -> Response:
    """End the session."""
    site = site_of(request)
    site.sessions.end(session_of(request))
    answer = go("/login")
    answer.delete_cookie(site.cookie, path=PREFIX, httponly=True, samesite="strict")
    return answer

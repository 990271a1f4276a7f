"""The offline catalog as an ASGI application: one route per API, one domain module per tool.

A tool's domain module (and with it the library it stands on) is imported on the tool's first
request. Everything a caller can do wrong is answered in JSON, ``{"error": …}``: 422 for a
parameter that is missing, unknown or malformed, 404 for a path or a thing that does not exist.
Knows nothing about the domains themselves.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolsrv_catalogs.offline.descriptions import load_offline_catalog
from toolsrv_catalogs.offline.endpoint import Endpoint, Endpoints
from toolsrv_registry.errors import NotFoundError, UsageError

_log = logging.getLogger(__name__)


def create_app() -> Starlette:
    """Return the application; it holds no state and needs no startup."""
    routes = []
    for api in load_offline_catalog().apis:
        path = urlsplit(api.url).path
        routes.append(Route(path, _responder(path), methods=[api.method]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
    # A path with one slash too many is unknown, and said to be so in JSON.
    app.router.redirect_slashes = False
    return app


def find_endpoint(path: str) -> Endpoint:
    """Return the endpoint declared for a URL path such as ``/unit_converter/convert``.

    Imports the tool's domain module.
    """
    module_name, _, below = path.lstrip("/").partition("/")
    module = importlib.import_module(f"toolsrv_catalogs.offline.domains.{module_name}")
    tool: Endpoints = module.tool
    return tool.endpoints[f"/{below}"]


def _responder(path: str) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        query = [*request.path_params.items(), *request.query_params.multi_items()]
        # A thread, because a first import or a search over all cities takes a while.
        status, body = await run_in_threadpool(_answer, path, query)
        return JSONResponse(body, status_code=status)

    return respond


def _answer(path: str, query: list[tuple[str, str]]) -> tuple[int, dict[str, Any]]:
    try:
        return 200, find_endpoint(path).answer(query)
    except NotFoundError as error:
        return 404, {"error": error.message}
    except UsageError as error:
        return 422, {"error": error.message}
    except Exception:  # noqa: BLE001 - the outermost rim, see below
        # The outermost rim: a defect of ours must reach the caller as JSON and us as a log.
        _log.exception("offline API %s failed", path)
        return 500, {"error": f"the offline API {path} failed; this is a defect in it"}


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path[:200]
    message = f"no API at {path!r}" if status == 404 else f"{request.method} is not served here"
    return JSONResponse({"error": message}, status_code=status)

"""The tree of a run inside the client: an MCP App (``io.modelcontextprotocol/ui``).

The view is one ``ui://`` resource; what it shows is the page of ``toolsrv run show --html``, read as a
resource of the run while the run works and once more when it has ended. Clients without such views
have the text of the tools.
"""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.apps import Apps, ResourceCsp

from toolsrv.mcp_server.resources import EndedRuns, not_found
from toolsrv.trees.live import shown_live
from toolsrv.trees.page import app, page
from toolsrv.trees.shown import shown_record
from toolsrv_registry.errors import NotFoundError

APP_URI = "ui://toolsrv/run.html"
PAGE_URI = "toolsrv://runs/{run_id}/page"
APP_TOOLS = frozenset({"solve_task", "show_run"})
"""Tools whose calls are shown with the view."""


def app_meta(tool: str) -> dict[str, Any] | None:
    """Return what a tool's entry says of its view; None where it has none."""
    return {"ui": {"resourceUri": APP_URI}} if tool in APP_TOOLS else None


def run_app() -> Apps:
    """Return the extension with the view."""
    apps = Apps()
    apps.add_html_resource(
        APP_URI,
        app(),
        name="run-view",
        title="Tree of a run",
        description="The search tree of a run, live while it works.",
        csp=ResourceCsp(connect_domains=[], resource_domains=[]),
        prefers_border=True,
    )
    return apps


def add_pages(server: MCPServer[Any], kept: EndedRuns) -> None:
    """Register the resource template of runs' pages."""

    async def run_page(run_id: str) -> str:
        """Return the page of a run as it is now."""
        run = kept.remembered(run_id)
        if run is not None and run.live:
            return page(shown_live(run, kept.position(run)))
        try:
            return page(shown_record(await kept.record(run_id)))
        except NotFoundError as error:
            raise not_found(error) from error

    server.resource(
        PAGE_URI,
        name="run-page",
        title="A run as a page",
        description="The tree of a run as one HTML file, as far as it is.",
        mime_type="text/html",
    )(run_page)

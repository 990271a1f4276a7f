"""``toolsrv catalog``: the catalogs. Its commands are imported only when they are called."""

from __future__ import annotations

import click

from toolsrv.cli.lazy import LazyGroup
from toolsrv.cli.options import example

COMMANDS = {
    "import": ("toolsrv.cli.catalog_import:import_", "Take the APIs of a folder, archive or file."),
    "pull": ("toolsrv.cli.catalog_pull:pull", "Bring a published catalog, and import it."),
    "refresh": ("toolsrv.cli.catalog_refresh:refresh", "Read the source of a catalog again."),
    "list": ("toolsrv.cli.catalog_view:list_", "List the catalogs."),
    "show": ("toolsrv.cli.catalog_view:show", "Show the APIs of a catalog, or of all."),
    "inspect": ("toolsrv.cli.catalog_view:inspect", "Say what a catalog is and holds."),
    "stats": ("toolsrv.cli.catalog_view:stats", "Count tools and APIs per category."),
    "diff": ("toolsrv.cli.catalog_change:diff", "Show the changes that wait to be accepted."),
    "accept": ("toolsrv.cli.catalog_change:accept", "Serve the changed texts of a catalog."),
    "enable": ("toolsrv.cli.catalog_change:enable", "Let searches and solves find a catalog."),
    "disable": ("toolsrv.cli.catalog_change:disable", "Hide a catalog; it stays in the store."),
    "set": ("toolsrv.cli.catalog_set:set_", "Send a header or parameter with each live call."),
    "unset": ("toolsrv.cli.catalog_set:unset", "No longer send a header or parameter."),
    "remove": ("toolsrv.cli.catalog_change:remove", "Remove a catalog from the store."),
    "export": ("toolsrv.cli.catalog_export:export", "Write a catalog in ToolBench's layout."),
    "check": ("toolsrv.cli.check:check", "Call APIs and keep what they are worth."),
}


@click.group(cls=LazyGroup, table=COMMANDS, epilog=example("toolsrv catalog stats"))
def catalog() -> None:
    """Look at the catalogs; import, accept, export them."""

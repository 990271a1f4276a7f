"""Packaged descriptions of the offline APIs in ToolBench's format, and their Markdown table.

The table is for the README.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.resources import as_file, files

from toolsrv_catalogs.toolbench import read_folder
from toolsrv_registry.api import Catalog

OFFLINE_CATALOG = "offline"


@cache
def load_offline_catalog() -> Catalog:
    """Return the packaged catalog, named ``offline``.

    Raises:
        DataError: a packaged description is damaged.
    """
    with as_file(files(__package__) / "tools") as root:
        return read_folder(root, name=OFFLINE_CATALOG)


def markdown_table() -> str:
    """Return the table; one row per tool, sorted by category and name."""
    rows = ["| category | tool | APIs | what it stands on |", "|---|---|---|---|"]
    for tool in load_offline_catalog().tools:
        key = tool.apis[0].tool_key
        module = importlib.import_module(f"toolsrv_catalogs.offline.domains.{key}")
        purpose = (module.__doc__ or "").splitlines()[0].removeprefix(f"{tool.name}: ")
        rows.append(f"| {tool.category} | {tool.name} | {len(tool.apis)} | {purpose} |")
    return "\n".join(rows)

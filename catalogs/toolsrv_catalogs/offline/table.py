"""The offline tools as a Markdown table, for the README.

Reads the descriptions and the first line of each domain module.
"""

from __future__ import annotations

import importlib

from toolsrv_catalogs.offline.descriptions import load_offline_catalog


def markdown_table() -> str:
    """Return the table; one row per tool, sorted by category and name."""
    rows = ["| category | tool | APIs | what it stands on |", "|---|---|---|---|"]
    for tool in load_offline_catalog().tools:
        key = tool.apis[0].tool_key
        module = importlib.import_module(f"toolsrv_catalogs.offline.domains.{key}")
        purpose = (module.__doc__ or "").splitlines()[0].removeprefix(f"{tool.name}: ")
        rows.append(f"| {tool.category} | {tool.name} | {len(tool.apis)} | {purpose} |")
    return "\n".join(rows)

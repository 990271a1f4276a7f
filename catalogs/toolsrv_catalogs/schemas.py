"""ToolBench's response schemas: ``response_examples/<Category>/<tool>.json``, beside the tools.

A schema says which part of a response is worth keeping (paper, A.2). It is kept with its API for
an export and for calls; no search looks at it.
"""

from __future__ import annotations

from typing import Any

from toolsrv_catalogs import fields
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry.api import RESPONSE_SCHEMA, Tool

SCHEMA = RESPONSE_SCHEMA
LOOSE = "response_schemas"
"""The key in ``Tool.extra`` of schemas whose API the tool does not have."""


def read_schemas(document: Any, found: FileFindings) -> list[tuple[str, Any]]:
    """Return (API name, schema) in the file's order; what is none is refused."""
    entries = document.get("api_list") if isinstance(document, dict) else None
    if not isinstance(entries, list | None):
        found.refuse("schema", "api_list is no list")
        return []
    result = []
    for number, entry in enumerate(entries or [], start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            found.refuse("schema", "has no name", name=f"number {number}")
            continue
        name = found.text(entry["name"], NAME_LIMIT)
        kept = fields.kept({SCHEMA: entry.get("schema", "")}, found, what=repr(name))
        if kept:
            result.append((name, kept[SCHEMA]))
    return result


def attach(tool: Tool, schemas: list[tuple[str, Any]], found: FileFindings) -> Tool:
    """Return the tool with each schema at its API: the first of that name that has none yet."""
    extras = [dict(one) for one in tool.api_extras or ({},) * len(tool.apis)]
    free: dict[str, list[int]] = {}
    for at, api in enumerate(tool.apis):
        free.setdefault(api.name, []).append(at)
    loose = []
    for name, schema in schemas:
        if free.get(name):
            extras[free[name].pop(0)][SCHEMA] = schema
        else:
            loose.append({"name": name, "schema": schema})
    if loose:
        found.note(f"{len(loose)} schemas of APIs that the tool does not have")
    more = {LOOSE: loose} if loose else {}
    return tool.model_copy(
        update={
            "api_extras": tuple(extras) if any(extras) else (),
            "extra": tool.extra | more,
        }
    )

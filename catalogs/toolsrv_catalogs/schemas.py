"""ToolBench's response schemas: ``response_examples/<Category>/<tool>.json``, beside the tools.

A schema says which part of a response is worth keeping (paper, A.2). It is kept with its API for
an export and for calls; no search looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from toolsrv_catalogs import fields
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.layout import LOOSE, ORDER, SCHEMA, SCHEMA_ORIGINAL
from toolsrv_catalogs.originals import original
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry.api import ORIGINAL, Tool


class Schema(NamedTuple):
    """A response schema, the name of its API, and what its file said otherwise (``originals``)."""

    name: str
    schema: Any
    original: str = ""


def read_schemas(document: Any, found: FileFindings) -> list[Schema]:
    """Return the schemas in the file's order; what is none is refused."""
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
            written = {"name": name, "schema": kept[SCHEMA]}
            other = original(written | entry, written, found, what=repr(name))
            result.append(Schema(name, kept[SCHEMA], other))
    return result


def attach(tool: Tool, schemas: Sequence[Schema], found: FileFindings) -> Tool:
    """Return the tool with each schema at its API: the first of that name that has none yet."""
    extras = [dict(one) for one in tool.api_extras or ({},) * len(tool.apis)]
    free: dict[str, list[int]] = {}
    for at, api in enumerate(tool.apis):
        free.setdefault(api.name, []).append(at)
    more: dict[str, Any] = {}
    for one in schemas:
        if free.get(one.name):
            extra = extras[free[one.name].pop(0)]
            extra[SCHEMA] = one.schema
            if one.original:
                extra[SCHEMA_ORIGINAL] = one.original
        else:
            beside = {ORIGINAL: one.original} if one.original else {}
            more.setdefault(LOOSE, []).append({"name": one.name, "schema": one.schema} | beside)
    if LOOSE in more:
        found.note(f"{len(more[LOOSE])} schemas of APIs that the tool does not have")
    order = [api.name for api, extra in zip(tool.apis, extras, strict=True) if SCHEMA in extra]
    order += [one["name"] for one in more.get(LOOSE, [])]
    if order != (told := [one.name for one in schemas]):
        more[ORDER] = told
    return tool.model_copy(
        update={
            "api_extras": tuple(extras) if any(extras) else (),
            "extra": tool.extra | more,
        }
    )

"""ToolBench's layout as JSON objects: tools, APIs and response schemas.

Response schemas are read from ``response_examples/<Category>/<tool>.json`` beside the tools.
Writes nothing to disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from toolsrv_catalogs import fields
from toolsrv_catalogs.fields import original, restored, unused
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry import names
from toolsrv_registry.api import ORIGINAL, RESPONSE_SCHEMA, Api, Parameter, Tool

OURS = "x-toolsrv"
"""The key of an API or parameter under which an export keeps what ToolBench has no place for."""
SCHEMA = RESPONSE_SCHEMA
SCHEMA_ORIGINAL = "response_schema_original"
"""The key, beside an API's response schema, of what its file said otherwise."""
EXAMPLE = "test_endpoint"
"""The key, among an API's further keys of ToolBench's layout, of an example response."""
LOOSE = "response_schemas"
"""The key in ``Tool.extra`` of schemas whose API the tool does not have."""
ORDER = "response_schema_names"
"""The key in ``Tool.extra`` of the order of a file of schemas, where it is not that of the APIs."""


def api_place(category: str, tool: str, name: str) -> str:
    """Return the id of an API that is the first of its name in its tool."""
    stem = names.readable_api_name(name) or "unnamed"
    return f"{category}/{names.readable_name(tool) or 'unnamed'}/{stem}"


def numbered(
    apis: Sequence[Api], note: Callable[[str], None], written: Sequence[Any] = ()
) -> tuple[Api, ...]:
    """Return the APIs of one tool with ids of their own; of those with one id the later get numbers.

    Names in Latin letters are counted in the order of the file, those that were spelled in Latin
    letters after them in the order of the names, so that their ids do not hang on where they
    stand. ``written`` is what an export wrote down by API where no count would give its id.
    """
    taken: set[str] = set()
    ids = [api.id for api in apis]
    for at in sorted(range(len(apis)), key=lambda at: _turn(apis[at])):
        wanted = ids[at]
        ours = written[at] if written else None
        own = ours.get("id") if isinstance(ours, dict) else None
        known = isinstance(own, str) and re.fullmatch(
            rf"{re.escape(wanted)}(?:_[0-9]{{1,9}}){{1,9}}", own
        )
        ids[at] = unused(own if isinstance(own, str) and known else wanted, taken)
        if ids[at] != wanted:
            note(f"{apis[at].name!r} is there again; its id is {ids[at]}")
    return tuple(
        api if api.id == found else api.model_copy(update={"id": found})
        for api, found in zip(apis, ids, strict=True)
    )


def _turn(api: Api) -> tuple[bool, str, str, str]:
    if not names.is_respelled(api.name):
        return False, "", "", ""
    return True, api.name, api.method, api.url


def tool_document(tool: Tool) -> dict[str, Any]:
    """Return a tool as ToolBench writes it."""
    taken: set[str] = set()
    extras = tool.api_extras or ({},) * len(tool.apis)
    apis = []
    for api, extra in zip(tool.apis, extras, strict=True):
        document = restored(api_document(api, extra), extra.get(ORIGINAL, ""))
        if ours := _ours(api, taken):
            document[OURS] = ours
        apis.append(document)
    return restored(tool_head(tool) | {"api_list": apis}, tool.extra.get(ORIGINAL, ""))


def tool_head(tool: Tool) -> dict[str, Any]:
    """Return what a tool says of itself, without its APIs, before it is put back as it was read."""
    keys = dict(tool.extra.get("keys", {}))
    description: str | None = tool.description
    if "tool_description" in keys:
        description = description or keys.pop("tool_description")
    return {
        "tool_name": tool.name,
        "tool_description": description,
        **keys,
        "home_url": tool.home_url,
        "host": tool.extra.get("host", tool.host),
    }


def api_document(api: Api, extra: dict[str, Any]) -> dict[str, Any]:
    """Return an API, without what is ours, before it is put back as it was read."""
    more = extra.get("parameters", {})
    return {
        "name": api.name,
        "url": extra.get("url", api.url),
        "description": api.description,
        "method": api.method,
        "required_parameters": [parameter_document(one, more) for one in api.required],
        "optional_parameters": [parameter_document(one, more) for one in api.optional],
        **extra.get("keys", {}),
    }


def parameter_document(parameter: Parameter, more: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter; ``more`` holds by name what else its source says of some."""
    document: dict[str, Any] = {
        "name": parameter.name,
        "type": parameter.type,
        "description": parameter.description,
        "default": parameter.default,
    }
    if parameter.enum:
        document["enum"] = list(parameter.enum)
    if parameter.place:
        document["in"] = parameter.place
    ours = {
        "style": parameter.style,
        "wire": parameter.wire,
        "reserved": parameter.reserved,
        "empty": parameter.empty,
        "media": parameter.media,
        "example": None if parameter.json_schema is not None else parameter.example,
        "schema": parameter.json_schema,
    }
    if ours := {key: one for key, one in ours.items() if one not in ("", None, False)}:
        document[OURS] = ours
    document.update(more.get(parameter.name, {}))
    return document


def schema_document(tool: Tool) -> dict[str, Any] | None:
    """Return the response schemas of a tool as ToolBench writes them; None where none is known."""
    known = [
        (api.name, _schema(api.name, extra[SCHEMA], extra.get(SCHEMA_ORIGINAL, "")))
        for api, extra in zip(tool.apis, tool.api_extras, strict=bool(tool.api_extras))
        if SCHEMA in extra
    ]
    known += [
        (one["name"], _schema(one["name"], one["schema"], one.get(ORIGINAL, "")))
        for one in tool.extra.get(LOOSE, [])
    ]
    waiting: dict[str, list[dict[str, Any]]] = {}
    for name, entry in known:
        waiting.setdefault(name, []).append(entry)
    order = [*tool.extra.get(ORDER, []), *(name for name, _ in known)]
    entries = [waiting[name].pop(0) for name in order if waiting.get(name)]
    return {"api_list": entries} if entries else None


def _schema(name: str, schema: Any, original: str) -> dict[str, Any]:
    return restored({"name": name, "schema": schema}, original)


def _ours(api: Api, taken: set[str]) -> dict[str, Any]:
    ours: dict[str, Any] = {}
    # The reader counts APIs of one name; say so where its count would give another id.
    if unused(api_place(api.category, api.tool, api.name), set(taken)) != api.id:
        ours["id"] = api.id
    taken.add(api.id)
    if api.body_type:
        ours["body_type"] = api.body_type
    if api.body_required:
        ours["body_required"] = True
    if api.accept:
        ours["accept"] = api.accept
    if api.together:
        ours["together"] = [one.model_dump() for one in api.together]
    if api.security:
        ours["security"] = [[one.model_dump() for one in group] for group in api.security]
    return ours


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

"""Tools of MCP servers as APIs: whole schemas, stable ids, policy by annotation, fingerprints."""

from __future__ import annotations

from typing import Any

import pytest

from toolsrv_catalogs.difference import difference
from toolsrv_catalogs.mcp_tools import fingerprint, read_mcp_tools
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError


def _tool(name: str = "tide", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def _apis(*tools: dict[str, Any]) -> dict[str, Api]:
    reading = read_mcp_tools(tools, name="harbour", title="Harbour Desk", about="Tides.")
    return {api.name: api for api in reading.catalog.apis}


SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "definitions": {
        "Ship": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}
    },
    "properties": {
        "ship": {"$ref": "#/definitions/Ship", "description": "The ship"},
        "when": {"type": ["string", "null"], "format": "date", "default": None},
        "crew": {"type": "array", "items": {"enum": ["cook", "mate"]}, "minItems": 1},
    },
    "required": ["ship"],
    "allOf": [{"not": {"required": ["captain"]}}],
}


def test_an_argument_schema_is_kept_whole_and_its_arguments_are_offered() -> None:
    api = _apis(_tool(inputSchema=SCHEMA))["tide"]
    assert [one.json_schema for one in api.together] == [SCHEMA]
    assert [one.name for one in api.required] == ["ship"]
    assert [one.name for one in api.optional] == ["when", "crew"]
    ship = api.required[0]
    assert (ship.type, ship.description.split(".")[0][:8], ship.place) == (
        "OBJECT",
        "The ship",
        "body",
    )
    again = Api.model_validate_json(api.model_dump_json())
    assert again == api


@pytest.mark.parametrize(
    ("annotations", "method"),
    [
        ({"readOnlyHint": True}, "GET"),
        ({"readOnlyHint": False}, "POST"),
        ({"readOnlyHint": "true"}, "POST"),
        ({"destructiveHint": False, "idempotentHint": True}, "POST"),
        (None, "POST"),
    ],
)
def test_only_a_tool_that_says_it_reads_is_called_without_consent(
    annotations: Any, method: str
) -> None:
    assert _apis(_tool(annotations=annotations))["tide"].method == method


def test_names_that_are_not_ascii_get_ids_that_do_not_depend_on_their_order() -> None:
    names = ("погода", "прилив", "天气", "météo", "a.b/c", "get-tide")
    first = {name: api.id for name, api in _apis(*map(_tool, names)).items()}
    second = {name: api.id for name, api in _apis(*map(_tool, reversed(names))).items()}
    assert first == second
    assert len(set(first.values())) == len(names)
    assert first["get-tide"] == "Other/harbour/get_tide"
    assert first["天气"] == "Other/harbour/天气"
    assert all(one.isprintable() and one.rpartition("/")[2] for one in first.values())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": ""}, "name is empty"),
        ({"name": "a\u202eb"}, "hidden characters"),
        ({"name": "x" * 300}, "too long"),
        ({"inputSchema": None}, "no JSON object"),
        ({"inputSchema": {"properties": {"a": {"$ref": "https://x.example/s"}}}}, "refers to"),
        ({"outputSchema": {"$ref": "file:///etc/passwd"}}, "refers to"),
        ({"inputSchema": {"description": "x" * 1_100_000}}, "more than 1,048,576"),
        ({"name": "good"}, "listed twice"),
    ],
)
def test_a_tool_that_cannot_be_taken_is_refused_alone(change: dict[str, Any], reason: str) -> None:
    reading = read_mcp_tools([_tool("good"), _tool("bad") | change], name="harbour")
    assert [api.name for api in reading.catalog.apis] == ["good"]
    (refusal,) = reading.files[0].refused
    assert reason in refusal.reason


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"properties": 3}, {"required": "a"}])
def test_a_schema_that_is_none_holds_nobody(schema: dict[str, Any]) -> None:
    reading = read_mcp_tools([_tool(inputSchema=schema)], name="harbour")
    assert reading.catalog.apis[0].together == ()
    assert any("its schema is none" in note for note in reading.files[0].notes)


def test_a_schema_that_refers_to_itself_is_taken() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}
    schema = {"type": "object", "$defs": {"tree": tree}, "properties": {"t": tree}}
    loop = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}
    apis = _apis(_tool("tree", inputSchema=schema), _tool("loop", inputSchema=loop))
    assert [one.name for one in apis["tree"].parameters] == ["t"]
    assert [one.name for one in apis["loop"].parameters] == ["a"]


def test_a_server_without_a_tool_is_an_error() -> None:
    with pytest.raises(DataError, match="no tool that can be taken"):
        read_mcp_tools([_tool("")], name="harbour")


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Other words"},
        {"title": "Other"},
        {"annotations": {"readOnlyHint": True}},
        {"inputSchema": {"type": "object", "properties": {"a": {"title": "hidden"}}}},
        {"outputSchema": {"type": "object"}},
        {"description": "\u200bTide"},
    ],
)
def test_whatever_a_tool_says_of_itself_is_in_its_fingerprint(change: dict[str, Any]) -> None:
    before = _tool(description="Tide")
    assert fingerprint(before) == fingerprint(dict(reversed(before.items())))
    assert fingerprint(before) != fingerprint(before | change)
    lines = difference(_apis(before)["tide"], _apis(before | change)["tide"])
    assert any(line.startswith("+definition: sha256") for line in lines)

"""What an OpenAPI operation says of its responses: kept for compression, bounded, never in the way."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.openapi_documents import document, read

from toolsrv_catalogs.export import export_catalog
from toolsrv_catalogs.importer import read_catalog
from toolsrv_catalogs.layout import EXAMPLE
from toolsrv_catalogs.openapi.response import FIELDS
from toolsrv_registry.api import RESPONSE_SCHEMA, Tool
from toolsrv_registry.storage.store import Store
from toolsrv_runtime.calls.compress import TextBudget, compress

PET = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "format": "int64"},
        "name": {"type": "string"},
        "weight": {"type": "number"},
        "sold": {"type": "boolean"},
        "tags": {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {},
    },
}
TAG = {"type": "object", "properties": {"text": {"type": "string"}}}
SCHEMAS = {"Pet": PET, "Tag": TAG}
MIRRORED = {
    "id": "int",
    "name": "str",
    "weight": "float",
    "sold": "bool",
    "tags": [{"text": "str"}],
    "labels": True,
    "anything": True,
}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def success(schema: Any, kind: str = "application/json") -> dict[str, Any]:
    return {"description": "ok", "content": {kind: {"schema": schema}}}


def responding(responses: Any, **components: Any) -> dict[str, Any]:
    schemas = {"schemas": SCHEMAS | components}
    return document({"operationId": "go", "responses": responses}, components=schemas)


def tool_of(whole: dict[str, Any]) -> Tool:
    tool, _ = read(whole)
    assert len(tool.apis) == 1  # whatever its responses are
    return tool


def schema_of(responses: Any, **components: Any) -> Any:
    extras = tool_of(responding(responses, **components)).api_extras
    return extras[0][RESPONSE_SCHEMA] if extras else None


def test_the_first_success_that_is_json_is_mirrored() -> None:
    assert schema_of({"404": success(TAG), "200": success(ref("Pet"))}) == MIRRORED
    both = {"200": success(TAG, "text/html"), "201": success(ref("Pet"), "application/hal+json")}
    assert schema_of(both) == MIRRORED
    assert schema_of({"2XX": success({"type": "array", "items": ref("Tag")})}) == [{"text": "str"}]
    shared = {"200": {"$ref": "#/components/responses/Tag"}}
    given = responding(shared)
    given["components"]["responses"] = {"Tag": success(ref("Tag"))}
    tool = tool_of(given)
    assert tool.api_extras[0][RESPONSE_SCHEMA] == {"text": "str"}


def test_parts_are_merged_and_what_may_be_anything_stays_open() -> None:
    merged = {"allOf": [ref("Tag"), {"properties": {"more": {"type": ["string", "null"]}}}]}
    assert schema_of({"200": success(merged)}) == {"text": "str", "more": "str"}
    either = {"oneOf": [ref("Tag"), {"properties": {"b": {"type": "integer"}}}]}
    assert schema_of({"200": success({"properties": {"a": either}})}) == {
        "a": {"text": "str", "b": "int"}
    }
    for other in ({"type": "object"}, {"type": "string"}, {}):
        mixed = {"properties": {"a": {"anyOf": [ref("Tag"), other]}, "b": {"type": "string"}}}
        assert schema_of({"200": success(mixed)}) == {"a": True, "b": "str"}
    several = {
        "properties": {"a": {"type": ["object", "array"], **TAG | {"type": ["object", "array"]}}}
    }
    assert schema_of({"200": success(several)}) == {"a": True}


@pytest.mark.parametrize(
    "responses",
    [
        None, [], "x", {}, {"200": None}, {"200": {"content": []}}, {"default": success(TAG)},
        {"200": success(TAG, "image/png")}, {"200": success({})}, {"200": success("x")},
        {"200": success({"type": "string"})}, {"200": success({"type": "array"})},
        {"404": success(TAG)}, {"2": success(TAG)}, {"200": success({"type": "array", "items": {}})},
    ],
)  # fmt: skip
def test_where_nothing_is_known_nothing_is_kept(responses: Any) -> None:
    assert schema_of(responses) is None


@pytest.mark.parametrize(
    "target", ["#/nowhere", "https://evil.example/x.json", "file:///etc/passwd", "../../x.yaml#/a"]
)
def test_a_reference_that_leads_to_nothing_costs_the_schema_only(target: str) -> None:
    tool, found = read(responding({"200": success({"$ref": target})}))
    assert (len(tool.apis), tool.api_extras, found.refused) == (1, (), [])
    inner = {"properties": {"a": {"$ref": target}, "b": {"type": "string"}}}
    assert schema_of({"200": success(inner)}) == {"a": True, "b": "str"}


def test_circles_and_floods_end_soon_and_stay_open() -> None:
    node = {"properties": {f"k{at}": ref("Node") for at in range(12)}}
    wide = {"properties": {f"k{at}": {"type": "string"} for at in range(FIELDS + 1)}}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    started = time.perf_counter()
    circle = schema_of({"200": success(ref("Node"))}, Node=node)
    assert len(json.dumps(circle)) < 20 * FIELDS
    assert set(circle) == set(node["properties"])
    assert schema_of({"200": success({"properties": {"a": wide, "b": TAG}})}) == {
        "a": True,
        "b": {"text": "str"},
    }
    assert json.dumps(schema_of({"200": success(deep)})).count("{") == 6
    itself = {"properties": {"a": {"$ref": "#/components/schemas/Itself/properties/a"}}}
    assert schema_of({"200": success(ref("Itself"))}, Itself=itself) == {"a": True}
    assert time.perf_counter() - started < 10


def test_names_that_cannot_be_kept_leave_their_object_open() -> None:
    for name in ("a\u202eb", "x" * 300):
        odd = {"properties": {"a": {"properties": {name: TAG}}, "b": {"type": "string"}}}
        assert schema_of({"200": success(odd)}) == {"a": True, "b": "str"}


def test_it_is_stored_exported_and_imported_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "x.json"
    path.write_text(json.dumps(responding({"200": success(ref("Pet"))})), "utf-8")
    first = read_catalog(path).catalog
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(first)
        (api,) = first.apis
        assert store.home(api.id)[2] == MIRRORED
        again = store.put_catalog(read_catalog(path).catalog)
        assert (again.added, again.changed, again.removed) == ((), (), ())
        back = store.catalog(first.name)
    assert back == first
    export_catalog(back, tmp_path / "out")
    assert read_catalog(tmp_path / "out").catalog.tools == first.tools


def test_an_import_of_before_gets_the_schema_and_waits_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(responding({"200": success(ref("Pet"))})), "utf-8")
    now = read_catalog(path).catalog
    before = now.model_copy(
        update={"tools": tuple(one.model_copy(update={"api_extras": ()}) for one in now.tools)}
    )
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(before, hold=True)
        (api,) = now.apis
        assert store.home(api.id)[2] is None
        changes = store.put_catalog(now, hold=True)
        assert changes.changed == ()  # nobody has to accept it: a model never reads it
        assert store.home(api.id)[2] == MIRRORED


def test_a_long_response_is_told_by_it_and_nothing_unknown_is_lost() -> None:
    schema = schema_of({"200": success(ref("Pet"))})
    response = {
        "noise": "n" * 3_000,
        "id": 7,
        "name": "Rex",
        "tags": [{"text": "dog", "noise": "n" * 900}],
        "labels": {"free": {"form": 1}},
    }
    told = json.loads(compress(response, TextBudget(400), schema))
    assert told == {
        "id": 7,
        "name": "Rex",
        "tags": [{"text": "dog"}],
        "labels": {"free": {"form": 1}},
    }


@pytest.mark.parametrize(
    "media",
    [
        {"example": {"id": 1}},
        {"examples": {"one": {"value": {"id": 1}}, "two": {"value": {"id": 2}}}},
        {"examples": {"one": {"$ref": "#/components/examples/One"}}},
        {"schema": {"type": "object", "example": {"id": 1}}},
        {"schema": {"$ref": "#/components/schemas/Shown"}},
        {"examples": {"one": {"$ref": "#/nowhere"}}, "schema": {"examples": [{"id": 1}]}},
    ],
)
def test_an_example_response_is_kept_where_toolbench_has_one(media: dict[str, Any]) -> None:
    responses = {"200": {"description": "ok", "content": {"application/json": media}}}
    whole = responding(responses, Shown={"type": "object", "example": {"id": 1}})
    whole["components"]["examples"] = {"One": {"value": {"id": 1}}}
    tool = tool_of(whole)
    assert tool.api_extras[0]["keys"] == {EXAMPLE: {"id": 1}}


@pytest.mark.parametrize("example", ["text", 3, None, {}, [], {"a": "x" * 100_000}])
def test_an_example_that_is_no_object_or_too_large_is_not_kept(example: Any) -> None:
    content = {"application/json": {"example": example, "schema": ref("Pet")}}
    responses = {"200": {"description": "ok", "content": content}}
    tool = tool_of(responding(responses))
    assert tool.api_extras[0] == {RESPONSE_SCHEMA: MIRRORED}

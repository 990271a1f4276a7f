"""References within OpenAPI documents: followed, refused in parts, circles that end."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.openapi_documents import JSON, document, read, read_api

from toolsrv_catalogs.openapi import references


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/nope", "leads to nothing"),
        ("#/paths/~1x/get/parameters/0", "circle"),
        ("https://evil.example/x.json", "nothing is fetched"),
        ("file:///etc/passwd", "nothing is fetched"),
        ("//evil.example/x", "nothing is fetched"),
        ("../../../../etc/passwd", "leads to nothing"),
        ("#/paths/zz/0/1", "leads to nothing"),
        ("http://[bad", "nothing is fetched"),
    ],
)
def test_a_reference_that_cannot_be_followed_costs_its_part_alone(
    reference: str, reason: str
) -> None:
    parameters = [{"$ref": reference}, {"name": "q", "in": "query"}]
    tool, found = read(document({"parameters": parameters}))
    assert [one.name for one in tool.apis[0].parameters] == ["q"]
    assert [(one.what, one.name) for one in found.refused] == [("parameter", "/x")]
    assert reason in found.refused[0].reason
    properties = {"name": {"type": "string"}, "geo": {"$ref": reference}}
    body = {"content": {"application/json": {"schema": {"properties": properties}}}}
    tool, found = read(document({"requestBody": body}))
    assert [(one.name, one.json_schema) for one in tool.apis[0].parameters] == [
        ("name", {"type": "string"}),
        ("geo", {}),
    ]
    if "circle" not in reason:
        assert reason in found.notes[0]


def _all_of(*names: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}


@pytest.mark.parametrize(
    ("schemas", "ends"),
    [
        ({"A": _all_of("A")}, False),
        ({"A": _all_of("B"), "B": _all_of("A")}, False),
        ({"A": {"$ref": "#/components/schemas/A"}}, False),
        ({chr(65 + n): _all_of(*[chr(66 + n)] * 9) for n in range(20)} | {"U": {}}, True),
        ({"A": {"anyOf": [_all_of("A"), _all_of("A")]}}, False),
    ],
    ids=["self", "pair", "reference", "tree", "choice"],
)
def test_circles_and_tangles_of_schemas_end_quickly(schemas: dict[str, Any], ends: bool) -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    started = time.perf_counter()
    tool, found = read(document({"requestBody": body}, components={"schemas": schemas}))
    assert time.perf_counter() - started < 5
    assert len(tool.apis) == 1
    assert found.refused == []
    assert bool(found.notes) is not ends  # a tree is read whole, however often it branches


def test_a_schema_may_contain_itself() -> None:
    tree = {
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    api = read_api(document({"requestBody": body}, components={"schemas": {"A": tree}}))
    assert [(p.name, p.type) for p in api.optional] == [("children", "ARRAY")]


def test_every_operation_has_its_own_budget_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "STEPS_LIMIT", 60)
    whole = document()
    whole["paths"] = {
        f"/{n}": {"get": {"parameters": [{"name": f"p{m}", "in": "query"} for m in range(9)]}}
        for n in range(9)
    }
    tool, found = read(whole)
    assert len(tool.apis) == 9
    assert found.refused == []


def test_parameters_beside_the_reference_of_a_path_item_add_to_its_own() -> None:
    item = {
        "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
        "get": {"operationId": "one"},
    }
    beside = {"parameters": [{"$ref": "#/components/parameters/X"}]}
    whole = document(
        paths={"/f/{id}": {"$ref": "item.yaml"} | beside},
        components={"parameters": {"X": {"name": "x", "in": "query", "required": True}}},
    )
    api = read_api(whole, {"item.yaml": item})
    assert [(one.name, one.type) for one in api.required] == [
        ("id", "NUMBER"),
        ("x", "STRING"),
    ]


GET = {
    "operationId": "get one",
    "summary": "Show one",
    "parameters": [{"name": "v", "in": "query", "required": True, "schema": {"type": "integer"}}],
    "requestBody": {"$ref": "parts.yaml#/body"},
}
FILES = {
    "get.yaml": GET,
    "parts.yaml": {
        "body": {"content": {JSON: {"schema": {"type": "object", "properties": {"w": {}}}}}}
    },
}


@pytest.mark.parametrize(
    "operation",
    [
        {"$ref": "get.yaml"},
        {"$ref": "all.yaml#/get"},
        {"$ref": "chain.yaml"},
        {"$ref": "get.yaml", "description": "beside"},
    ],
)
def test_an_operation_by_reference_is_whole(operation: dict[str, Any]) -> None:
    files = FILES | {"all.yaml": {"get": GET}, "chain.yaml": {"$ref": "get.yaml"}}
    api = read_api(document(operation), files)
    assert api.id == "Other/t/get_one"
    assert "Show one" in api.description
    assert [one.name for one in api.required] == ["v"]
    assert [(one.name, one.place) for one in api.optional] == [("w", "body")]


def test_a_path_item_by_reference_is_whole() -> None:
    whole = document(paths={"/x": {"$ref": "item.yaml"}})
    api = read_api(whole, FILES | {"item.yaml": {"get": {"$ref": "get.yaml"}}})
    assert [one.name for one in api.required] == ["v"]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"$ref": "none.yaml"}, "leads to nothing"),
        ({"$ref": "https://elsewhere.test/get.yaml"}, "lies outside"),
        ({"$ref": "#/paths/~1x/get"}, "circle"),
        ({"$ref": "#/info"}, "no operation"),
        ({"$ref": "item.yaml"}, "no operation"),
        ({"$ref": 5}, "no operation"),
        ({"$ref": "#/servers"}, "no object"),
        ([], "no object"),
    ],
)
def test_an_operation_that_a_reference_does_not_give_is_refused(
    operation: Any, reason: str
) -> None:
    files: dict[str, Any] = {"item.yaml": {"parameters": [], "get": {}}}
    tool, found = read(document(operation), files)
    assert tool.apis == ()
    assert [(one.what, one.name) for one in found.refused] == [("API", "GET /x")]
    assert reason in found.refused[0].reason

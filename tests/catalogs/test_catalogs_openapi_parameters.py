"""Parameters of OpenAPI operations: types, places, styles, and content in place of a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.openapi_documents import document, read, read_api

from toolsrv_catalogs.layout import tool_document
from toolsrv_catalogs.toolbench import read_tool


@pytest.mark.parametrize(
    ("schema", "type_", "enum"),
    [
        ({"type": ["string", "null"]}, "STRING", ()),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "NUMBER", ()),
        ({"type": "integer", "enum": [1, 2, None]}, "NUMBER", ("1", "2")),
        ({"const": True}, "BOOLEAN", ("true",)),
        ({"enum": [1, 2]}, "NUMBER", ("1", "2")),
        ({"enum": [1, "a"]}, "ENUM", ("1", "a")),
        ({"type": ["integer", "string"]}, "STRING", ()),
        ({"type": ["integer", "null"]}, "NUMBER", ()),
        ({"oneOf": [{"type": "array"}, {"type": "string", "format": "date"}]}, "STRING", ()),
        ({"anyOf": [{"type": "boolean"}, {}]}, "STRING", ()),
        ({"type": [{}, 7]}, "STRING", ()),
        ({"enum": ["b", "a", "b"]}, "ENUM", ("b", "a")),
        ({"type": "string", "format": "binary"}, "BINARY", ()),
        ({}, "STRING", ()),
        (True, "STRING", ()),
        (None, "STRING", ()),
        ("odd", "STRING", ()),
        ({"type": 7, "enum": "x", "properties": [], "allOf": 3}, "STRING", ()),
    ],
)
def test_schemas_become_types(schema: Any, type_: str, enum: tuple[str, ...]) -> None:
    api = read_api(document({"parameters": [{"name": "p", "in": "query", "schema": schema}]}))
    (parameter,) = api.optional
    assert (parameter.type, parameter.enum) == (type_, enum)


def test_a_parameter_may_have_content_and_named_examples() -> None:
    entry = {
        "name": "p",
        "in": "query",
        "content": {"application/json": {"schema": {"type": "object"}}},
        "examples": {"one": {"value": {"a": 1}}},
    }
    (parameter,) = read_api(document({"parameters": [entry]})).optional
    assert (parameter.type, parameter.default, parameter.example) == ("OBJECT", "", {"a": 1})


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "integer", "minimum": 1}, "NUMBER"),
        ({"type": "boolean"}, "BOOLEAN"),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, "ARRAY"),
        ({"$ref": "#/components/schemas/Box"}, "OBJECT"),
        ({"enum": ["a", "b"]}, "ENUM"),
        ({"type": "string", "format": "date"}, "DATE (YYYY-MM-DD)"),
        ({}, "STRING"),
    ],
)
def test_content_is_shown_with_its_schemas_type(schema: Any, type_: str) -> None:
    media = {"schema": schema, "example": "as the media type says"}
    entry = {"name": "p", "in": "query", "content": {"application/json": media}}
    box = {"type": "object", "properties": {"w": {"type": "number"}}}
    whole = document({"parameters": [entry]}, components={"schemas": {"Box": box}})
    (parameter,) = read_api(whole).optional
    assert (parameter.type, parameter.style) == (type_, "json")
    assert parameter.example == "as the media type says"
    assert ("Fields: w (number)." in parameter.description) == (type_ == "OBJECT")


def test_a_placeholder_without_description_is_a_parameter_all_the_same() -> None:
    whole = document({}, path="/x/{id}")
    assert [(p.name, p.place) for p in read_api(whole).required] == [("id", "path")]
    assert "'id' is not described" in read(whole)[1].notes[0]


LIST = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object", "properties": {"min": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("place", "about", "style"),
    [
        ("query", {"schema": LIST}, ""),
        ("query", {"schema": LIST, "explode": True}, ""),
        ("query", {"schema": LIST, "explode": False}, "commas"),
        ("query", {"schema": LIST, "style": "spaceDelimited"}, "spaces"),
        ("query", {"schema": LIST, "style": "pipeDelimited"}, "pipes"),
        ("query", {"schema": LIST, "style": "pipeDelimited", "explode": True}, ""),
        ("query", {"schema": OBJECT, "style": "deepObject", "explode": True}, "brackets"),
        ("query", {"schema": OBJECT, "explode": False}, "commas"),
        ("query", {"schema": OBJECT}, ""),
        ("query", {"schema": {"type": "string"}, "explode": False}, ""),
        ("query", {"schema": LIST, "style": 7, "explode": "no"}, ""),
        ("header", {"schema": LIST}, ""),
        ("header", {"schema": OBJECT}, "commas"),
        ("header", {"schema": OBJECT, "explode": True}, "pairs"),
        ("cookie", {"schema": LIST}, ""),
        ("cookie", {"schema": OBJECT, "explode": False}, "commas"),
        ("query", {"content": {"application/json": {"schema": LIST}}, "explode": False}, "json"),
        ("cookie", {"content": {"application/json": {"schema": OBJECT}}}, "json"),
        (
            "header",
            {"content": {"application/a+json; v=1": {"schema": {"type": "string"}}}},
            "json",
        ),
        ("query", {"content": {"application/json": {}}}, "json"),
        ("query", {"content": {"text/plain": {"schema": {"type": "string"}}}}, ""),
        ("query", {"content": {}, "schema": LIST, "explode": False}, "commas"),
        ("query", {"content": 7}, ""),
    ],
)
def test_style_and_explode_say_how_a_value_is_written(
    place: str, about: dict[str, Any], style: str
) -> None:
    api = read_api(document({"parameters": [{"name": "p", "in": place} | about]}))
    assert [one.style for one in api.optional] == [style]


@pytest.mark.parametrize(
    ("place", "about"),
    [
        ("path", {"schema": LIST, "style": "form"}),
        ("header", {"schema": {"type": "string"}, "style": "label"}),
        ("header", {"schema": LIST, "style": "form"}),
        ("query", {"schema": LIST, "style": "simple"}),
        ("query", {"content": {"application/xml": {"schema": OBJECT}}}),
        ("header", {"content": {"text/csv": {"schema": LIST}}}),
    ],
)
def test_a_style_that_cannot_be_sent_is_refused(place: str, about: dict[str, Any]) -> None:
    entry = {"name": "p", "in": place, "required": True} | about
    tool, found = read(document({"parameters": [entry]}, path="/x/{p}"))
    assert tool.apis == ()
    assert [one.what for one in found.refused] == ["API"]
    assert "'p'" in found.refused[0].reason
    if place != "path":
        tool, found = read(document({"parameters": [entry | {"required": False}]}))
        assert tool.apis[0].parameters == ()
        assert [(one.what, one.name) for one in found.refused] == [("parameter", "p")]


@pytest.mark.parametrize(
    ("style", "wanted", "refused"), [("pipeDelimited", ["pipes"], 0), ("matrix", [], 1)]
)
def test_a_property_of_a_form_has_its_encodings_style(
    style: str, wanted: list[str], refused: int
) -> None:
    media = {"schema": {"properties": {"tags": LIST}}, "encoding": {"tags": {"style": style}}}
    body = {"content": {"application/x-www-form-urlencoded": media}}
    whole = document({})
    whole["paths"]["/x"] = {"post": {"requestBody": body}}
    tool, found = read(whole)
    assert [one.style for one in tool.apis[0].parameters] == wanted
    assert len(found.refused) == refused


def test_of_two_parameters_of_one_name_and_place_the_last_is_taken_and_told() -> None:
    twice = [{"name": "q", "in": "query", "description": one} for one in ("first", "second")]
    others = [{"name": "q", "in": "header"}, {"name": "r", "in": "query"}]
    whole = document({"parameters": [*twice, *others]})
    whole["paths"]["/x"]["parameters"] = [{"name": "r", "in": "query"}]  # overridden: no fault
    tool, found = read(whole)
    (api,) = tool.apis
    assert [(one.name, one.wire, one.place, one.description) for one in api.optional] == [
        ("r", "", "query", ""),
        ("q__query", "q", "query", "second"),
        ("q__header", "q", "header", ""),
    ]
    assert found.notes == ["/x: 'q' is there twice in query; the last one counts"]


def test_a_dead_example_costs_nothing() -> None:
    entry = {"name": "v", "in": "query", "examples": {"a": {"$ref": "#/nowhere"}}}
    assert read_api(document({"parameters": [entry]})).optional[0].example is None


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": ["integer", "null"]},
            {"enum": ["a", 1, None]},
            {"type": "number", "nullable": True},
            {"const": {"a": [1]}},
            True,
            False,
            {},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda one: {"type": "array", "items": one}),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda many: {"oneOf": many, "unevaluatedProperties": False}
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda many: {"allOf": many, "type": "object", "anyOf": many, "nullable": True}
        ),
        st.dictionaries(st.sampled_from("abc"), inner).map(
            lambda named: {"type": "object", "properties": named, "required": list(named)}
        ),
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_an_export_brings_every_parameter_back_as_it_is(schema: Any) -> None:
    entries = [
        {"name": "v", "in": place, "schema": schema, "example": {"a": 1}}
        for place in ("query", "header")
    ]
    tool, _ = read(document({"parameters": entries}))
    back = read_tool(json.loads(json.dumps(tool_document(tool))), "Other")
    assert back.apis[0].parameters == tool.apis[0].parameters

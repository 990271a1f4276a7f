"""The flat view of an argument is what its JSON Schema implies, and is kept nowhere beside it."""

from __future__ import annotations

from typing import Any

import pytest

from toolsrv_registry.api import Parameter


@pytest.mark.parametrize(
    ("schema", "kind", "allowed"),
    [
        ({"type": "integer"}, "NUMBER", ()),
        ({"type": ["boolean", "null"]}, "BOOLEAN", ()),
        ({"type": "string", "enum": ["a", "b"]}, "ENUM", ("a", "b")),
        ({"type": "integer", "enum": [1, 2]}, "NUMBER", ("1", "2")),
        ({"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}, {"type": "null"}]}, "ENUM", ("a", "b")),
        ({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}, "STRING", ()),
        ({"oneOf": [{"type": "array"}, {"type": "string"}]}, "STRING", ()),
        (
            {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "DATE (YYYY-MM-DD)",
            (),
        ),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "NUMBER", ()),
        ({"properties": {"a": {}}}, "OBJECT", ()),
        ({"items": {}}, "ARRAY", ()),
        ({"type": "string", "contentEncoding": "base64"}, "BINARY", ()),
        ({"type": "string", "format": "binary"}, "BINARY", ()),
        ({}, "STRING", ()),
    ],
)
def test_type_and_values_follow_from_a_schema(
    schema: dict[str, Any], kind: str, allowed: tuple[str, ...]
) -> None:
    parameter = Parameter(name="p", type="OTHER", enum=("z",), json_schema=schema)
    assert (parameter.type, parameter.enum) == (kind, allowed)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"description": "How many", "minimum": 1}, "How many (minimum: 1)"),
        ({"format": "email", "deprecated": True}, "(format: email) Deprecated."),
        (
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
            "Each one of: a. List of strings.",
        ),
        ({"properties": {"a": {"type": "integer"}, "b": {}}}, "Fields: a (integer), b."),
        (
            {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
            "Fields: a, b.",
        ),
        (
            {"type": "array", "items": {"properties": {"a": {}}}},
            "List of objects with: a.",
        ),
    ],
)
def test_a_description_goes_on_with_what_a_schema_demands(
    schema: dict[str, Any], text: str
) -> None:
    assert Parameter(name="p", json_schema=schema).description == text


@pytest.mark.parametrize(("default", "shown"), [(5, 5), ("", ""), (None, ""), (False, False)])
def test_the_default_of_a_schema_is_one_whatever_it_is(default: Any, shown: Any) -> None:
    parameter = Parameter(name="p", json_schema={"default": default})
    assert parameter.has_default
    assert parameter.default == shown
    assert not Parameter(name="p", json_schema={}).has_default
    assert not Parameter(name="p", default=5).has_default


def test_an_argument_with_a_schema_is_kept_as_that_alone() -> None:
    schema = {"type": "integer", "description": "How many", "default": 1, "examples": [7]}
    parameter = Parameter(name="n", place="query", json_schema=schema)
    assert (parameter.description, parameter.example) == ("How many", 7)
    assert parameter.model_dump() == {"name": "n", "place": "query", "json_schema": schema}
    assert Parameter.model_validate_json(parameter.model_dump_json()) == parameter
    plain = Parameter(name="n", type="NUMBER", default=5)
    assert Parameter.model_validate(plain.model_dump()) == plain
    assert plain.model_dump()["type"] == "NUMBER"


def test_what_stood_beside_a_schema_becomes_part_of_it() -> None:
    earlier = Parameter(
        name="n",
        type="ARRAY",
        description="What to tell Each one of: a, b. List of strings. Deprecated.",
        default=["a"],
        example=["b"],
        json_schema={"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    )
    assert earlier.json_schema == {
        "description": "What to tell",
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b"]},
        "default": ["a"],
        "examples": [["b"]],
        "deprecated": True,
    }
    assert earlier.description == "What to tell Each one of: a, b. List of strings. Deprecated."


def test_fields_that_stood_beside_a_schema_are_told_once() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    earlier = Parameter(
        name="n", description="How. Fields: a (string), b (object).", json_schema=schema
    )
    assert earlier.description == "How. Fields: a, b."

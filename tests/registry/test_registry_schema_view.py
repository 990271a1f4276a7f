"""What a model and a person see of an argument's JSON Schema."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolsrv_registry.api import Api, Parameter, PlaceSchema
from toolsrv_registry.functions import whole_schema
from toolsrv_registry.schema_view import example, field_lines, merged, model_schema, without_texts

SHIP: dict[str, Any] = {
    "type": "object",
    "required": ["to"],
    "properties": {
        "to": {
            "type": "object",
            "description": "Where it goes.",
            "required": ["zip"],
            "properties": {
                "zip": {"type": "string", "pattern": "^[0-9]+$", "description": "Postal code."},
                "mode": {"type": "string", "enum": ["air", "sea"], "default": "sea"},
                "id": {"type": "string", "readOnly": True},
            },
        },
        "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {}}}},
    },
}


def test_fields_stand_a_line_each_under_what_holds_them() -> None:
    assert field_lines(SHIP) == (
        "to (object, required): Where it goes.",
        "  zip (string, required): Postal code.",
        "  mode (string, one of air, sea, default sea)",
        "parts (array of object)",
        "  each item:",
        "    n (any)",
    )


def test_variants_stand_under_each_other() -> None:
    cat = {"type": "object", "properties": {"lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}
    assert field_lines({"anyOf": [cat, dog, {"type": "null"}]}) == (
        "either object:",
        "  lives (integer)",
        "or object:",
        "  name (string or null)",
    )


def test_lines_have_a_limit_in_number_and_length() -> None:
    many = {"properties": {f"f{n}": {"description": "x" * 1_000} for n in range(1_000)}}
    lines = field_lines(many)
    assert len(lines) == 61
    assert lines[-1] == "…"
    assert max(map(len, lines)) <= 160
    assert field_lines({"properties": {"a\nb": {}}}) == ("a b (any)",)


def test_parts_are_merged() -> None:
    part = {"properties": {"a": {"enum": [1]}, "b": {}}, "required": ["b"]}
    whole = merged({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "allOf": [part]})
    assert whole["properties"]["a"]["enum"] == [1]
    assert whole["required"] == ["b"]
    assert "allOf" not in whole


def test_a_model_is_shown_fields_and_not_what_only_a_call_checks() -> None:
    shown = model_schema(SHIP, texts=False, optional=True)
    assert shown["properties"]["to"] == {
        "type": "object",
        "properties": {
            "zip": {"type": "string"},
            "mode": {"type": "string", "enum": ["air", "sea"]},
        },
        "required": ["zip"],
    }
    least = model_schema(SHIP, texts=False, optional=False)
    assert list(least["properties"]) == ["to"]
    assert list(least["properties"]["to"]["properties"]) == ["zip"]


def test_variants_of_a_model_have_what_stands_beside_them() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}],
    }
    first, second = model_schema(schema, texts=True, optional=True)["anyOf"]
    assert (list(first["properties"]), first["required"]) == (["kind", "a"], ["kind", "a"])
    assert list(second["properties"]) == ["kind", "b"]


def test_a_schema_of_many_variants_within_variants_is_cut() -> None:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        inner = {"properties": {"p": inner}, "anyOf": [{"properties": {"q": {}}}] * 8}
    started = time.perf_counter()
    model_schema(inner, texts=True, optional=True)
    field_lines(inner)
    assert time.perf_counter() - started < 5


def test_texts_are_taken_out_but_not_fields_of_their_names() -> None:
    schema = {"description": "x", "properties": {"description": {"title": "y", "type": "string"}}}
    assert without_texts(schema) == {"properties": {"description": {"type": "string"}}}


def test_the_whole_schema_has_what_arguments_fulfil_together() -> None:
    rule = PlaceSchema(
        place="body",
        json_schema={"anyOf": [{"required": ["a b"]}, {"required": ["c"]}]},
        required=True,
    )
    body = [Parameter(name=name, place="body", json_schema={}) for name in ("a b", "c")]
    path = Parameter(name="id", place="path", json_schema={"type": "integer"})
    api = Api(
        id="O/t/x", category="O", tool="t", name="x", required=(path,), optional=tuple(body),
        together=(rule,),
    )  # fmt: skip
    schema = whole_schema(api)
    Draft202012Validator.check_schema(schema)
    checked = Draft202012Validator(schema)
    assert checked.is_valid({"is_id": 1, "a_b": 2})
    assert not checked.is_valid({"is_id": 1})
    assert not checked.is_valid({"a_b": 1})
    loose = api.model_copy(update={"together": (rule.model_copy(update={"required": False}),)})
    assert Draft202012Validator(whole_schema(loose)).is_valid({"is_id": 1})


def test_a_variant_and_a_list_say_what_they_allow() -> None:
    street = {"type": "object", "properties": {"street": {"type": "string"}}}
    ship = {"anyOf": [street, {"type": "string", "enum": ["pickup", "post"]}]}
    days = {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}}
    assert field_lines(ship) == (
        "either object:", "  street (string)", "or string, one of pickup, post",
    )  # fmt: skip
    lines = field_lines({"type": "object", "properties": {"days": days}})
    assert lines == ("days (array of string, each one of mon, tue)",)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (SHIP, {"to": {"zip": "…"}}),
        ({"type": "array", "items": SHIP}, []),
        ({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 3}}, [3]),
        ({"anyOf": [{"type": "null"}, {"const": "a"}, {"type": "integer"}]}, "a"),
        ({"type": ["null", "boolean"]}, True),
        ({"type": "object", "required": ["x"]}, {}),
    ],
)
def test_an_example_has_what_is_needed(schema: dict[str, Any], value: object) -> None:
    assert example(schema) == value

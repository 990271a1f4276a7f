"""Bodies and queries held against their whole schema before anything is sent, as documents have it."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from tests.openapi_documents import FORM, JSON, posted, posted_tool, refused, sent

from toolsrv_catalogs.layout import tool_document
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_registry.api import Api
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.calls.schema_keywords import pattern_matches
from toolsrv_runtime.errors import ArgumentError

CAT = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["cat"]}}}
DOG = {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "dog"}}}
CAT["properties"] |= {"lives": {"type": "integer", "maximum": 9}}  # type: ignore[operator]
DOG["properties"] |= {"lives": {"type": "string"}}  # type: ignore[operator]


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_each_variant_of_a_body_is_called_and_held_to_its_own_schema(key: str) -> None:
    api = posted({key: [CAT, DOG]})
    assert [one.enum for one in api.required] == [("cat", "dog")]
    assert sent(api, {"kind": "cat", "lives": 9}) == '{"kind":"cat","lives":9}'
    assert sent(api, {"kind": "dog", "lives": "many"}) == '{"kind":"dog","lives":"many"}'
    assert "'lives' must be at most 9, not 10" in refused(api, {"kind": "cat", "lives": 10})
    assert "'lives' must be a whole number" in refused(api, {"kind": "cat", "lives": "many"})
    assert "'kind' must be one of cat, dog" in refused(api, {"kind": "cow"})
    assert "'kind' is missing" in refused(api, {"lives": 1})


def test_a_body_of_a_list_or_an_object_is_one_argument() -> None:
    api = posted({"oneOf": [CAT, {"type": "array", "minItems": 1, "items": CAT}]})
    assert [one.name for one in api.required] == ["body"]
    assert sent(api, {"body": {"kind": "cat"}}) == '{"kind":"cat"}'
    assert sent(api, {"body": [{"kind": "cat"}]}) == '[{"kind":"cat"}]'
    assert "at [0].lives must be a whole number" in refused(
        api, {"body": [{"kind": "cat", "lives": "x"}]}
    )
    assert "must be a JSON object or a list, not 5" in refused(api, {"body": 5})


def test_a_mapping_of_a_discriminator_names_the_variants() -> None:
    base = {
        "type": "object",
        "required": ["petType"],
        "properties": {"petType": {"type": "string"}},
        "discriminator": {
            "propertyName": "petType",
            "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog"},
        },
    }
    own = {"Cat": {"lives": {"type": "integer"}}, "Dog": {"barks": {"type": "boolean"}}}
    schemas = {
        name: {
            "allOf": [
                {"$ref": "#/components/schemas/Pet"},
                {"type": "object", "required": list(one), "properties": one},
            ]
        }
        for name, one in own.items()
    }
    api = posted({"$ref": "#/components/schemas/Pet"}, schemas | {"Pet": base})
    assert {one.name for one in api.parameters} == {"petType", "lives", "barks"}
    assert sent(api, {"petType": "dog", "barks": True}) == '{"petType":"dog","barks":true}'
    assert "lacks lives" in refused(api, {"petType": "cat", "barks": True})
    assert "'pettype' must be one of cat, dog" in refused(api, {"petType": "cow", "lives": 1})


def test_a_base_whose_variants_nothing_lists_takes_their_properties() -> None:
    base = {"properties": {"kind": {"type": "string"}}, "discriminator": {"propertyName": "kind"}}
    api = posted(base | {"required": ["kind"]})
    assert sent(api, {"kind": "a", "size": 2}) == '{"kind":"a","size":2}'


def test_parts_narrow_what_others_say_of_a_property() -> None:
    base = {"properties": {"kind": {"type": "string", "enum": ["a", "b", "c"]}, "n": {}}}
    own = {"properties": {"kind": {"enum": ["b"]}, "n": {"type": "integer"}}, "required": ["n"]}
    api = posted({"allOf": [base, own]})
    kind = next(one for one in api.parameters if one.name == "kind")
    assert kind.enum == ("b",)
    assert sent(api, {"kind": "b", "n": "1"}) == '{"n":1,"kind":"b"}'
    assert "'kind' must be one of b, not 'a'" in refused(api, {"kind": "a", "n": 1})
    assert "'n' must be a whole number" in refused(api, {"kind": "b", "n": "x"})


def test_what_a_part_demands_is_not_asked_of_read_only_properties() -> None:
    base = {"properties": {"id": {"readOnly": True}, "in": {"type": "object"}, "n": {}}}
    inner = {"allOf": [base, {"required": ["id", "n"]}]}
    api = posted({"properties": {"o": inner}})
    assert sent(api, {"o": {"n": 1}}) == '{"o":{"n":1}}'
    assert "'o' lacks n" in refused(api, {"o": {}})


@pytest.mark.parametrize(
    ("schema", "good", "bad", "text"),
    [
        ({"type": "integer", "minimum": 1}, 1, 0, "at least 1, not 0"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 2, 1, "more than 1"),
        ({"type": "number", "exclusiveMaximum": 2.5}, 2.4, 2.5, "less than 2.5"),
        ({"type": "number", "multipleOf": 0.01}, 19.99, 19.999, "a multiple of 0.01"),
        ({"type": "number", "multipleOf": 0.1}, 0.3, 0.35, "a multiple of 0.1"),
        ({"type": "integer", "multipleOf": 3}, 9007199254740993, 9007199254740992, "of 3"),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "ab", "a", "at least 2 characters"),
        ({"type": "string", "pattern": "^[A-Z]{2}$"}, "NO", "NO\n", r"matches /\^\[A-Z\]"),
        ({"type": "string", "pattern": r"^\p{L}+$"}, "Łódź", "1", "matches"),
        ({"type": "string", "pattern": r"^\d+$"}, "12", "١٢", "matches"),
        ({"type": "string", "pattern": "("}, "(", None, "must be text"),
        ({"type": "array", "uniqueItems": True}, [1, True, "1"], [1, 1.0], "no item twice"),
        ({"type": "array", "uniqueItems": True}, [{"a": 1}], [{"a": 1}, {"a": 1}], "no item twice"),
        ({"type": "array", "minItems": 1, "maxItems": 2}, [1], [], "at least 1 items"),
        ({"type": "object", "minProperties": 1}, {"a": 1}, {}, "at least 1 properties"),
        ({"dependentRequired": {"a": ["b"]}, "type": "object"}, {"b": 1}, {"a": 1}, "lacks b"),
        ({"type": "object", "additionalProperties": False, "properties": {"a": {}}}, {"a": 1},
         {"b": 1}, "takes no 'b'"),
        ({"type": "object", "patternProperties": {"^x-": {"type": "string"}},
          "additionalProperties": False}, {"x-a": "1"}, {"x-a": []}, "x-a must be text"),
        ({"type": "object", "propertyNames": {"maxLength": 2}}, {"ab": 1}, {"abc": 1}, "2 char"),
        ({"type": "string", "enum": ["a", None], "nullable": True}, None, "b", "must be"),
        ({"type": ["string", "null"], "enum": ["a", None]}, None, "b", "one of a, null"),
        ({"not": {"required": ["a"]}, "type": "object"}, {"b": 1}, {"a": 1}, "describes"),
        ({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
          "then": {"required": ["b"]}, "type": "object"}, {"a": 2}, {"a": 1}, "lacks b"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("deep", [False, True])
def test_bounds_of_a_value_hold_at_every_level(
    schema: dict[str, Any], good: Any, bad: Any, text: str, deep: bool
) -> None:
    inner: dict[str, Any] = {"type": "object", "properties": {"w": schema}}
    api = posted({"type": "object", "properties": {"v": inner if deep else schema}})

    def given(value: Any) -> dict[str, Any]:
        return {"v": {"w": value} if deep else value}

    assert json.loads(sent(api, given(good))) == given(good)
    with pytest.raises(ArgumentError, match=text) as caught:
        sent(api, given(bad))
    assert caught.value.message.count("the argument 'v'") == 1


def test_properties_of_a_body_depend_on_each_other() -> None:
    schema = {
        "type": "object",
        "properties": {"card": {"type": "string"}, "name": {"type": "string"}},
        "dependentRequired": {"card": ["name"]},
        "minProperties": 1,
    }
    for media in (JSON, FORM):
        api = posted(schema, media=media)
        assert "the body lacks name, which 'card' needs" in refused(api, {"card": "1"})
        assert "at least 1 properties" in refused(api, {})
        assert "1" in sent(api, {"card": "1", "name": "a"})


def test_an_optional_body_has_its_required_properties_once_it_is_given() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {}, "b": {}}}
    api = posted(schema, required=False)
    assert sent(api, {}) == ""
    assert "the body lacks a" in refused(api, {"b": 1})


def test_variants_of_a_form_are_held_to_numbers_given_as_text() -> None:
    schema = {
        "oneOf": [{"required": ["n"], "properties": {"n": {"type": "integer", "minimum": 5}}}]
    }
    api = posted(schema | {"properties": {"m": {"type": "integer"}}}, media=FORM)
    assert sent(api, {"n": "5"}) == "n=5"
    assert "at least 5" in refused(api, {"n": "4"})


def querystring(required: bool, schema: dict[str, Any]) -> Api:
    content = {FORM: {"schema": schema}}
    entry = {"name": "q", "in": "querystring", "required": required, "content": content}
    return posted_tool({"parameters": [entry]}).apis[0]


def test_a_query_string_is_held_to_its_schema() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "dependentRequired": {"b": ["c"]},
    }
    whole = querystring(True, schema)
    assert "'a' is missing" in refused(whole, {})
    assert "the query string lacks c, which 'b' needs" in refused(whole, {"a": 1, "b": "x"})
    part = querystring(False, schema)
    assert build_request(part, args.bind(part, {})).url.query == b""
    assert "the query string lacks a" in refused(part, {"b": "x"})
    assert build_request(part, args.bind(part, {"a": 1})).url.query == b"a=1"


def test_a_required_query_string_is_never_left_out() -> None:
    api = querystring(True, {"type": "object", "properties": {"a": {"type": "string"}}})
    assert "the query string must be an object of at least 1 properties" in refused(api, {})


@pytest.mark.parametrize(
    "number",
    ["0.1000000000000000055511151231257827", "9007199254740993", "1.10", "1e2", "-0.0",
     "123456789012345678901234567890", "9007199254740993.0"],
)  # fmt: skip
def test_digits_of_numbers_are_sent_as_they_are_given(number: str) -> None:
    api = posted({"type": "object", "properties": {"v": {"type": "number"}, "o": {}}})
    text = f'{{"v":{number},"o":[{{"a":{number}}}]}}'
    assert sent(api, text) == text
    if "e" not in number and number != "-0.0":
        assert sent(api, f'{{"v":"{number}"}}') == f'{{"v":{number}}}'  # as clients have to


def test_a_whole_number_beyond_a_float_is_sent_whole() -> None:
    api = posted({"type": "object", "properties": {"v": {"type": "integer"}}})
    assert sent(api, '{"v": 9007199254740993.0}') == '{"v":9007199254740993}'
    assert sent(api, '{"v": 1e2}') == '{"v":100}'


def test_a_default_of_an_empty_text_is_sent_for_a_required_argument() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": {"type": "string", "default": ""},
            "b": {"type": "integer", "nullable": True, "default": None},
        },
    }
    assert sent(posted(schema), {}) == '{"a":"","b":null}'


def test_what_arguments_fulfil_together_survives_an_export() -> None:
    content = {"required": True, "content": {JSON: {"schema": {"oneOf": [CAT, DOG]}}}}
    tool = posted_tool({"requestBody": content})
    again = read_tool(tool_document(tool), "Other")
    assert again.apis[0].together == tool.apis[0].together
    assert again.apis[0].parameters == tool.apis[0].parameters


def test_a_pattern_that_takes_for_ever_is_left_open() -> None:
    started = time.monotonic()
    assert pattern_matches("^(a|aa)+$", "a" * 60 + "!") is None
    assert time.monotonic() - started < 2
    assert pattern_matches("[", "a") is None
    assert pattern_matches("(" * 900, "a") is None


def test_a_schema_that_leads_back_to_itself_is_kept_as_far_as_it_fits() -> None:
    node = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    }
    api = posted({"properties": {"root": {"$ref": "#/components/schemas/Node"}}}, {"Node": node})
    assert "at children[0].children[0] lacks name" in refused(
        api, {"root": {"name": "a", "children": [{"name": "b", "children": [{}]}]}}
    )


def test_a_number_with_its_digits_is_a_number_and_is_copied_whole() -> None:
    value = copy.deepcopy(args.parse('{"v": [1.10]}'))["v"][0]
    assert (value, repr(value), value + 1) == (1.1, "1.10", 2.1)


# --- exactly one variant, and no property that none of them names ---------------------------------


@pytest.mark.parametrize(
    ("variants", "good", "bad"),
    [
        ([{"type": "integer"}, {"type": "number", "minimum": 5}], [1, 5.5], 6),
        ([{"type": "string", "maxLength": 3}, {"type": "string", "minLength": 3}], ["a", "abcd"], "abc"),
        ([{"required": ["a"]}, {"required": ["b"]}], [{"a": 1}, {"b": 1}], {"a": 1, "b": 1}),
        ([{"type": "array", "items": {"type": "string"}}, {"type": "array", "maxItems": 1}], [["a", "b"], [1]], ["a"]),
        ([{"type": "string", "nullable": True}, {"type": "integer", "nullable": True}], ["a", 1], None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("deep", [False, True])
def test_a_value_fits_exactly_one_variant_of_one_of(
    variants: list[Any], good: list[Any], bad: Any, deep: bool
) -> None:
    schema = {"oneOf": variants}
    inner = {"type": "object", "properties": {"w": schema}} if deep else schema
    api = posted({"type": "object", "properties": {"v": inner}})
    loose = posted({"type": "object", "properties": {"v": {"anyOf": variants}}})

    def given(value: Any) -> dict[str, Any]:
        return {"v": {"w": value} if deep else value}

    for value in good:
        assert json.loads(sent(api, given(value))) == given(value)
    text = refused(api, given(bad))
    assert "must fit one variant alone, and fits 1 (" in text
    assert ") and 2 (" in text
    assert sent(loose, {"v": bad})  # any of them is enough where the document says so


def test_a_refusal_says_which_variants_a_body_fits() -> None:
    card = {"type": "object", "title": "Card", "required": ["number"], "properties": {"number": {}}}
    bank = {
        "type": "object",
        "required": ["iban"],
        "properties": {"iban": {"type": "string"}, "bic": {}},
    }
    api = posted({"oneOf": [card, bank]})
    assert sent(api, {"iban": "NO1"}) == '{"iban":"NO1"}'
    assert "the body must fit one variant alone, and fits 1 (Card with number) and 2 (a JSON object with iban)" in refused(
        api, {"number": 1, "iban": "NO1"}
    )  # fmt: skip
    assert "the body lacks" in refused(api, {})


def test_a_text_that_fits_two_variants_is_not_read_as_a_third() -> None:
    variants = [{"type": "string"}, {"type": "string", "maxLength": 9}, {"type": "boolean"}]
    api = posted({"properties": {"v": {"oneOf": variants}}})
    assert sent(api, {"v": True}) == '{"v":true}'
    assert "fits 1 (text) and 2 (text)" in refused(api, {"v": "true"})


def test_a_number_given_as_text_is_counted_once_it_is_read() -> None:
    variants = [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 5}]
    api = posted({"properties": {"v": {"oneOf": variants}}})
    assert sent(api, {"v": "4"}) == '{"v":4}'
    assert "and fits 1 (a whole number) and 2" in refused(api, {"v": "5"})


@pytest.mark.parametrize(
    "variant",
    [
        {"type": "string", "format": "of its own"},
        {"type": "string", "pattern": "x" * 2_000},
        {"type": "array", "contains": {"$ref": "#/nowhere"}, "maxContains": 0},
        {"$ref": "#/nowhere"},
        {"type": "strange"},
        {},
    ],
)
def test_what_cannot_be_held_whole_counts_against_no_other_variant(variant: Any) -> None:
    api = posted({"properties": {"v": {"oneOf": [variant, {"type": ["string", "array"]}]}}})
    for value in ("a", ["a"]):
        assert json.loads(sent(api, {"v": value})) == {"v": value}


BASE = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"allOf": [BASE], "properties": {"a": {}}, "unevaluatedProperties": False},
         {"id": 1, "a": 2}, {"id": 1, "b": 2}),
        ({"$ref": "#/components/schemas/Base", "properties": {"a": {}}, "unevaluatedProperties": False},
         {"id": 1, "a": 2}, {"id": 1, "b": 2}),
        ({"anyOf": [BASE, {"required": ["a"], "properties": {"a": {}}}], "unevaluatedProperties": False},
         {"id": 1}, {"id": "x", "a": 1}),
        ({"oneOf": [BASE, {"required": ["a"], "properties": {"a": {}}}], "unevaluatedProperties": False},
         {"a": 1}, {"a": 1, "b": 1}),
        ({"if": {"required": ["k"], "properties": {"k": {"const": 1}}}, "then": {"properties": {"a": {}}},
          "unevaluatedProperties": False}, {"k": 1, "a": 1}, {"k": 2, "a": 1}),
        ({"dependentSchemas": {"k": {"properties": {"a": {}}}}, "properties": {"k": {}},
          "unevaluatedProperties": False}, {"k": 1, "a": 1}, {"a": 1}),
        ({"allOf": [BASE], "patternProperties": {"^x-": {}}, "unevaluatedProperties": {"type": "string"}},
         {"id": 1, "x-a": 1, "b": "c"}, {"id": 1, "b": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("deep", [False, True])
def test_properties_that_no_part_names_are_refused(
    schema: dict[str, Any], good: dict[str, Any], bad: dict[str, Any], deep: bool
) -> None:
    api = posted(
        {"type": "object", "properties": {"v": schema}} if deep else schema, {"Base": BASE}
    )
    assert json.loads(sent(api, {"v": good} if deep else good)) == ({"v": good} if deep else good)
    text = refused(api, {"v": bad} if deep else bad)
    words = ("takes no '", "must be text", "unknown argument", "must be a whole number")
    assert any(word in text for word in words)


def test_properties_of_a_part_that_is_not_kept_are_not_refused() -> None:
    deep: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
    for _ in range(20):
        deep = {"allOf": [deep, {"properties": {"b": {}}}]}
    api = posted({"properties": {"v": deep | {"unevaluatedProperties": False}}})
    assert sent(api, {"v": {"a": 1}}) == '{"v":{"a":1}}'
    dead = {"allOf": [{"$ref": "#/nowhere"}], "unevaluatedProperties": False}
    assert sent(posted({"properties": {"v": dead}}), {"v": {"a": 1}}) == '{"v":{"a":1}}'


def test_variants_that_differ_in_read_only_properties_alone_may_both_fit() -> None:
    base = {"properties": {"id": {"type": "integer", "readOnly": True}, "n": {}}}
    parts = [{"required": ["id"]}, {"required": ["n"]}]
    api = posted({"properties": {"v": {"allOf": [base, {"oneOf": parts}]}}})
    assert sent(api, {"v": {"n": 1}}) == '{"v":{"n":1}}'
    assert sent(api, {"v": {}}) == '{"v":{}}'


def test_a_discriminator_says_which_variant_is_meant_where_several_fit() -> None:
    schemas = {
        name: {
            "type": "object",
            "properties": {"pet": {"type": "string"}, key: {"type": "integer"}},
        }
        for name, key in (("Cat", "lives"), ("Dog", "age"))
    }
    listed = [{"$ref": f"#/components/schemas/{name}"} for name in schemas]
    either = {"oneOf": listed, "discriminator": {"propertyName": "pet"}}
    api = posted({"properties": {"v": either}}, schemas)
    assert sent(api, {"v": {"pet": "Cat", "lives": 9}}) == '{"v":{"pet":"Cat","lives":9}}'
    alone = posted({"properties": {"v": {"oneOf": listed}}}, schemas)
    assert "fits 1 (a JSON object with pet, lives) and 2 (" in refused(alone, {"v": {"lives": 9}})


def test_every_media_type_of_json_is_sent_as_json() -> None:
    for media in ("text/json", "application/vnd.api+json; charset=utf-8"):
        api = posted({"properties": {"a": {"type": "integer"}}}, media=media)
        request = build_request(api, args.bind(api, {"a": 1}))
        assert (request.content, request.headers["Content-Type"]) == (b'{"a":1}', media)


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_numbers_given_as_text_are_read_within_variants(key: str) -> None:
    sized = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    api = posted({"properties": {"v": {key: [sized, {"type": "array", "items": sized}]}}})
    assert sent(api, {"v": {"n": "5"}}) == '{"v":{"n":5}}'
    assert sent(api, {"v": [{"n": "5"}]}) == '{"v":[{"n":5}]}'
    assert "at n must be a whole number" in refused(api, {"v": {"n": "five"}})


def test_a_part_that_takes_any_property_leaves_none_unevaluated() -> None:
    part: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    closed = {"unevaluatedProperties": False}
    free = posted({"allOf": [part | {"additionalProperties": True}], **closed})
    assert sent(free, {"a": 1, "b": [2]}) == '{"a":1,"b":[2]}'
    texts = posted({"allOf": [part | {"additionalProperties": {"type": "string"}}], **closed})
    assert sent(texts, {"a": 1, "b": "c"}) == '{"a":1,"b":"c"}'
    assert "'b' must be text" in refused(texts, {"a": 1, "b": [2]})

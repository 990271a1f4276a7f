"""Every keyword of a document's schemas is enforced, and no value is rewritten to pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.openapi_documents import JSON, posted, posted_tool, refused, sent

from toolsrv_catalogs.layout import tool_document
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_runtime.calls.schema_check import schema_fault
from toolsrv_runtime.calls.schema_keywords import format_fault, is_known_format

CAT = {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "cat"}}}
DOG = {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "dog"}}}
PAIR = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}


@pytest.mark.parametrize(
    ("schema", "good", "bad", "why"),
    [
        ({"prefixItems": [{"type": "integer"}]}, [1, "any"], ["a"], "at [0] must be a whole number"),
        ({"contains": {"const": 7}}, [1, 7], [1, 2], "a list with an item that its schema asks for"),
        ({"contains": {"const": 7}, "minContains": 2}, [7, 1, 7], [7, 1], "at least 2 items"),
        ({"contains": {"const": 7}, "maxContains": 1}, [7, 1], [7, 7], "at most 1 items"),
        ({"contains": {"const": 7}, "minContains": 0}, [], None, ""),
        (PAIR | {"unevaluatedItems": False}, [1, "a"], [1, "a", 2], "takes no item 3"),
        (PAIR | {"unevaluatedItems": {"type": "boolean"}}, [1, "a", True], [1, "a", 2], "at [2] must be true or false"),
        ({"allOf": [PAIR], "unevaluatedItems": False}, [1, "a"], [1, "a", 2], "takes no item 3"),
        ({"$ref": "#/components/schemas/Pair", "unevaluatedItems": False}, [1], [1, "a", 2, 3], "takes no item 3, 4"),
        ({"anyOf": [PAIR, {"contains": {"const": 7}}], "unevaluatedItems": False}, [1, "a"], [1, "a", 2], "takes no item 3"),
        ({"anyOf": [PAIR, {"contains": {"const": 7}}], "unevaluatedItems": False}, [1, "a", 7], [1, "a", 7, 8], "takes no item 4"),
        ({"if": {"maxItems": 1}, "then": {"prefixItems": [{}]}, "unevaluatedItems": False}, ["a"], ["a", "b"], "takes no item 1, 2"),
        ({"items": {"type": "integer"}, "unevaluatedItems": False}, [1, 2], ["a"], "at [0] must be a whole number"),
        ({"allOf": [{"items": {}}], "unevaluatedItems": False}, [1, 2], None, ""),
        ({"uniqueItems": True}, [1, 2], [1, 1], "must have no item twice"),
        ({"propertyNames": {"pattern": "^x"}}, {"x1": 1}, {"y": 1}, "text that matches /^x/"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}, "lacks b"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"b": 2}, {"a": 1}, "lacks b"),
        ({"minProperties": 2}, {"a": 1, "b": 2}, {"a": 1}, "an object of at least 2 properties"),
        ({"type": "integer", "format": "uint8"}, 255, 256, "from 0 up of 8 bits"),
        ({"type": "integer", "format": "int16"}, -32768, 32768, "a whole number of 16 bits"),
        ({"type": "string", "format": "idn-email"}, "ä@ö.example", "ä", "an e-mail address"),
    ],
)  # fmt: skip
def test_every_keyword_of_a_document_is_enforced(
    schema: dict[str, Any], good: Any, bad: Any, why: str
) -> None:
    api = posted({"type": "object", "properties": {"v": schema}}, {"Pair": PAIR})
    assert json.loads(sent(api, {"v": good})) == {"v": good}
    assert bad is None or why in refused(api, {"v": bad})


def test_a_body_of_inherited_parts_is_one_object_and_nothing_beside_its_arguments() -> None:
    named = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    aged = {
        "allOf": [{"$ref": "#/components/schemas/Named"}, {"properties": {"age": {"minimum": 1}}}]
    }
    api = posted({"allOf": [aged, {"required": ["age"]}]}, {"Named": named})
    assert api.together == ()
    assert [one.name for one in api.required] == ["name", "age"]
    assert "'age' must be at least 1" in refused(api, {"name": "x", "age": 0})
    inner = posted({"properties": {"v": {"allOf": [aged]}}}, {"Named": named})
    assert inner.optional[0].json_schema == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"minimum": 1}},
        "required": ["name"],
    }


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"minimum": 1}, 0),
        ({"pattern": "^x"}, "5"),
        ({"maxLength": 2}, "true"),
        ({"pattern": "^x"}, "a"),
        ({"multipleOf": 2}, 3),
        ({"minItems": 2}, ["a"]),
    ],
)
def test_no_value_is_read_as_another_type_to_evade_what_is_demanded(schema: Any, bad: Any) -> None:
    api = posted({"type": "object", "properties": {"v": schema}})
    assert "'v' must be" in refused(api, {"v": bad})


@pytest.mark.parametrize(
    ("parts", "good", "bad"),
    [
        ([{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"maximum": 3}}}], 2, 4),
        ([{"type": ["integer", "null"]}, {"minimum": 1}], 1, 0),
        ([{"type": "object", "additionalProperties": {"type": "integer"}}, {"properties": {"b": {}}}],
         {"a": 1}, {"a": "x"}),
    ],
)  # fmt: skip
def test_parts_that_say_otherwise_within_one_object_stay_apart(
    parts: list[Any], good: Any, bad: Any
) -> None:
    whole = posted({"properties": {"v": {"allOf": parts}}})
    for value, holds in ((good, True), (bad, False)):
        given = {"v": value if "properties" not in parts[0] else {"a": value}}
        assert json.loads(sent(whole, given)) == given if holds else refused(whole, given)


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [CAT, DOG], "unevaluatedProperties": False},
        {"allOf": [PAIR], "contains": {"type": "string"}, "maxContains": 1, "unevaluatedItems": False},
        {"type": "integer", "description": "How many", "default": 3, "examples": [4], "deprecated": True},
    ],
)  # fmt: skip
def test_schemas_survive_an_export(schema: dict[str, Any]) -> None:
    content = {JSON: {"schema": {"properties": {"v": schema}}}}
    tool = posted_tool({"requestBody": {"required": True, "content": content}})
    assert read_tool(tool_document(tool), "Other").apis[0].parameters == tool.apis[0].parameters


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "24-02-09", "2024-02-29T00:00Z", "٢٠٢٤-٠٢-٠١"]),
        ("time", ["14:30", "23:59:60Z", "14:30:00.5+02:00", "14:30z"], ["24:00", "14:60", "1430", "14:30:61"]),
        ("date-time", ["2024-02-29T10:00:00Z", "2024-02-29 10:00", "2024-02-29t10:00z"], ["2024-02-30T10:00Z", "2024-02-29", "10:00"]),
        ("email", ["a@b", "a.b+c@example.org", '"a b"@example.org'], ["a", "@b", "a@", "a@b@c", "a b@c"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", "x" * 36]),
        ("ipv4", ["1.2.3.4"], ["1.2.3", "1.2.3.256", "::1"]),
        ("ipv6", ["::1", "2001:db8::1"], ["1.2.3.4", "::g"]),
        ("uri", ["https://example.org/a?b#c", "HTTP://EXAMPLE.ORG", "mailto:a@b", "urn:x:1"], ["/a", "example.org", "a b:c", "http://a b", "é:a"]),
        ("hostname", ["example.org", "LOCALHOST", "a-b.c_d", "example.org."], ["", "-a", "a-", "a b", "a..b", "x" * 254]),
        ("int8", [-128, 127, 0], [-129, 128]),
        ("int64", [-(2**63), 2**63 - 1], [-(2**63) - 1, 2**63]),
        ("uint16", [0, 65535], [-1, 65536]),
        ("of its own", ["anything", 5], []),
    ],
)  # fmt: skip
def test_a_value_is_held_to_a_format_that_is_known(
    form: str, good: list[Any], bad: list[Any]
) -> None:
    assert [one for one in good if format_fault(form, one)] == []
    assert [one for one in bad if not format_fault(form, one)] == []
    assert format_fault(form, None) == format_fault(form, True) == format_fault(form, []) == ""
    assert is_known_format(form) == bool(bad)


@pytest.mark.parametrize("form", [None, 5, [], {}])
def test_a_format_that_is_no_text_holds_nobody(form: Any) -> None:
    assert not is_known_format(form)
    assert format_fault(form, "x") == ""
    assert schema_fault({"oneOf": [{"format": form}, {"type": "integer"}]}, "x") is None
    both = schema_fault({"oneOf": [{"format": form}, {"type": "string"}]}, "x")
    assert (both is None) == (form is not None)  # a format that is not known may not fit


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://schemas.test/none"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
    ],
)
def test_a_reference_that_leads_nowhere_is_left_to_who_is_called(schema: dict[str, Any]) -> None:
    assert schema_fault(schema, {"a": 1}) is None

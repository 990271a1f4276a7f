"""From an OpenAPI document to the wire: a value arrives as it was given, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests import openapi_documents
from tests.openapi_documents import FORM, JSON, NO_FILES, document, read_api

from toolsrv_registry.api import Api
from toolsrv_registry.functions import argument_schema, function_object
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.errors import ArgumentError


def read(
    operation: dict[str, Any],
    path: str = "/x",
    method: str = "get",
    files: Mapping[str, Any] = NO_FILES,
) -> Api:
    return read_api(document(operation, path, method), files)


def query(schema: dict[str, Any], **more: Any) -> Api:
    return read({"parameters": [{"name": "v", "in": "query", "schema": schema} | more]})


def body(schema: dict[str, Any], media: str = JSON, *, required: tuple[str, ...] = ()) -> Api:
    whole = {"type": "object", "properties": {"v": schema}, "required": list(required)}
    content = {"requestBody": {"required": True, "content": {media: {"schema": whole}}}}
    return read(content, method="post")


def sent(api: Api, value: Any) -> str:
    """The query or the body of a call with ``v``."""
    request = build_request(api, args.bind(api, {"v": value}))
    return request.content.decode() or request.url.query.decode()


# --- what nobody gave ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameter",
    [
        {"schema": {"type": "integer"}, "example": 1},
        {"schema": {"type": "integer", "example": 1}},
        {"schema": {"type": "integer", "examples": [1]}},
        {"schema": {"type": "integer"}, "examples": {"one": {"value": 1}}},
        {"content": {JSON: {"schema": {"type": "integer"}, "example": 1}}},
        {"schema": {"oneOf": [{"type": "integer", "example": 1}, {"type": "string"}]}},
        {"schema": {"allOf": [{"type": "integer", "example": 1}]}},
    ],
)
@pytest.mark.parametrize("place", ["path", "query", "header", "cookie"])
def test_an_example_of_a_parameter_is_never_sent(parameter: dict[str, Any], place: str) -> None:
    entry = {"name": "v", "in": place, "required": True} | parameter
    api = read({"parameters": [entry]}, "/x/{v}" if place == "path" else "/x")
    (only,) = api.required
    assert (only.default, only.example) == ("", 1)
    with pytest.raises(ArgumentError, match="'v' is missing"):
        args.bind(api, {})
    assert function_object(api)["parameters"]["properties"]["v"]["example_value"] == 1


@pytest.mark.parametrize("media", [JSON, FORM, "multipart/form-data"])
def test_an_example_of_a_body_is_never_sent(media: str) -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "number"}, "b": {"type": "string", "example": "x"}},
    }
    content = {media: {"schema": schema, "example": {"a": 1, "b": "y"}}}
    api = read({"requestBody": {"required": True, "content": content}}, method="post")
    with pytest.raises(ArgumentError, match=r"'a' is missing.*'b' is missing"):
        args.bind(api, {})


def test_a_default_is_sent_for_a_required_parameter_only() -> None:
    entries = [
        {"name": name, "in": "query", "required": name == "v", "schema": {"default": 3}}
        for name in ("v", "w")
    ]
    assert args.bind(read({"parameters": entries}), {}) == {"v": 3}


# --- what was given --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "string"}, "", ""),
        ({"type": ["string", "null"]}, None, None),
        ({"type": "string", "nullable": True}, None, None),
        ({"type": "string", "enum": ["a"], "nullable": True}, None, None),
        ({"nullable": True, "allOf": [{"type": "object"}]}, None, None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        ({}, None, None),
        ({}, {"a": [1]}, {"a": [1]}),
        ({}, "5", "5"),
        ({"const": 2}, 2, 2),
        ({"enum": [1, 2]}, 1, 1),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, 5.0, 5.0),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "string", "format": "date"}, "2027-05-03", "2027-05-03"),
        ({"type": "string", "format": "date-time"}, "2027-05-03 10:00", "2027-05-03 10:00"),
        ({"type": "string", "format": "unheard-of"}, "3 May 2027", "3 May 2027"),
        ({"type": "string", "format": "time"}, "10:15:30Z", "10:15:30Z"),
        ({"type": "string", "enum": ["USD", "EUR"]}, "usd", "USD"),
        ({"type": ["integer", "string"]}, "A-7", "A-7"),
        ({"type": ["integer", "string"]}, "007", "007"),
        ({"type": ["integer", "string"]}, 7, 7),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, ["a", "b"], ["a", "b"]),
        ({"oneOf": [{"type": "object"}, {"type": "string"}]}, "auto", "auto"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 5, 5),
        ({"anyOf": [{"type": "integer"}, {"type": "integer"}]}, 5, 5),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "1, 2", [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, "a", ["a"]),
        ({"type": "array", "items": {"type": "string"}}, '["a, b"]', ["a, b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a,b", ["a", "b"]),
        ({"type": "array"}, 5, [5]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"type": "object", "properties": {"n": {"type": "number"}}}, {"n": "1"}, {"n": 1}),
        ({"type": "string", "enum": [1, 2]}, 1, "1"),
        ({"type": "integer", "enum": ["1", "2"]}, "1", 1),
        ({"type": "wrong"}, [1], [1]),
        ({"type": "array", "prefixItems": [{"type": "number"}], "items": {}}, [1, 2], [1, 2]),
        ({"type": "boolean", "enum": ["true", "false"]}, True, True),
    ],
)
def test_a_value_arrives_in_a_json_body_as_it_was_given(
    schema: dict[str, Any], value: Any, wanted: Any
) -> None:
    got = json.loads(sent(body(schema), value))["v"]
    assert (got, type(got)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *(
            ({"type": "integer"}, value)
            for value in ("02134", "1,2,4", "12%", "1e3", "+49", "1_000", "٣", "", 1.5, True, None)
        ),
        ({"type": "array", "prefixItems": [{"type": "number"}], "items": False}, [1, 2]),
        ({"type": "string", "format": "date"}, "2026-11-26T10:00:00Z"),
        ({"type": "string", "format": "date"}, "2026-02-30"),
        ({"type": "string", "format": "date-time"}, "tomorrow"),
        ({"type": "string", "format": "uuid"}, "1234"),
        ({"type": "string", "format": "ipv4"}, "1.2.3"),
        ({"type": "string", "format": "email"}, "a b@c"),
        ({"type": "string", "format": "uri"}, "example"),
        ({"type": "integer", "format": "int32"}, 2**31),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, None),
        ({"type": "string"}, ["a"]),
        ({"type": "object"}, "no"),
        ({"type": "object"}, [1]),
        ({"type": "object", "required": ["n"], "properties": {"n": {}}}, {}),
        ({"type": "object", "properties": {"n": {"type": "number"}}}, {"n": "02"}),
        ({"type": "array", "items": {"type": "string"}}, "Paris, France"),
        ({"type": "array", "items": {"type": "string"}}, ""),
        ({"type": "string", "enum": ["a", None]}, "null"),
        ({"type": "string", "enum": ["Ab", "AB"]}, "ab"),
        ({"type": "array", "items": {"enum": ["open", "closed"]}}, ["open", "nope"]),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2.5]),
        ({"type": "integer", "enum": [1, 2, 5]}, 3),
        ({"enum": ["a", "b"]}, "c"),
        ({"const": "a"}, "b"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, [1]),
        ({"allOf": [{"type": "integer"}, {"enum": [1, 2]}]}, 3),
    ],
)
@pytest.mark.parametrize("place", ["body", "query"])
def test_a_value_that_its_schema_does_not_take_is_refused(
    schema: dict[str, Any], value: Any, place: str
) -> None:
    api = body(schema) if place == "body" else query(schema)
    with pytest.raises(ArgumentError, match="the argument 'v'") as caught:
        args.bind(api, {"v": value})
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "string"}, "", "v="),
        ({"type": "integer"}, 5.0, "v=5"),
        ({"type": "number"}, "2.50", "v=2.50"),
        ({"type": ["integer", "string"]}, "007", "v=007"),
        ({"type": "string", "format": "date-time"}, "2026-11-26T01:00Z", "v=2026-11-26T01%3A00Z"),
        ({"type": "string", "format": "time"}, "10:15:30", "v=10%3A15%3A30"),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, ["a", "b"], "v=a&v=b"),
        ({"type": "boolean"}, "FALSE", "v=false"),
    ],
)
def test_a_value_arrives_in_a_query_as_it_was_given(
    schema: dict[str, Any], value: Any, wanted: str
) -> None:
    assert sent(query(schema), value) == wanted


@pytest.mark.parametrize("media", [FORM, "multipart/form-data"])
def test_null_is_refused_where_only_texts_can_stand(media: str) -> None:
    nullable = {"type": ["string", "null"]}
    for api in (query(nullable), body(nullable, media)):
        with pytest.raises(ArgumentError, match="null"):
            args.bind(api, {"v": None})
    assert b'name="v"' in build_request(body(nullable, "multipart/form-data"), {"v": ""}).content
    assert sent(body(nullable, FORM), "") == "v="


def test_a_body_of_null_alone_is_sent() -> None:
    api = body({"type": ["integer", "null"]}, required=("v",))
    assert sent(api, None) == '{"v":null}'


def test_an_empty_text_cannot_stand_in_a_path() -> None:
    api = read({"parameters": [{"name": "v", "in": "path", "schema": {}}]}, "/x/{v}")
    with pytest.raises(ArgumentError, match="'v'"):
        build_request(api, args.bind(api, {"v": ""}))


def test_every_allowed_value_of_a_long_list_is_taken_and_others_are_not() -> None:
    values = [f"v{number}" for number in range(1_000)]
    api = query({"type": "string", "enum": values})
    assert sent(api, "v999") == "v=v999"
    with pytest.raises(ArgumentError, match=r"one of v0, .*\(1000 in all\)"):
        args.bind(api, {"v": "v1000"})
    assert "enum" not in argument_schema(api)["properties"]["v"]  # too long to be shown


@pytest.mark.parametrize("odd", ["a\u200bb", "x" * 300, "a\r\nb"])
def test_a_list_of_allowed_values_that_cannot_be_kept_whole_is_not_enforced(odd: str) -> None:
    schema = {"type": "string", "enum": ["plain", odd]}
    parameter = {"name": "v", "in": "query", "schema": schema}
    tool, found = openapi_documents.read(document({"parameters": [parameter]}))
    assert args.bind(tool.apis[0], {"v": odd}) == {"v": odd}
    assert found.notes
    many = {"type": "string", "enum": [str(number) for number in range(20_000)]}
    assert sent(query(many), "19999") == "v=19999"


STRIPE = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "string", "enum": [""]},
    ]
}


def test_a_union_is_written_by_what_it_may_be() -> None:
    media = {
        "schema": {"type": "object", "properties": {"v": STRIPE}},
        "encoding": {"v": {"style": "deepObject", "explode": True}},
    }
    api = read({"requestBody": {"content": {FORM: media}}}, method="post")
    assert [sent(api, {"a": "b"}), sent(api, "")] == ["v%5Ba%5D=b", "v="]
    joined = query({"oneOf": [{"type": "string"}, {"type": "array"}]}, explode=False)
    assert [sent(joined, ["1", "2"]), sent(joined, "a")] == ["v=1,2", "v=a"]


@pytest.mark.parametrize(
    ("media", "value", "wanted"),
    [
        ("application/x-www-form-urlencoded; charset=utf-8", {"v": "a b"}, b"v=a%20b"),
        ("Multipart/Form-Data", {"v": "a b"}, b'name="v"\r\n\r\na b\r\n'),
        ("application/xml", {"body": "<v>1</v>"}, b"<v>1</v>"),
    ],
)
def test_a_media_type_is_known_in_any_spelling(
    media: str, value: dict[str, Any], wanted: bytes
) -> None:
    api = body({"type": "string"}, media)
    assert wanted in build_request(api, args.bind(api, value)).content


def test_a_form_without_named_fields_is_a_form() -> None:
    content = {FORM: {"schema": {"type": "object"}}}
    api = read({"requestBody": {"required": True, "content": content}}, method="post")
    assert build_request(api, args.bind(api, {"body": {"a": "b"}})).content == b"a=b"


@pytest.mark.parametrize("value", [["a", None], {"a": None}])
def test_null_inside_a_value_is_refused_where_only_texts_can_stand(value: Any) -> None:
    with pytest.raises(ArgumentError, match="null"):
        args.bind(query({}), {"v": value})
    assert json.loads(sent(body({}), value)) == {"v": value}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": "x" * 3_000},
        {"type": "string", "default": "soft\u00adhyphen"},
        {"type": "object", "default": {"k": "y" * 9_000}},
        {"oneOf": [{"type": "string", "default": "a"}, {"type": "integer", "default": 3}]},
    ],
)
def test_a_default_that_is_not_kept_as_it_is_is_not_sent(schema: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="'v' is missing"):
        args.bind(query(schema, required=True), {})


def test_an_object_as_text_with_a_name_twice_is_not_read() -> None:
    with pytest.raises(ArgumentError, match="'v' must be"):
        args.bind(body({"type": "object"}), {"v": '{"a": 1, "a": 2}'})


def test_a_schema_beside_a_reference_adds_to_it() -> None:
    parts = {
        "Base": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    }
    beside = {"properties": {"extra": {"type": "string"}}, "required": ["extra"]}
    schema = {"$ref": "parts.yaml#/Base"} | beside
    content = {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}
    api = read(content, method="post", files={"parts.yaml": parts})
    assert {one.name for one in api.required} == {"n", "extra"}
    inner = {"type": "object", "properties": {"v": schema}}
    content = {"requestBody": {"required": True, "content": {JSON: {"schema": inner}}}}
    api = read(content, method="post", files={"parts.yaml": parts})
    assert sent(api, {"n": 1, "extra": "e"}) == '{"v":{"n":1,"extra":"e"}}'
    with pytest.raises(ArgumentError, match="lacks n"):
        args.bind(api, {"v": {"extra": "e"}})


# --- one name in several places ---------------------------------------------------------------------


def test_one_name_in_three_places_is_three_arguments() -> None:
    operation = {
        "parameters": [
            {"name": "id", "in": "query", "required": True, "schema": {"type": "string"}},
            {"name": "id", "in": "path", "schema": {"type": "integer"}},
            {"name": "id_2", "in": "header", "schema": {"type": "string"}},
        ],
        "requestBody": {
            "content": {
                JSON: {"schema": {"type": "object", "properties": {"id": {"type": "boolean"}}}}
            }
        },
    }
    api = read(operation, "/x/{id}", "put")
    for names in (
        ("id_path", "id_query", "id_2", "is_id"),
        ("id__path", "id__query", "id_2", "id"),
    ):
        values = dict(zip(names, (5, "q", "h", True), strict=True))
        request = build_request(api, args.bind(api, values))
        assert str(request.url) == "https://api.test/x/5?id=q"
        assert (request.content, request.headers["id_2"]) == (b'{"id":true}', "h")


def test_of_one_name_an_optional_parameter_that_is_not_given_is_not_sent() -> None:
    entries = [
        {"name": "id", "in": "path", "schema": {"type": "integer"}},
        {"name": "id", "in": "query", "schema": {"type": "string", "enum": ["x", "y"]}},
    ]
    api = read({"parameters": entries}, "/b/{id}")
    assert str(build_request(api, args.bind(api, {"id": 5})).url) == "https://api.test/b/5"


def test_a_whole_body_beside_a_parameter_called_body_is_another_argument() -> None:
    operation = {
        "parameters": [{"name": "body", "in": "query", "schema": {"type": "string"}}],
        "requestBody": {"required": True, "content": {JSON: {"schema": {"type": "array"}}}},
    }
    api = read(operation, method="post")
    request = build_request(api, args.bind(api, {"body": [1], "body_2": "full"}))
    assert (request.content, request.url.query) == (b"[1]", b"body=full")

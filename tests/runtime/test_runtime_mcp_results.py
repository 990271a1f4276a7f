"""Answers of MCP tools as responses, and arguments against a tool's whole schema."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolsrv_catalogs.mcp_tools import read_mcp_tools
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.schema_check import schema_fault
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.mcp_client.tool_calls import exchange_from_result

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SHOWN = {"type": "image", "mimeType": "image/png", "bytes": 2}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        ({"content": [_text("hi")]}, "hi"),
        ({"content": [_text('{"a": 1}')]}, {"a": 1}),
        ({"content": [_text("{no json")]}, "{no json"),
        ({"content": []}, ""),
        ({"content": [_text("a"), _text("b")]}, ["a", "b"]),
        ({"content": [_text("a"), IMAGE]}, ["a", SHOWN]),
        ({"content": [RESOURCE | {"_meta": {}, "annotations": {}}]}, [RESOURCE]),
        ({"content": [_text('{"a":1}')], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [_text("3")], "structuredContent": {"result": "3"}}, {"result": "3"}),
        ({"content": [_text("hi\n")], "structuredContent": {"text": "hi\n"}}, {"text": "hi\n"}),
        ({"content": [], "structuredContent": {}}, {}),
        (
            {"content": [_text("more"), IMAGE], "structuredContent": {"a": 1}},
            {"structuredContent": {"a": 1}, "content": ["more", SHOWN]},
        ),
    ],
)
def test_all_that_a_tool_answers_is_in_the_response(answer: dict[str, Any], response: Any) -> None:
    got = exchange_from_result(answer, 10_000, ())
    assert (got.kind, got.status, got.response, got.error) == ("ok", 200, response, "")


def test_bytes_are_files_within_the_limit() -> None:
    (file,) = exchange_from_result({"content": [IMAGE]}, 10_000, ()).files
    assert (file.content, file.media) == (b"hi", "image/png")
    assert exchange_from_result({"content": [IMAGE] * 3}, 5, ()).kind == "too_large"
    odd = {"type": "image", "data": "no base64!", "mimeType": "image/png"}
    assert exchange_from_result({"content": [odd]}, 10_000, ()).response == [odd]
    assert exchange_from_result({"content": [IMAGE]}, 10_000, ("hi",)).files == ()


def test_an_error_of_the_tool_is_no_success_and_keeps_its_words() -> None:
    got = exchange_from_result({"isError": True, "content": [_text("no such harbour")]}, 10_000, ())
    assert (got.kind, got.status, got.response) == ("bad_arguments", 422, "no such harbour")
    assert "no such harbour" in got.error


def test_an_answer_over_the_limit_is_cut_and_one_too_deep_is_none() -> None:
    got = exchange_from_result({"content": [_text("x" * 50_000)]}, 10_000, ())
    assert got.kind == "too_large"
    assert len(got.response) == 20_000
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert exchange_from_result({"structuredContent": {"a": deep}}, 10_000, ()).kind == "not_json"


def test_values_that_the_server_was_given_are_in_no_response() -> None:
    answer = {"structuredContent": {"the s3cret-token": ["x s3cret-token", 1]}}
    assert exchange_from_result(answer, 10_000, ("s3cret-token",)).response == {
        "the [key]": ["x [key]", 1]
    }


def whole_fault(schema: dict[str, Any], given: dict[str, Any]) -> str:
    fault = schema_fault(schema, given)
    return "" if fault is None else fault.message()


DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "fits", "fails"),
    [
        ({"required": ["a"]}, {"a": 1}, {}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}, {"c": 1}),
        ({"properties": {"a": {"minimum": 3}}}, {"a": 3}, {"a": 2}),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"const": 1}}}, {"a": 1}, {"a": 2}),
        ({"$schema": DRAFT_7, "properties": {"a": {"items": [{"type": "string"}]}}}, {"a": ["x"]}, {"a": [1]}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_a_whole_schema_is_held(
    schema: dict[str, Any], fits: dict[str, Any], fails: dict[str, Any]
) -> None:
    assert whole_fault(schema, fits) == ""
    assert whole_fault(schema, fails) != ""


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/never"},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
    ],
)
def test_a_schema_that_leads_nowhere_holds_nobody_and_fetches_nothing(
    schema: dict[str, Any],
) -> None:
    assert whole_fault(schema, {"a": 1}) == ""


def test_no_regular_expression_of_a_schema_runs_for_long() -> None:
    evil = "^(a|aa)+$"
    schema = {"properties": {"a": {"pattern": evil}}, "patternProperties": {evil: {}}}
    started = time.process_time()
    assert whole_fault(schema | {"additionalProperties": False}, {"a": "a" * 60 + "!"}) == ""
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"additionalProperties": True}, True),
        ({"additionalProperties": {"type": "string"}}, True),
        ({"unevaluatedProperties": {"$ref": "#/$defs/x"}}, True),
        ({"patternProperties": {"^x-": {}}}, True),
        ({}, False),
        ({"additionalProperties": False}, False),
    ],
)
def test_arguments_without_a_name_are_taken_where_the_schema_says_so(
    schema: dict[str, Any], taken: bool
) -> None:
    tool = {
        "name": "t",
        "inputSchema": {"type": "object", "$defs": {"x": {"type": "string"}}, **schema},
    }
    (api,) = read_mcp_tools([tool], name="harbour").catalog.apis
    if not taken:
        with pytest.raises(ArgumentError, match="unknown argument 'x-a'"):
            bind(api, {"x-a": "b"})
        return
    assert bind(api, {"x-a": "b"}) == {"x-a": "b"}
    if "$ref" in str(schema):
        with pytest.raises(ArgumentError, match="'x-a' must be text, not 1"):
            bind(api, {"x-a": 1})


def test_variants_and_further_properties_of_a_whole_schema_are_held() -> None:
    schema: dict[str, Any] = {
        "$defs": {"base": {"properties": {"id": {}}}},
        "oneOf": [{"required": ["a"], "properties": {"a": {}}}, {"required": ["b"]}],
        "unevaluatedProperties": False,
    }
    assert whole_fault(schema, {"a": 1}) == ""
    assert "takes no 'c'" in whole_fault(schema, {"a": 1, "c": 1})
    assert "fits 1 (any value with a) and 2" in whole_fault(schema, {"a": 1, "b": 1})
    assert whole_fault(schema | {"$ref": "#/$defs/base"}, {"a": 1, "id": 1}) == ""


def test_a_schema_of_a_draft_of_its_own_within_another_keeps_the_limits() -> None:
    part = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a|aa)+$"}
    schema = {"properties": {"a": part}}
    started = time.process_time()
    assert whole_fault(schema, {"a": "a" * 60 + "!"}) == ""
    assert time.process_time() - started < 5


def test_further_properties_of_parts_within_parts_take_no_endless_time() -> None:
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(60):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}
    started = time.process_time()
    assert whole_fault(schema, {"a": 1}) == ""
    assert whole_fault(schema, {"b": 1}) != ""
    assert time.process_time() - started < 5

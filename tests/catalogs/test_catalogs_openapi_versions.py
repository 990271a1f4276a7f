"""Swagger 2.0, OpenAPI 3.2, ``$id`` and ``$anchor``: read as what they say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.openapi_documents import read

from toolsrv_catalogs import yaml_text
from toolsrv_catalogs.openapi import references
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.request import OutgoingRequest, build_request


def openapi(paths: dict[str, Any], version: Any = "3.2.0", **more: Any) -> dict[str, Any]:
    servers = [{"url": "https://api.test"}]
    return {"openapi": version, "info": {"title": "t"}, "servers": servers, "paths": paths, **more}


def swagger(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"host": "api.test", "basePath": "/v1", "schemes": ["http", "https"]}
    return {"swagger": "2.0", "info": {"title": "t"}, **base, "paths": paths, **more}


def call(api: Api, arguments: dict[str, Any]) -> OutgoingRequest:
    return build_request(api, args.bind(api, arguments))


@pytest.mark.parametrize("version", ["3.0.4", "3.1.1", "3.2.0", 3.1, 3.0])
def test_these_versions_are_read(version: Any) -> None:
    tool, _ = read(openapi({"/x": {"get": {"operationId": "a"}}}, version))
    assert len(tool.apis) == 1


@pytest.mark.parametrize("version", ["4.0", 2, None, [], True, "2.0"])
def test_other_versions_are_refused(version: Any) -> None:
    with pytest.raises(DataError, match="are read"):
        read(openapi({}, version))


# --- OpenAPI 3.2 -----------------------------------------------------------------------------------


def test_query_is_called_and_other_methods_are_refused_by_name() -> None:
    item = {
        "query": {"operationId": "q", "requestBody": {"content": {"application/json": {}}}},
        "additionalOperations": {"COPY": {"operationId": "copy"}},
    }
    tool, found = read(openapi({"/x": item}))
    assert [(api.name, api.method) for api in tool.apis] == [("q", "QUERY")]
    assert call(tool.apis[0], {"body": [1]}).content == b"[1]"
    assert [(one.name, one.reason) for one in found.refused] == [
        ("COPY /x", "COPY is never called")
    ]


def test_a_whole_query_that_is_a_form_is_its_fields() -> None:
    properties = {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}}
    schema = {"type": "object", "required": ["a"], "properties": properties}
    encoding = {"l": {"style": "pipeDelimited", "explode": False}}
    form = {"application/x-www-form-urlencoded": {"schema": schema, "encoding": encoding}}
    entry = {"name": "whole", "in": "querystring", "required": True, "content": form}
    tool, _ = read(openapi({"/x": {"get": {"parameters": [entry]}}}))
    (api,) = tool.apis
    assert [one.name for one in api.required] == ["a"]
    assert call(api, {"a": "b c", "l": [1, 2]}).url.query == b"a=b%20c&l=1%7C2"


@pytest.mark.parametrize("required", [True, False])
def test_a_whole_query_that_is_a_form_without_fields_is_refused(required: bool) -> None:
    content = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    entry = {"name": "whole", "in": "querystring", "required": required, "content": content}
    tool, found = read(openapi({"/x": {"get": {"parameters": [entry]}}}))
    assert len(tool.apis) == (0 if required else 1)
    assert len(found.refused) == 1


def test_a_media_type_may_be_a_reference() -> None:
    media = {"M": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    body = {"content": {"application/json": {"$ref": "#/components/mediaTypes/M"}}}
    document = openapi({"/x": {"post": {"requestBody": body}}}, components={"mediaTypes": media})
    assert [one.name for one in read(document)[0].apis[0].parameters] == ["a"]


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reference",
    [
        "#pet",
        "https://pets.example/pet",
        "https://pets.example/pet#",
        "https://pets.example/pet#pet",
        "https://pets.example/pet#/$defs/again",
    ],
)
def test_ids_and_anchors_within_the_document_are_followed(reference: str) -> None:
    pet = {
        "$id": "https://pets.example/pet",
        "$anchor": "pet",
        "properties": {"name": {"$ref": "#/$defs/name"}},
        "$defs": {"name": {"enum": ["a"]}, "again": {"properties": {"name": {"enum": ["a"]}}}},
    }
    body = {"content": {"application/json": {"schema": {"$ref": reference}}}}
    operation = {"/x": {"post": {"requestBody": body}}}
    tool, found = read(openapi(operation, components={"schemas": {"Pet": pet}}))
    (parameter,) = tool.apis[0].parameters
    assert parameter.name == "name"
    if not reference.startswith("#"):
        assert parameter.enum == ("a",)
        assert found.notes == []


def test_a_list_of_parameters_may_be_a_reference() -> None:
    shared = {"common": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}
    operation = {"parameters": {"$ref": "#/components/x-lists/common"}}
    document = openapi({"/x": {"get": operation}}, components={"x-lists": shared})
    assert [one.name for one in read(document)[0].apis[0].parameters] == ["q"]


def test_a_body_of_many_properties_is_kept() -> None:
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(340)}}
    body = {"content": {"application/json": {"schema": schema}}}
    tool, _ = read(openapi({"/x": {"put": {"requestBody": body}}}))
    assert len(tool.apis[0].parameters) == 340


# --- Swagger 2.0 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({}, "ids=1,2"),
        ({"collectionFormat": "csv"}, "ids=1,2"),
        ({"collectionFormat": "ssv"}, "ids=1%202"),
        ({"collectionFormat": "pipes"}, "ids=1%7C2"),
        ({"collectionFormat": "multi"}, "ids=1&ids=2"),
    ],
)
def test_lists_of_swagger_are_written_in_their_format(told: dict[str, Any], wanted: str) -> None:
    entry = {"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"}, **told}
    tool, _ = read(swagger({"/a": {"get": {"operationId": "a", "parameters": [entry]}}}))
    assert str(call(tool.apis[0], {"ids": [1, 2]}).url) == f"https://api.test/v1/a?{wanted}"


def test_a_format_that_cannot_be_sent_is_refused() -> None:
    entry = {"name": "ids", "in": "query", "type": "array", "collectionFormat": "csvv"}
    tool, found = read(swagger({"/a": {"get": {"parameters": [entry]}}}))
    assert (len(tool.apis), found.refused[0].name) == (1, "ids")


def test_a_body_of_swagger_has_the_type_that_it_consumes() -> None:
    definitions = {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}
    schema = {"$ref": "#/definitions/Pet"}
    shared = {"pet": {"name": "pet", "in": "body", "required": True, "schema": schema}}
    operation = {
        "consumes": ["application/vnd.api+json"],
        "produces": ["application/vnd.api+json"],
        "parameters": [{"$ref": "#/parameters/pet"}],
        "responses": {"200": {"description": "ok", "schema": schema}},
    }
    document = swagger({"/a": {"post": operation}}, definitions=definitions, parameters=shared)
    tool, found = read(document)
    got = call(tool.apis[0], {"name": "x"})
    assert got.headers == {
        "Content-Type": "application/vnd.api+json",
        "Accept": "application/vnd.api+json",
    }
    assert got.content == b'{"name":"x"}'
    assert (found.refused, found.notes) == ([], [])


def test_forms_of_swagger_and_what_their_path_shares() -> None:
    tags = {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}}
    note = {"name": "note", "in": "formData", "type": "string", "required": True}
    number = {"name": "id", "in": "path", "required": True, "type": "integer"}
    item = {"parameters": [number, note], "post": {"parameters": [tags]}}
    (api,) = read(swagger({"/a/{id}": item}))[0].apis
    got = call(api, {"id": 5, "note": "n", "tags": ["x", "y"]})
    assert (str(got.url), got.content) == ("https://api.test/v1/a/5", b"note=n&tags=x,y")
    file = {"name": "f", "in": "formData", "type": "file"}
    (api,) = read(swagger({"/a": {"post": {"parameters": [file]}}}))[0].apis
    assert b'filename="f"' in call(api, {"f": "x"}).content


def test_credentials_of_swagger_are_kept() -> None:
    schemes = {"b": {"type": "basic"}, "k": {"type": "apiKey", "in": "query", "name": "key"}}
    document = swagger(
        {"/a": {"get": {}}}, securityDefinitions=schemes, security=[{"b": [], "k": []}]
    )
    (group,) = read(document)[0].apis[0].security
    assert [(one.kind, one.scheme, one.key) for one in group] == [
        ("http", "basic", ""),
        ("apiKey", "", "key"),
    ]


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"get": 7}, {"get": {"parameters": [7, {}]}}])
def test_nothing_odd_in_swagger_is_a_fault(odd: Any) -> None:
    document = swagger({"/a": odd, "/b": {"get": {}}}, parameters=odd, responses={"a": odd})
    assert any(api.url.endswith("/b") for api in read(document)[0].apis)


@pytest.mark.parametrize(
    ("schema", "default", "enum"),
    [
        ("{type: string, default: 02134}", "02134", ()),
        ("{default: 1.10, type: string}", "1.10", ()),
        ("{type: [string, 'null'], default: 0x1F}", "0x1F", ()),
        ("{type: string, default: True}", "True", ()),
        ("{type: string, default: 2020-01-01}", "2020-01-01", ()),
        (
            "{type: string, enum: [on, off, 2020-01-01, 1.10, 007, TRUE, 1e3]}",
            "",
            ("on", "off", "2020-01-01", "1.10", "007", "TRUE", "1e3"),
        ),
        ("{type: array, items: {type: string}, default: [01, 1.0]}", ["01", "1.0"], ()),
        ("{type: integer, default: 5, enum: [5, 06]}", 5, ("5", "6")),
        ("{type: boolean, default: true}", True, ()),
        ("{type: [string, integer], default: 5}", 5, ()),
    ],
)
def test_yaml_values_of_a_text_are_the_texts_as_written(
    schema: str, default: Any, enum: tuple[str, ...]
) -> None:
    text = f"""
openapi: 3.1.0
info: {{title: t}}
servers: [{{url: 'https://api.test'}}]
paths:
  /x:
    get:
      parameters: [{{name: v, in: query, schema: {schema}}}]
"""
    document = yaml_text.load(text)
    tool, _ = read(document)
    (only,) = tool.apis[0].optional
    assert (only.default, type(only.default), only.enum) == (default, type(default), enum)


def test_an_example_beside_the_schema_of_a_text_is_as_written() -> None:
    assert yaml_text.load("{schema: {type: string}, example: 0123}")["example"] == "0123"
    assert yaml_text.load("{schema: {type: number}, example: 0123}")["example"] == 123


def test_keys_are_as_they_are_written() -> None:
    assert yaml_text.load("{1.10: a, 010: b, yes: c, True: d}") == {
        "1.10": "a",
        "010": "b",
        "yes": "c",
        "True": "d",
    }


def test_a_discriminator_of_a_thousand_schemas_costs_what_is_kept_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    tagged = references._tagged

    def counted(*node: Any) -> references.Node:
        made.append(node)
        return tagged(*node)

    monkeypatch.setattr(references, "_tagged", counted)
    names = [f"K{at}" for at in range(1_000)]
    base = {"$ref": "#/components/schemas/Base"}
    mapping = {name: f"#/components/schemas/{name}" for name in names}
    schemas: dict[str, Any] = {
        name: {"type": "object", "properties": {name: {"type": "string"}, "next": base}}
        for name in names
    }
    schemas["Base"] = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    fields = {f"f{at}": {"type": "array", "items": base} for at in range(20)}
    content = {"application/json": {"schema": {"type": "object", "properties": fields}}}
    paths = {"/x": {"post": {"operationId": "x", "requestBody": {"content": content}}}}
    tool, _ = read(openapi(paths, "3.0.3", components={"schemas": schemas}))
    assert len(tool.apis[0].optional) == 20
    assert len(made) < 60_000


def test_what_inherits_from_a_schema_has_nothing_of_its_other_variants() -> None:
    base = {"$ref": "#/components/schemas/Base"}
    schemas: dict[str, Any] = {
        "Base": {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"type": "string"}},
            "discriminator": {
                "propertyName": "kind",
                "mapping": {"a": "#/components/schemas/A", "b": "#/components/schemas/B"},
            },
        },
        "A": {"allOf": [base, {"type": "object", "properties": {"x": {"type": "integer"}}}]},
        "B": {"allOf": [base, {"type": "object", "properties": {"y": {"type": "integer"}}}]},
        "Deep": {"allOf": [{"$ref": "#/components/schemas/A"}]},
        "Held": {"type": "object", "properties": {"one": base}},
    }

    def fields(name: str) -> dict[str, Any]:
        schema = {"$ref": f"#/components/schemas/{name}"}
        content = {"application/json": {"schema": schema}}
        operation = {
            "operationId": "x",
            "requestBody": {"content": content, "required": True},
            "responses": {"200": {"description": "", "content": content}},
        }
        document = openapi({"/x": {"post": operation}}, "3.0.3", components={"schemas": schemas})
        tool, _ = read(document)
        (api,) = tool.apis
        return {one.name: one.json_schema for one in api.parameters}

    assert fields("A") == {"kind": {"type": "string"}, "x": {"type": "integer"}}
    assert fields("Deep") == fields("A")
    assert list(fields("Base")) == ["kind", "x", "y"]
    variants = fields("Held")["one"]["anyOf"]
    assert [sorted(one["properties"]) for one in variants] == [["kind", "x"], ["kind", "y"]]


def test_a_base_of_a_thousand_schemas_is_read_once_for_each_that_inherits_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> references.Node:
        raise AssertionError("a variant of the base was made")

    monkeypatch.setattr(references, "_tagged", never)
    names = [f"K{at}" for at in range(1_000)]
    base = {"$ref": "#/components/schemas/Base"}
    schemas: dict[str, Any] = {
        name: {"allOf": [base, {"type": "object", "properties": {name: {"type": "string"}}}]}
        for name in names
    }
    mapping = {name: f"#/components/schemas/{name}" for name in names}
    schemas["Base"] = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    paths = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}
                    }
                },
            }
        }
        for name in names[:100]
    }
    tool, _ = read(openapi(paths, "3.0.3", components={"schemas": schemas}))
    assert {len(api.parameters) for api in tool.apis} == {2}


def test_an_example_of_a_swagger_response_is_kept() -> None:
    kinds = {"application/json": {"id": 1}, "text/csv": "id\n1"}
    operation = {
        "produces": ["application/json"],
        "responses": {"200": {"schema": {"type": "object"}, "examples": kinds}},
    }
    tool, _ = read(swagger({"/a": {"get": operation}}))
    assert tool.api_extras[0]["keys"] == {"test_endpoint": {"id": 1}}

"""OpenAPI documents: operations as APIs, and documents of any kind read without harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.openapi_documents import document, read

from toolsrv_catalogs.importer import read_catalog
from toolsrv_registry.api import Api, SecurityScheme

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pet Store", "description": "Sells pets", "version": "1"},
    "externalDocs": {"url": "https://docs.example"},
    "servers": [
        {"url": "http://plain.example"},
        {
            "url": "https://{region}.pets.example/{base}/",
            "variables": {
                "region": {"default": "eu", "enum": ["eu", "us"]},
                "base": {"default": "v1"},
            },
        },
    ],
    "security": [{"key": []}],
    "paths": {
        "/pets/{petId}": {
            "parameters": [
                {"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}},
                {"name": "trace", "in": "header", "schema": {"type": "string"}},
                {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
            ],
            "get": {
                "operationId": "getPetById",
                "summary": "One pet",
                "description": "Everything about one pet.",
                "parameters": [
                    {"$ref": "#/components/parameters/Lang"},
                    {
                        "name": "fields",
                        "in": "query",
                        "description": "What to tell",
                        "schema": {
                            "type": "array",
                            "items": {"type": "string", "enum": ["a", "b"]},
                        },
                    },
                    {"name": "sid", "in": "cookie", "schema": {"type": "string"}, "example": "x1"},
                    {
                        "name": "trace",
                        "in": "header",
                        "required": True,
                        "schema": {"type": "boolean", "default": False},
                    },
                ],
                "responses": {"200": {"description": "ok"}},
            },
            "delete": {"operationId": "removePet", "security": [], "deprecated": True},
        },
        "/pets": {
            "post": {
                "operationId": "addPet",
                "security": [{"key": [], "bearer": []}, {"login": ["write"]}, {}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/xml": {"schema": {"type": "string"}},
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/NewPet"},
                            "example": {"name": "Rex"},
                        },
                    },
                },
            },
            "put": {
                "operationId": "replacePets",
                "servers": [{"url": "https://bulk.example"}],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "array",
                                "items": {"$ref": "#/components/schemas/NewPet"},
                            }
                        }
                    }
                },
            },
            "patch": {
                "operationId": "formPet",
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"properties": {"born": {"type": "string", "format": "date"}}}
                        }
                    }
                },
            },
        },
    },
    "components": {
        "parameters": {
            "Lang": {
                "name": "lang",
                "in": "query",
                "schema": {"type": "string", "enum": ["en", "de"], "default": "en"},
            }
        },
        "schemas": {
            "Named": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "What to call it"},
                    "id": {"type": "integer", "readOnly": True},
                },
            },
            "NewPet": {
                "allOf": [
                    {"$ref": "#/components/schemas/Named"},
                    {
                        "properties": {
                            "kind": {"oneOf": [{"const": "dog"}, {"const": "cat"}]},
                            "weight": {"type": "number", "minimum": 0, "maximum": 90},
                            "home": {"$ref": "#/components/schemas/Home"},
                            "mother": {"$ref": "#/components/schemas/NewPet"},
                        }
                    },
                ]
            },
            "Home": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
            },
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "bearer": {"type": "http", "scheme": "Bearer"},
            "login": {"type": "oauth2", "flows": {}},
        },
    },
}


@pytest.fixture(scope="module")
def pets() -> dict[str, Api]:
    return {api.name: api for api in read(PETS)[0].apis}


def test_a_document_is_a_tool_and_each_operation_an_api(pets: dict[str, Api]) -> None:
    tool, found = read(PETS)
    assert (tool.name, tool.description, tool.category) == ("Pet Store", "Sells pets", "Other")
    assert (tool.home_url, tool.host) == ("https://docs.example", "eu.pets.example")
    assert list(pets) == ["getPetById", "removePet", "addPet", "replacePets", "formPet"]
    assert found.refused == []
    get = pets["getPetById"]
    assert get.id == "Other/pet_store/getpetbyid"
    assert get.description == "One pet\nEverything about one pet."
    assert (get.method, get.url) == ("GET", "https://eu.pets.example/v1/pets/{petId}")
    assert pets["replacePets"].url == "https://bulk.example/pets"
    assert "Deprecated." in pets["removePet"].description


def test_parameters_keep_their_place_type_default_and_allowed_values(
    pets: dict[str, Api],
) -> None:
    get = pets["getPetById"]
    assert [(p.name, p.place, p.type) for p in get.required] == [
        ("petId", "path", "NUMBER"),
        ("trace", "header", "BOOLEAN"),
    ]
    assert [(p.name, p.place, p.type, p.default, p.enum) for p in get.optional] == [
        ("lang", "query", "ENUM", "en", ("en", "de")),
        ("fields", "query", "ARRAY", "", ()),
        ("sid", "cookie", "STRING", "", ()),
    ]
    assert get.required[1].default is False
    assert get.optional[1].description == "What to tell Each one of: a, b. List of strings."


def test_a_json_body_becomes_parameters(pets: dict[str, Api]) -> None:
    add = pets["addPet"]
    assert [(p.name, p.place, p.default, p.example) for p in add.required] == [
        ("name", "body", "", "Rex")
    ]
    assert add.required[0].description == "What to call it"
    assert [(p.name, p.type, p.enum) for p in add.optional] == [
        ("kind", "ENUM", ("dog", "cat")),
        ("weight", "NUMBER", ()),
        ("home", "OBJECT", ()),
        ("mother", "OBJECT", ()),
    ]
    assert "minimum: 0, maximum: 90" in add.optional[1].description
    assert add.optional[2].description == "Fields: city (string), zip (string)."
    assert add.body_type == ""


def test_a_body_that_is_no_object_is_one_parameter(pets: dict[str, Api]) -> None:
    (body,) = pets["replacePets"].optional
    assert (body.name, body.place, body.type) == ("body", "payload", "ARRAY")
    assert "List of objects with: " in body.description


def test_a_form_keeps_its_media_type(pets: dict[str, Api]) -> None:
    form = pets["formPet"]
    assert form.body_type == "application/x-www-form-urlencoded"
    assert [(p.name, p.type) for p in form.optional] == [("born", "DATE (YYYY-MM-DD)")]


def test_security_is_alternatives_of_what_is_needed_together(pets: dict[str, Api]) -> None:
    key = SecurityScheme(name="key", kind="apiKey", place="header", key="X-Key")
    bearer = SecurityScheme(name="bearer", kind="http", scheme="bearer")
    login = SecurityScheme(name="login", kind="oauth2")
    assert pets["getPetById"].security == ((key,),)
    assert pets["removePet"].security == ()
    assert pets["addPet"].security == ((key, bearer), (login,), ())


@pytest.mark.parametrize("version", ["3.0.0", "3.1.1"])
def test_json_and_yaml_read_the_same(tmp_path: Path, version: str) -> None:
    whole = PETS | {"openapi": version}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    a, b = (read_catalog(tmp_path / name, name="same") for name in ("a.json", "b.yaml"))
    assert a.catalog == b.catalog
    assert len(a.catalog.apis) == 5


def test_operations_of_one_name_all_stay_reachable() -> None:
    whole = document({"operationId": "go"})
    whole["paths"]["/y"] = {"get": {"operationId": "go"}, "post": {"summary": "Go"}}
    tool, found = read(whole)
    assert [api.id for api in tool.apis] == ["Other/t/go", "Other/t/go_2", "Other/t/go_3"]
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"parameters": {"not": "a list"}}, "no list"),
        ({"requestBody": {"$ref": "#/nope"}}, "leads to nothing"),
        ("no object", "no object"),
        (None, "no object"),
    ],
)
def test_an_operation_that_cannot_be_read_is_refused_and_the_rest_kept(
    operation: Any, reason: str
) -> None:
    whole = document()
    whole["paths"]["/x"]["get"] = operation
    whole["paths"]["/good"] = {"get": {"operationId": "good"}}
    whole["paths"]["/bad"] = []
    whole["paths"]["x-odd"] = {"get": {}}
    tool, found = read(whole)
    assert [api.name for api in tool.apis] == ["good"]
    assert reason in found.refused[0].reason
    assert found.refused[0].name == "GET /x"


def test_a_path_without_its_slash_is_refused_and_an_extension_is_none() -> None:
    whole = document()
    whole["paths"] |= {"nopath": {"get": {}}, "x-odd": {"get": {}}}
    tool, found = read(whole)
    assert len(tool.apis) == 1
    told = [(one.what, one.name, one.reason) for one in found.refused]
    assert told == [("API", "nopath", "its path begins with no slash")]


def test_trace_is_never_called() -> None:
    whole = document()
    whole["paths"]["/x"]["trace"] = {}
    tool, found = read(whole)
    assert len(tool.apis) == 1
    assert found.refused[0].name == "TRACE /x"


def test_texts_are_cleaned_and_counted() -> None:
    operation = {
        "operationId": "a\u200bb",
        "description": "x\u202ey",
        "parameters": [{"name": "p\u0007", "in": "query", "description": "z\ufeff"}],
    }
    tool, found = read(document(operation))
    (api,) = tool.apis
    assert (api.name, api.description) == ("ab", "xy")
    assert (api.optional[0].name, api.optional[0].description) == ("p", "z")
    assert found.hidden == 4


_WORDS = st.sampled_from(
    [
        "$ref",
        "#/components/schemas/A",
        "#/paths",
        "type",
        "object",
        "properties",
        "items",
        "allOf",
        "oneOf",
        "enum",
        "required",
        "name",
        "in",
        "query",
        "path",
        "schema",
        "content",
        "application/json",
        "default",
        "example",
        "get",
        "post",
        "parameters",
        "requestBody",
        "security",
        "servers",
        "url",
        "variables",
    ]
)
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _WORDS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.just("A"), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(
    st.dictionaries(st.sampled_from(["/a", "/b/{c}", "x"]), _DOCUMENTS, max_size=3),
    _DOCUMENTS,
    st.dictionaries(st.just("schemas"), _DOCUMENTS),
    _DOCUMENTS,
)
def test_any_document_reads_or_is_refused_in_parts(
    paths: dict[str, Any], security: Any, components: dict[str, Any], info: Any
) -> None:
    whole = {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "security": security,
        "components": components,
    }
    tool, _ = read(whole)
    ids = [api.id for api in tool.apis]
    assert len(ids) == len(set(ids))
    assert len(json.dumps(tool.model_dump(mode="json"))) < 1_000_000

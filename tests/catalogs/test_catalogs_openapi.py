"""OpenAPI documents: operations as APIs, and documents of any kind read without harm."""

from __future__ import annotations

import json
import time
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.importer import read_catalog
from toolsrv_catalogs.openapi import references
from toolsrv_catalogs.openapi.reader import read_openapi
from toolsrv_registry.api import Api, SecurityScheme, Tool
from toolsrv_registry.errors import UsageError

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


def _none(_: PurePosixPath) -> Any:
    raise KeyError


def _read(document: dict[str, Any]) -> tuple[Tool, FileFindings]:
    found = FileFindings()
    tool = read_openapi(document, PurePosixPath("x.yaml"), "Other", load=_none, found=found)
    return tool, found


def _document(
    operation: dict[str, Any] | None = None, *, path: str = "/x", **more: Any
) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": "https://t.example"}],
        "paths": {path: {"get": operation or {}}},
    } | more


def _one(document: dict[str, Any]) -> Api:
    (api,) = _read(document)[0].apis
    return api


@pytest.fixture(scope="module")
def pets() -> dict[str, Api]:
    return {api.name: api for api in _read(PETS)[0].apis}


def test_a_document_is_a_tool_and_each_operation_an_api(pets: dict[str, Api]) -> None:
    tool, found = _read(PETS)
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
    document = PETS | {"openapi": version}
    (tmp_path / "a.json").write_text(json.dumps(document))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    a, b = (read_catalog(tmp_path / name, name="same") for name in ("a.json", "b.yaml"))
    assert a.catalog == b.catalog
    assert len(a.catalog.apis) == 5


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
    api = _one(_document({"parameters": [{"name": "p", "in": "query", "schema": schema}]}))
    (parameter,) = api.optional
    assert (parameter.type, parameter.enum) == (type_, enum)


def test_a_parameter_may_have_content_and_named_examples() -> None:
    entry = {
        "name": "p",
        "in": "query",
        "content": {"application/json": {"schema": {"type": "object"}}},
        "examples": {"one": {"value": {"a": 1}}},
    }
    (parameter,) = _one(_document({"parameters": [entry]})).optional
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
    document = _document({"parameters": [entry]}, components={"schemas": {"Box": box}})
    (parameter,) = _one(document).optional
    assert (parameter.type, parameter.style) == (type_, "json")
    assert parameter.example == "as the media type says"
    assert ("Fields: w (number)." in parameter.description) == (type_ == "OBJECT")


def test_a_placeholder_without_description_is_a_parameter_all_the_same() -> None:
    document = _document({}, path="/x/{id}")
    assert [(p.name, p.place) for p in _one(document).required] == [("id", "path")]
    assert "'id' is not described" in _read(document)[1].notes[0]


def test_operations_of_one_name_all_stay_reachable() -> None:
    document = _document({"operationId": "go"})
    document["paths"]["/y"] = {"get": {"operationId": "go"}, "post": {"summary": "Go"}}
    tool, found = _read(document)
    assert [api.id for api in tool.apis] == ["Other/t/go", "Other/t/go_2", "Other/t/go_3"]
    assert len(found.notes) == 2


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
    api = _one(_document({"parameters": [{"name": "p", "in": place} | about]}))
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
    tool, found = _read(_document({"parameters": [entry]}, path="/x/{p}"))
    assert tool.apis == ()
    assert [one.what for one in found.refused] == ["API"]
    assert "'p'" in found.refused[0].reason
    if place != "path":
        tool, found = _read(_document({"parameters": [entry | {"required": False}]}))
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
    document = _document({})
    document["paths"]["/x"] = {"post": {"requestBody": body}}
    tool, found = _read(document)
    assert [one.style for one in tool.apis[0].parameters] == wanted
    assert len(found.refused) == refused


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "/api/v3"}], "https://pets.example/api/v3/x"),
        ([{"url": "v3"}], "https://pets.example/base/v3/x"),
        ([{"url": "//other.example/v1"}], "https://other.example/v1/x"),
        (None, "https://pets.example/base/x"),
        ([{"url": "https://own.example"}], "https://pets.example/base/x"),
    ],
)
def test_a_document_is_called_where_the_import_says(tmp_path: Path, servers: Any, url: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(_document(servers=servers)))
    (api,) = read_catalog(path, server="https://pets.example/base/").catalog.apis
    assert api.url == url


def test_variables_of_servers_are_what_the_import_says(tmp_path: Path) -> None:
    servers = [
        {"url": "https://{tenant}.example/{v}", "variables": {"v": {"default": "v1"}}},
        {"url": "https://prod.example"},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(_document(servers=servers)))
    reading = read_catalog(path, variables={"tenant": "acme"})
    assert reading.catalog.apis[0].url == "https://acme.example/v1/x"
    assert "https://prod.example" in reading.files[0].notes[0]


@pytest.mark.parametrize("server", ["", "/api", "ftp://a.example", "https://u:p@a.example"])
def test_a_server_that_is_no_address_is_refused(tmp_path: Path, server: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(_document()))
    with pytest.raises(UsageError):
        read_catalog(tmp_path / "a.json", server=server)


@pytest.mark.parametrize("servers", [None, [{"url": "/api/v3"}]])
def test_a_server_without_a_host_is_told_with_what_to_do(servers: Any) -> None:
    _, found = _read(_document(servers=servers))
    assert "--server" in found.refused[0].reason


@pytest.mark.parametrize(
    "servers",
    [
        None,
        [],
        "x",
        [{"url": "/v1"}],
        [{"url": "https://{tenant}.example"}],
        [{"url": "https://a b.example"}],
        [{"url": "ftp://a.example"}],
        [{"url": "https://user:secret@a.example"}],
        [{"url": "https://a.example:99999"}],
        [{"url": 7}],
        [7],
    ],
)
def test_an_api_without_a_usable_server_is_kept_without_address(servers: Any) -> None:
    tool, found = _read(_document(servers=servers))
    assert tool.apis[0].url == ""
    assert [one.what for one in found.refused] == ["address"]


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
    document = _document()
    document["paths"]["/x"]["get"] = operation
    document["paths"]["/good"] = {"get": {"operationId": "good"}}
    document["paths"]["/bad"] = []
    document["paths"]["x-odd"] = {"get": {}}
    tool, found = _read(document)
    assert [api.name for api in tool.apis] == ["good"]
    assert reason in found.refused[0].reason
    assert found.refused[0].name == "GET /x"


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
    tool, found = _read(_document({"parameters": parameters}))
    assert [one.name for one in tool.apis[0].parameters] == ["q"]
    assert [(one.what, one.name) for one in found.refused] == [("parameter", "/x")]
    assert reason in found.refused[0].reason
    properties = {"name": {"type": "string"}, "geo": {"$ref": reference}}
    body = {"content": {"application/json": {"schema": {"properties": properties}}}}
    tool, found = _read(_document({"requestBody": body}))
    assert [(one.name, one.json_schema) for one in tool.apis[0].parameters] == [
        ("name", {"type": "string"}),
        ("geo", {}),
    ]
    if "circle" not in reason:
        assert reason in found.notes[0]


def test_a_path_without_its_slash_is_refused_and_an_extension_is_none() -> None:
    document = _document()
    document["paths"] |= {"nopath": {"get": {}}, "x-odd": {"get": {}}}
    tool, found = _read(document)
    assert len(tool.apis) == 1
    told = [(one.what, one.name, one.reason) for one in found.refused]
    assert told == [("API", "nopath", "its path begins with no slash")]


def test_of_two_parameters_of_one_name_and_place_the_last_is_taken_and_told() -> None:
    twice = [{"name": "q", "in": "query", "description": one} for one in ("first", "second")]
    others = [{"name": "q", "in": "header"}, {"name": "r", "in": "query"}]
    document = _document({"parameters": [*twice, *others]})
    document["paths"]["/x"]["parameters"] = [{"name": "r", "in": "query"}]  # overridden: no fault
    tool, found = _read(document)
    (api,) = tool.apis
    assert [(one.name, one.wire, one.place, one.description) for one in api.optional] == [
        ("r", "", "query", ""),
        ("q__query", "q", "query", "second"),
        ("q__header", "q", "header", ""),
    ]
    assert found.notes == ["/x: 'q' is there twice in query; the last one counts"]


def test_trace_is_never_called() -> None:
    document = _document()
    document["paths"]["/x"]["trace"] = {}
    tool, found = _read(document)
    assert len(tool.apis) == 1
    assert found.refused[0].name == "TRACE /x"


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
    tool, found = _read(_document({"requestBody": body}, components={"schemas": schemas}))
    assert time.perf_counter() - started < 5
    assert len(tool.apis) == 1
    assert found.refused == []
    assert bool(found.notes) is not ends  # a tree is read whole, however often it branches


def test_a_schema_may_contain_itself() -> None:
    tree = {
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    api = _one(_document({"requestBody": body}, components={"schemas": {"A": tree}}))
    assert [(p.name, p.type) for p in api.optional] == [("children", "ARRAY")]


def test_texts_are_cleaned_and_counted() -> None:
    operation = {
        "operationId": "a\u200bb",
        "description": "x\u202ey",
        "parameters": [{"name": "p\u0007", "in": "query", "description": "z\ufeff"}],
    }
    tool, found = _read(_document(operation))
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
    document = {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "security": security,
        "components": components,
    }
    tool, _ = _read(document)
    ids = [api.id for api in tool.apis]
    assert len(ids) == len(set(ids))
    assert len(json.dumps(tool.model_dump(mode="json"))) < 1_000_000


def test_every_operation_has_its_own_budget_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "STEPS_LIMIT", 60)
    document = _document()
    document["paths"] = {
        f"/{n}": {"get": {"parameters": [{"name": f"p{m}", "in": "query"} for m in range(9)]}}
        for n in range(9)
    }
    tool, found = _read(document)
    assert len(tool.apis) == 9
    assert found.refused == []

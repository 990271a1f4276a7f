"""What documents in other spellings come to: from the document to the request, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests import openapi_documents

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.hosts import server_of
from toolsrv_registry.api import Api
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.credentials import authorize
from toolsrv_runtime.calls.request import OutgoingRequest, build_request
from toolsrv_runtime.errors import ArgumentError

SERVER = "https://api.test/v1"


def read(
    whole: dict[str, Any], files: Mapping[str, Any] = openapi_documents.NO_FILES
) -> tuple[list[Api], FileFindings]:
    """Return the APIs of a document, which is OpenAPI 3.1 unless it says otherwise."""
    if "swagger" in whole:
        head: dict[str, Any] = {"host": "api.test", "basePath": "/v1", "schemes": ["https"]}
    else:
        head = {"openapi": "3.1.0", "servers": [{"url": SERVER}]}
    tool, found = openapi_documents.read({**head, **whole}, files)
    return list(tool.apis), found


def operation(about: dict[str, Any], path: str = "/x", **more: Any) -> Api:
    """Return the one API of a document with one POST, which has a body or not."""
    (api,), _ = read({"paths": {path: {"post": about}}, **more})
    return api


def sent(api: Api, arguments: dict[str, Any]) -> OutgoingRequest:
    return build_request(api, bind(api, arguments))


def line(api: Api, arguments: dict[str, Any]) -> str:
    """Return the path and the query of a call."""
    return sent(api, arguments).url.raw_path.decode().removeprefix("/v1")


def body(schema: dict[str, Any], media: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"required": True, "content": {media: {"schema": schema, **more}}}


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    needed = {"required": True} if place == "path" else {}
    schema = {} if "content" in more else {"schema": {"type": "string"}}
    return {"name": name, "in": place, **needed, **schema, **more}


# --- one name in several places -------------------------------------------------------------------


def _everywhere() -> Api:
    places = [parameter("id", one) for one in ("path", "query", "header", "cookie")]
    object_ = {"type": "object", "properties": {"id": {"type": "string"}}}
    return operation({"parameters": places, "requestBody": body(object_)}, "/x/{id}")


def test_one_name_in_several_places_is_an_argument_for_each_named_by_its_place() -> None:
    api = _everywhere()
    assert [one.name for one in api.parameters] == [
        *("id__path", "id__query", "id__header", "id__cookie", "id")
    ]
    assert list(parameter_keys(api)) == ["id_path", "id_query", "id_header", "id_cookie", "is_id"]
    for own in ("__", "_"):
        given = {f"id{own}{one}": one[0] for one in ("path", "query", "header", "cookie")}
        request = sent(api, {**given, "id": "b"})
        assert request.url.raw_path == b"/v1/x/p?id=q"
        assert (request.headers["id"], request.headers["Cookie"]) == ("h", "id=c")
        assert request.content == b'{"id":"b"}'


def test_a_value_for_the_body_never_goes_to_the_path() -> None:
    with pytest.raises(ArgumentError, match="'id_path' is missing"):
        bind(_everywhere(), {"id": "b"})


def test_a_name_with_a_place_that_is_taken_gets_a_number() -> None:
    names = [parameter("id", "path"), parameter("id__path"), parameter("id")]
    api = operation({"parameters": names}, "/x/{id}")
    assert [one.name for one in api.parameters] == ["id__path_2", "id__path", "id__query"]
    assert line(api, {"id__path_2": "a", "id__path": "b", "id__query": "c"}) == (
        "/x/a?id__path=b&id=c"
    )


def test_a_call_with_the_numbers_of_an_earlier_version_is_understood() -> None:
    object_ = {"type": "object", "properties": {"id": {"type": "string"}}}
    about = {"parameters": [parameter("id", "path")], "requestBody": body(object_)}
    api = operation(about, "/x/{id}")
    request = sent(api, {"id": "old", "id_2": "new"})
    assert (request.url.path, request.content) == ("/v1/x/old", b'{"id":"new"}')
    both = operation({"parameters": [parameter("id", "path"), parameter("id")]}, "/x/{id}")
    assert line(both, {"id": "a"}) == "/x/a"
    assert line(both, {"id": "a", "id_2": "b"}) == "/x/a?id=b"
    with pytest.raises(ArgumentError, match="twice"):
        bind(both, {"id": "a", "id_path": "b"})
    about["requestBody"] = body(object_ | {"additionalProperties": True})
    takes_more = operation(about, "/x/{id}")
    assert sent(takes_more, {"id_path": "a", "id_2": "b"}).content == b'{"id_2":"b"}'


# --- Swagger 2.0 ----------------------------------------------------------------------------------

_FORM_FIELD = {"name": "a", "in": "formData", "type": "string"}
_BODY_FIELD = {
    "name": "whatever",
    "in": "body",
    "schema": {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}},
}
_DEFINED = {"A": {"type": "string", "maxLength": 3}}


@pytest.mark.parametrize(
    ("given", "wanted"), [(_FORM_FIELD, b"a=x"), (_BODY_FIELD, b'{"a":"x"}')], ids=["form", "body"]
)
@pytest.mark.parametrize("where", ["operation", "path item", "parameter", "list", "file"])
def test_a_body_of_swagger_2_is_found_wherever_it_is_described(
    where: str, given: dict[str, Any], wanted: bytes
) -> None:
    about: dict[str, Any] = {"operationId": "make", "responses": {}}
    item: dict[str, Any] = {"post": about | {"parameters": [given]}}
    more: dict[str, Any] = {"definitions": _DEFINED}
    files: dict[str, Any] = {}
    match where:
        case "operation":
            more["x-operations"], item = {"make": item["post"]}, {"post": {"$ref": ""}}
            item["post"]["$ref"] = "#/x-operations/make"
        case "path item":
            more["x-items"], item = {"one": item}, {"$ref": "#/x-items/one"}
        case "parameter":
            more["parameters"] = {"P": given}
            item["post"]["parameters"] = [{"$ref": "#/parameters/P"}]
        case "list":
            more["x-lists"] = {"one": [given]}
            item["post"]["parameters"] = {"$ref": "#/x-lists/one"}
        case "file":
            files["parts.json"] = {"P": given, "definitions": _DEFINED}
            item["post"]["parameters"] = [{"$ref": "parts.json#/P"}]
    (api,), found = read({"swagger": "2.0", "paths": {"/x": item}, **more}, files)
    assert sent(api, {"a": "x"}).content == wanted
    assert (found.refused, found.notes) == ([], [])
    if given is _BODY_FIELD:
        with pytest.raises(ArgumentError, match="at most 3"):
            bind(api, {"a": "xxxx"})


def _swagger_list(place: str, form: str, **about: Any) -> Api:
    one: dict[str, Any] = {"name": "v", "in": place, "type": "array", "items": {"type": "string"}}
    one |= {"collectionFormat": form} | ({"required": True} if place == "path" else {})
    path = "/x/{v}" if place == "path" else "/x"
    paths = {path: {"get" if place != "formData" else "post": {"parameters": [one], **about}}}
    (api,), _ = read({"swagger": "2.0", "paths": paths})
    return api


@pytest.mark.parametrize(
    ("form", "escaped", "plain"),
    [("csv", ",", ","), ("ssv", "%20", " "), ("tsv", "%09", "\t"), ("pipes", "%7C", "|")],
)
def test_every_collection_format_of_swagger_2_goes_to_every_place(
    form: str, escaped: str, plain: str
) -> None:
    given = {"v": ["a", "b"]}
    assert line(_swagger_list("query", form), given) == f"/x?v=a{escaped}b"
    assert sent(_swagger_list("formData", form), given).content == f"v=a{escaped}b".encode()
    parts = _swagger_list("formData", form, consumes=["multipart/form-data"])
    assert sent(parts, given).content.count(f"\r\n\r\na{plain}b\r\n".encode()) == 1
    if form != "tsv":  # a tab cannot stand in a path or a header
        assert line(_swagger_list("path", form), given) == f"/x/a{escaped}b"
        assert sent(_swagger_list("header", form), given).headers["v"] == f"a{plain}b"
    with pytest.raises(ArgumentError, match="parts them there"):
        sent(parts, {"v": [f"a{plain}b"]})


def test_a_response_of_swagger_2_in_another_file_says_what_is_accepted() -> None:
    answer = {"description": "", "schema": {"$ref": "#/S"}}
    files = {"parts.json": {"R": answer, "S": {"type": "string"}}}
    about = {"produces": ["text/csv"], "responses": {"200": {"$ref": "parts.json#/R"}}}
    (api,), _ = read({"swagger": "2.0", "paths": {"/x": {"get": about}}}, files)
    assert api.accept == "text/csv"


# --- forms ----------------------------------------------------------------------------------------


def test_a_part_of_a_form_has_the_style_that_openapi_3_1_gives_it() -> None:
    fields = {"l": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"}}
    encoding = {
        "l": {"style": "form", "explode": False},
        "o": {"style": "deepObject", "explode": True},
    }
    schema = {"type": "object", "properties": fields}
    content = body(schema, "multipart/form-data", encoding=encoding)
    told = sent(operation({"requestBody": content}), {"l": ["a", "b"], "o": {"k": 1}}).content
    assert b'name="l"\r\n\r\na,b\r\n' in told
    assert b'name="o[k]"\r\n\r\n1\r\n' in told
    old = operation({"requestBody": content}, openapi="3.0.3")  # which ignores it
    assert sent(old, {"l": ["a", "b"]}).content.count(b'name="l"') == 2


def test_an_empty_object_is_a_part_of_its_own_in_several_parts_and_nothing_in_a_form() -> None:
    schema = {"type": "object", "properties": {"o": {"type": "object"}, "l": {"type": "array"}}}
    several = operation({"requestBody": body(schema, "multipart/form-data")})
    told = sent(several, {"o": {}}).content
    assert b'name="o"' in told
    assert b"\r\n\r\n{}\r\n" in told
    with pytest.raises(ArgumentError, match="empty list"):
        sent(several, {"l": []})
    form = operation({"requestBody": body(schema, "application/x-www-form-urlencoded")})
    with pytest.raises(ArgumentError, match="empty list"):
        sent(form, {"l": []})


def test_a_whole_form_is_an_object() -> None:
    for media in ("multipart/form-data", "application/x-www-form-urlencoded"):
        whole = operation({"requestBody": body({"type": ["object", "string"]}, media)})
        with pytest.raises(ArgumentError, match="takes a JSON object"):
            sent(whole, {"body": "text"})
        assert b"k" in sent(whole, {"body": {"k": "v"}}).content


def test_an_object_in_a_list_of_a_form_is_json_without_blanks() -> None:
    fields = {"l": {"type": "array", "items": {"type": "object"}}}
    content = body({"type": "object", "properties": fields}, "application/x-www-form-urlencoded")
    assert sent(operation({"requestBody": content}), {"l": [{"a": 1, "b": 2}]}).content == (
        b"l=%7B%22a%22%3A1%2C%22b%22%3A2%7D"
    )


# --- references -----------------------------------------------------------------------------------

_OBJECT = {"type": "object"}
_SHORT = {"type": "string", "maxLength": 3}


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"$id": "https://ex.test/a", "properties": {"a": {"$ref": "#/$defs/S"}}}, {}),
        ({"$id": "https://ex.test/a", "properties": {"a": {"$ref": "b"}}}, {"$id": "b"}),
        (
            {"$id": "https://ex.test/a", "properties": {"a": {"$ref": "b"}}},
            {"$id": "https://ex.test/b"},
        ),
        ({"$id": "A", "properties": {"a": {"$ref": "#/components/schemas/S"}}}, {}),
        ({"properties": {"a": {"$ref": "https://ex.test/b"}}}, {"$id": "https://ex.test/b"}),
        ({"properties": {"a": {"$ref": "https://self.test/d#/components/schemas/S"}}}, {}),
        ({"properties": {"a": {"$dynamicRef": "#S"}}}, {"$dynamicAnchor": "S"}),
    ],
    ids=["$defs", "relative", "absolute", "around", "named", "$self", "dynamic"],
)
def test_references_are_relative_to_where_they_stand(
    schema: dict[str, Any], more: dict[str, Any]
) -> None:
    whole = _OBJECT | schema | {"$defs": {"S": _SHORT}}
    api = operation(
        {"requestBody": body(whole)},
        components={"schemas": {"S": _SHORT | more}},
        **{"$self": "https://self.test/d"},
    )
    assert sent(api, {"a": "xyz"}).content == b'{"a":"xyz"}'
    with pytest.raises(ArgumentError, match="at most 3"):
        bind(api, {"a": "wxyz"})


def test_a_dynamic_reference_that_its_place_decides_takes_any_value_and_is_told() -> None:
    dynamic = {"properties": {"a": {"$dynamicRef": "#S"}}}
    several = {"S": {"$dynamicAnchor": "S", **_SHORT}, "T": {"$dynamicAnchor": "S"}}
    about = {"requestBody": body(_OBJECT | dynamic)}
    (api,), found = read({"paths": {"/x": {"post": about}}, "components": {"schemas": several}})
    assert sent(api, {"a": "wxyz"}).content == b'{"a":"wxyz"}'
    assert ["'#S' is another schema in another place" in one for one in found.notes] == [True]


@pytest.mark.parametrize(
    "within",
    [
        {"type": "array", "items": {"$ref": "#/nowhere"}},
        {"type": "object", "properties": {"deep": {"$ref": "#/nowhere"}}},
        {"type": "object", "additionalProperties": {"$ref": "#/nowhere"}},
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"k": {"$ref": "x.json"}}},
            ]
        },
    ],
)
def test_a_dead_reference_is_told_at_any_depth(within: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": within}}
    _, found = read({"paths": {"/x": {"post": {"requestBody": body(schema)}}}})
    told = [one for one in found.notes if "any value is taken where" in one]
    assert len(told) == 1
    assert "leads to nothing" in told[0]


# --- parameters -----------------------------------------------------------------------------------


def _get(*parameters: dict[str, Any], **more: Any) -> Api:
    document = {"paths": {"/x": {"get": {"parameters": list(parameters)}}}, **more}
    (api,), _ = read(document)
    return api


def test_a_whole_query_is_json_or_text_without_a_name() -> None:
    told = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    content = {"application/json": {"schema": told}}
    api = _get({"name": "q", "in": "querystring", "required": True, "content": content})
    assert line(api, {"q": {"a": 1}}) == "/x?%7B%22a%22%3A1%7D"
    with pytest.raises(ArgumentError, match="lacks a"):
        bind(api, {"q": {}})
    with pytest.raises(ArgumentError, match="'q' is missing"):
        bind(api, {})
    text = _get({"name": "q", "in": "querystring", "content": {"text/plain": {"schema": {}}}})
    assert line(text, {"q": "a=b c"}) == "/x?a%3Db%20c"
    assert line(text, {}) == "/x"


def test_a_media_type_of_a_parameter_may_be_referred_to() -> None:
    media = {"schema": {"type": "array", "items": {"type": "integer"}}}
    content = {"application/json": {"$ref": "#/components/mediaTypes/L"}}
    api = _get(parameter("q", content=content), components={"mediaTypes": {"L": media}})
    assert line(api, {"q": [1, 2]}) == "/x?q=%5B1%2C2%5D"
    with pytest.raises(ArgumentError, match="whole number"):
        bind(api, {"q": ["a"]})


def test_a_cookie_of_style_cookie_is_not_escaped() -> None:
    api = _get(parameter("c", "cookie", style="cookie", schema={}))
    assert sent(api, {"c": "a%20b"}).headers["Cookie"] == "c=a%20b"
    assert sent(api, {"c": ["a", "b"]}).headers["Cookie"] == "c=a; c=b"
    assert sent(api, {"c": {"k": "v", "l": 1}}).headers["Cookie"] == "k=v; l=1"
    for odd in ("a;d=e", "a b", 'a"', "a,b", "ü", "a\r\nX-Y: z"):
        with pytest.raises(ArgumentError, match=r"cookie cannot hold|control character"):
            sent(api, {"c": odd})


@pytest.mark.parametrize("schema", [{"type": "boolean"}, {"type": "integer"}, {"enum": ["a"]}])
def test_an_empty_value_that_is_allowed_is_sent_whatever_the_schema_says(
    schema: dict[str, Any],
) -> None:
    assert line(_get(parameter("q", schema=schema, allowEmptyValue=True)), {"q": ""}) == "/x?q="
    with pytest.raises(ArgumentError):
        bind(_get(parameter("q", schema=schema)), {"q": ""})


def test_null_is_sent_where_swagger_2_says_so_in_its_own_way() -> None:
    fields = {"a": {"type": "string", "x-nullable": True}, "b": {"type": "string"}}
    one = {"name": "b", "in": "body", "schema": {"type": "object", "properties": fields}}
    (api,), _ = read({"swagger": "2.0", "paths": {"/x": {"post": {"parameters": [one]}}}})
    assert sent(api, {"a": None}).content == b'{"a":null}'
    with pytest.raises(ArgumentError):
        bind(api, {"b": None})


@pytest.mark.parametrize("place", ["query", "header", "cookie"])
def test_a_parameter_that_is_the_api_key_is_not_asked_for(place: str) -> None:
    scheme = {"type": "apiKey", "in": place, "name": "X-Key"}
    components = {"securitySchemes": {"k": scheme}}
    named = parameter("x-key" if place == "header" else "X-Key", place, required=True)
    other = parameter("q", required=True)
    api = _get(named, other, components=components, security=[{"k": []}])
    assert [one.name for one in api.required] == ["q"]
    keyed = authorize(api, sent(api, {"q": "1"}), lambda _: "SECRET-KEY")
    told = keyed.url.raw_path.decode() + str(dict(keyed.headers))
    assert told.count("SECRET-KEY") == 1


def test_a_server_that_is_no_web_address_comes_last() -> None:
    servers = [{"url": "wss://api.test/ws"}, {"url": "http://api.test/http"}]
    assert _get(servers=servers).url == "http://api.test/http/x"
    servers.append({"url": "https://api.test/https"})
    assert _get(servers=servers).url == "https://api.test/https/x"


def test_a_body_of_very_many_properties_is_one_argument() -> None:
    schema = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(9_000)}}
    api = operation({"requestBody": body(schema)})
    assert sent(api, {"body": {"p8999": "x"}}).content == b'{"p8999":"x"}'


# --- what is wrong in one place costs that place --------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        {"in": "body", "schema": {"type": "object"}},
        {"in": "formData", "name": ["a"], "type": "string"},
        {"in": ["query"], "name": "a", "type": "string"},
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_a_parameter_of_swagger_2_without_a_name_costs_no_other_operation(
    broken: dict[str, Any], shared: bool
) -> None:
    answers = {"responses": {"200": {"description": "ok"}}}
    bad = {"parameters": [broken], "get": answers} if shared else {"get": answers | {"parameters": [broken]}}  # fmt: skip
    apis, _ = read({"swagger": "2.0", "paths": {"/bad": bad, "/good": {"get": answers}}})
    assert "/v1/good" in [api.url.removeprefix("https://api.test") for api in apis]


def test_a_fragment_or_an_address_that_stands_twice_is_no_base_of_a_schema() -> None:
    def schema(address: str, kind: str) -> dict[str, Any]:
        value = {"$id": address, "$defs": {"q": {"type": kind}}}
        return value | {"type": "object", "properties": {"p": {"$ref": "#/$defs/q"}}}

    for address in ("x/a", "#/items"):
        parts = {"A": schema(address, "string"), "C": schema(address, "integer")}
        both = {key: {"$ref": f"#/components/schemas/{key}"} for key in parts}
        api = operation(
            {"requestBody": body({"type": "object", "properties": both})},
            components={"schemas": parts},
        )
        assert sent(api, {"A": {"p": "x"}, "C": {"p": 5}}).content == b'{"A":{"p":"x"},"C":{"p":5}}'


def test_a_number_of_an_earlier_version_is_never_an_argument_of_that_name() -> None:
    api = operation(
        {
            "parameters": [
                parameter("id", "path"),
                parameter("id"),
                parameter("id_2", "header"),
            ],
            "requestBody": body({"type": "object", "properties": {"id": {"type": "string"}}}),
        },
        "/x/{id}",
    )
    given = {"id": "p", "id_2": "own", "id_3": "q", "id_4": "b"}
    request = sent(api, given)
    assert request.headers["id_2"] == "own"
    assert (request.url.path, request.url.query) == ("/v1/x/p", b"id=q")
    assert request.content == b'{"id":"b"}'


@pytest.mark.parametrize(
    ("servers", "wanted"),
    [
        ([{"url": ""}], "https://h.test/"),
        ([{}], "https://h.test/"),
        ([], "https://h.test/"),
        ([{"url": "v2"}], "https://h.test/docs/v2"),
    ],
)
def test_a_server_without_a_host_has_nothing_else_of_the_url_of_its_document(
    servers: list[Any], wanted: str
) -> None:
    found, _ = server_of(servers, location="https://user:secret@h.test/docs/api.json?key=secret")
    assert found == wanted

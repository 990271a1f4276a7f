"""OpenAPI documents on the wire: styles, media types, forms, parts, and keys beside them."""

from __future__ import annotations

import base64
import hashlib
from email import message_from_bytes
from typing import Any

import httpx
import pytest
from tests import openapi_documents

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.layout import tool_document
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.credentials import authorize
from toolsrv_runtime.calls.request import OutgoingRequest, build_request
from toolsrv_runtime.calls.serialization import (
    FileArgument,
    StyleError,
    abbreviate_data_urls,
    data_url,
    decode_file,
    inline_base64,
    is_data_url,
)
from toolsrv_runtime.errors import ArgumentError

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


def read(operation: dict[str, Any], path: str = "/x") -> Api:
    """The API of an operation, by way of an export, which must lose nothing of it."""
    tool, _ = openapi_documents.read(openapi_documents.document(operation, path, "post"))
    again = read_tool(tool_document(tool), "Other", stem="a", found=FileFindings(path="a"))
    assert again.apis == tool.apis
    return tool.apis[0]


def body(schema: dict[str, Any], media: str, **more: Any) -> Api:
    content = {media: {"schema": schema, **more}}
    return read({"requestBody": {"required": True, "content": content}})


def call(api: Api, arguments: dict[str, Any]) -> OutgoingRequest:
    return build_request(api, args.bind(api, arguments))


def parameter(place: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "v", "in": place, "required": True, "schema": schema, **more}


LIST = {"type": "array", "items": {"type": ["integer", "string"]}}
OBJECT = {"type": "object", "additionalProperties": {"type": ["integer", "string"]}}
PAIR = {"R": 100, "G": 200}


@pytest.mark.parametrize(
    ("schema", "style", "explode", "value", "wanted"),
    [
        (LIST, "simple", False, [3, 4], "/3,4"),
        (LIST, "simple", True, [3, "a,b/c"], "/3,a%2Cb%2Fc"),
        (OBJECT, "simple", False, PAIR, "/R,100,G,200"),
        (OBJECT, "simple", True, PAIR, "/R=100,G=200"),
        ({"type": "integer"}, "label", False, 5, "/.5"),
        (LIST, "label", False, [3, 4], "/.3,4"),
        (LIST, "label", True, [3, 4], "/.3.4"),
        (OBJECT, "label", False, PAIR, "/.R,100,G,200"),
        (OBJECT, "label", True, PAIR, "/.R=100.G=200"),
        ({"type": "string"}, "matrix", True, "a b", "/;v=a%20b"),
        (LIST, "matrix", False, [3, 4], "/;v=3,4"),
        (LIST, "matrix", True, [3, 4], "/;v=3;v=4"),
        (OBJECT, "matrix", False, PAIR, "/;v=R,100,G,200"),
        (OBJECT, "matrix", True, PAIR, "/;R=100;G=200"),
        ({"type": "string"}, "matrix", False, "", "/;v"),
        (LIST, "matrix", True, ["", "a;b"], "/;v;v=a%3Bb"),
    ],
)
def test_a_path_is_written_in_its_style(
    schema: dict[str, Any], style: str, explode: bool, value: Any, wanted: str
) -> None:
    entry = parameter("path", schema, style=style, explode=explode)
    api = read({"parameters": [entry]}, "/{v}")
    assert call(api, {"v": value}).url.raw_path.decode() == wanted


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (LIST, ["data.customer"], "v[0]=data.customer"),
        (OBJECT, {"a": "b c"}, "v[a]=b%20c"),
        ({"type": "object"}, {"a": {"b": [1, {"c": "&"}]}}, "v[a][b][0]=1&v[a][b][1][c]=%26"),
    ],
)
def test_brackets_go_as_deep_as_the_value(schema: dict[str, Any], value: Any, wanted: str) -> None:
    api = read({"parameters": [parameter("query", schema, style="deepObject", explode=True)]})
    query = call(api, {"v": value}).url.query.decode()
    assert query.replace("%5B", "[").replace("%5D", "]") == wanted
    whole = {"type": "object", "properties": {"v": schema}}
    form = body(whole, FORM, encoding={"v": {"style": "deepObject", "explode": True}})
    assert call(form, {"v": value}).content.decode() == query


@pytest.mark.parametrize("style", ["spaceDelimited", "pipeDelimited"])
def test_an_item_that_holds_the_separator_is_refused(style: str) -> None:
    api = read({"parameters": [parameter("query", LIST, style=style, explode=False)]})
    sign = {"spaceDelimited": " ", "pipeDelimited": "|"}[style]
    assert call(api, {"v": ["a,b", 1]}).url.query
    with pytest.raises(ArgumentError, match="parts them"):
        call(api, {"v": [f"a{sign}b", "c"]})


@pytest.mark.parametrize("value", [["a.b", "c"], [1.5], {"a.b": 1}])
def test_a_dot_in_an_item_of_a_label_is_refused(value: Any) -> None:
    schema = {"type": ["array", "object"]}
    api = read({"parameters": [parameter("path", schema, style="label", explode=True)]}, "/{v}")
    with pytest.raises(ArgumentError, match="parts them"):
        call(api, {"v": value})


@pytest.mark.parametrize(
    ("schema", "explode", "value", "wanted"),
    [
        (LIST, False, [3, "a b;c"], "v=3,a%20b%3Bc"),
        (LIST, True, [3, 4], "v=3,4"),
        (OBJECT, False, PAIR, "v=R,100,G,200"),
        (OBJECT, True, PAIR, "R=100; G=200"),
        ({"type": "string"}, True, "", "v="),
        ({"type": "string"}, True, "a,b", "v=a%2Cb"),
    ],
)
def test_cookies_have_literal_separators(
    schema: dict[str, Any], explode: bool, value: Any, wanted: str
) -> None:
    api = read({"parameters": [parameter("cookie", schema, explode=explode)]})
    assert call(api, {"v": value}).headers == {"Cookie": wanted}


@pytest.mark.parametrize("place", ["header", "cookie"])
def test_a_comma_in_an_item_of_a_header_is_refused(place: str) -> None:
    api = read({"parameters": [parameter(place, LIST, explode=False)]})
    with pytest.raises(ArgumentError, match="holds ',' in one"):
        call(api, {"v": ["a,b", "c"]})


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("a/b:c,d", "a/b:c,d"),
        ("x?y=@!$'()*;", "x?y=@!$'()*;"),
        ("a&b+c#d[e] f", "a%26b%2Bc%23d%5Be%5D%20f"),
        ("50%25 %", "50%25%20%25"),
    ],
)
def test_reserved_signs_stay_where_they_are_allowed(value: str, wanted: str) -> None:
    entry = parameter("query", {"type": "string"}, allowReserved=True)
    got = call(read({"parameters": [entry]}), {"v": value}).url
    assert got.raw_path.decode() == f"/x?v={wanted}"


def test_a_parameter_of_no_placeholder_is_not_sent() -> None:
    operation = {"parameters": [parameter("path", {"type": "string"})]}
    assert read(operation).parameters == ()
    _, found = openapi_documents.read(openapi_documents.document(operation))
    assert [(one.name, one.reason) for one in found.refused] == [
        ("v", "stands nowhere in its path")
    ]


def test_a_cookie_header_and_cookies_are_one_header() -> None:
    entries = [
        {"name": "cookie", "in": "header", "schema": {"type": "string"}},
        {"name": "v", "in": "cookie", "schema": {"type": "string"}},
    ]
    got = call(read({"parameters": entries}), {"cookie": "a=1", "v": "2"})
    assert got.headers == {"Cookie": "a=1; v=2"}


def test_a_key_in_the_query_leaves_the_rest_as_it_is() -> None:
    entry = parameter("query", LIST, explode=False)
    scheme = SecurityScheme(name="k", kind="apiKey", place="query", key="api_key")
    api = read({"parameters": [entry]}).model_copy(update={"security": ((scheme,),)})
    outgoing = call(api, {"v": [1, "a b"]})
    url = authorize(api, outgoing, lambda _: "K&1").url
    assert url.query == b"v=1,a%20b&api_key=K%261"
    own = OutgoingRequest("GET", httpx.URL("https://api.test/x?a=b+c&api%5Fkey=mine&d=%2c"))
    assert authorize(api, own, lambda _: "K").url.query == b"a=b+c&d=%2c&api_key=K"


# --- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (["application/json"], "application/json"),
        (["*/*"], "application/json"),
        (["application/merge-patch+json"], "application/merge-patch+json"),
        (["application/vnd.api+json; charset=utf-8"], "application/vnd.api+json; charset=utf-8"),
        (["application/vnd.api+json", "application/json"], "application/json"),
        ([MULTIPART, "application/vnd.api+json"], "application/vnd.api+json"),
    ],
)
def test_json_is_sent_under_its_own_media_type(kinds: list[str], wanted: str) -> None:
    schema = {"type": "object", "properties": {"v": {"type": ["string", "null"]}}}
    content = {kind: {"schema": schema} for kind in kinds}
    got = call(read({"requestBody": {"content": content}}), {"v": None})
    assert (got.headers["Content-Type"], got.content) == (wanted, b'{"v":null}')


def test_a_list_is_sent_under_its_own_media_type() -> None:
    api = body({"type": "array", "items": {"type": "object"}}, "application/json-patch+json")
    got = call(api, {"body": [{"op": "remove"}]})
    assert got.headers["Content-Type"] == "application/json-patch+json"
    assert got.content == b'[{"op":"remove"}]'


@pytest.mark.parametrize(
    ("media", "content"), [("application/json", b"{}"), (FORM, b""), (MULTIPART, b"--empty--\r\n")]
)
def test_a_required_body_is_sent_without_properties_too(media: str, content: bytes) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "string"}}}
    got = call(body(schema, media), {})
    assert got.content == content
    assert got.headers["Content-Type"].startswith(media)
    optional = read({"requestBody": {"content": {media: {"schema": schema}}}})
    assert call(optional, {}).headers == {}


@pytest.mark.parametrize(
    ("told", "value", "passes"),
    [
        (True, {"x": [1]}, True),
        ({}, 2, True),
        ({"type": "integer"}, 2, True),
        ({"type": "integer"}, "two", False),
        (False, 2, False),
        (None, 2, False),
    ],
)
def test_other_properties_are_held_to_what_a_body_says_of_them(
    told: Any, value: Any, passes: bool
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    more = {} if told is None else {"additionalProperties": told}
    api = body({"allOf": [{"description": "x"}, schema | more]}, "application/json")
    if passes:
        wanted = httpx.Request("POST", "https://a", json={"a": "1", "extra": value}).content
        assert call(api, {"a": "1", "extra": value}).content == wanted
    else:
        with pytest.raises(ArgumentError, match="extra"):
            call(api, {"a": "1", "extra": value})


def test_a_form_writes_json_where_its_encoding_says_so() -> None:
    schema = {"type": "object", "properties": {"o": OBJECT, "l": LIST, "p": {"type": "string"}}}
    encoding = {
        "o": {"contentType": "application/json"},
        "l": {"contentType": "application/json; charset=utf-8"},
        "p": {"allowReserved": True},
    }
    api = body(schema, FORM, encoding=encoding)
    got = call(api, {"o": {"a": 1}, "l": [1, 2], "p": "a/b&"})
    assert got.content == b"o=%7B%22a%22%3A1%7D&l=%5B1%2C2%5D&p=a/b%26"


def parts(request: OutgoingRequest) -> list[tuple[str, str | None, str | None, bytes]]:
    """Name, file name, media type and content of each part, as Python's own reader has them."""
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    found = []
    for part in message_from_bytes(head + request.content).get_payload():
        assert not isinstance(part, str)
        name = part.get_param("name", header="content-disposition")
        kind = part.get_content_type() if "content-type" in part else None
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found.append((str(name), part.get_filename(), kind, content))
    return found


def test_parts_have_the_names_and_types_that_servers_tell_files_by() -> None:
    binary = {"type": "string", "format": "binary"}
    properties = {
        "file": binary,
        "files": {"type": "array", "items": binary},
        "tags": {"type": "array", "items": {"type": "string"}},
        "meta": {"type": "object"},
        "rows": {"type": "array", "items": {"type": "object"}},
        "img": {"type": "string", "contentMediaType": "image/png"},
        "pdf": binary,
        "note": {"type": "string"},
        "all": {"type": "array", "items": {"type": "integer"}},
    }
    encoding = {
        "pdf": {"contentType": "image/*, application/pdf"},
        "all": {"contentType": "application/json"},
    }
    api = body({"type": "object", "properties": properties}, MULTIPART, encoding=encoding)
    given = {
        "file": "hello",
        "files": ["a", "data:text/csv;name=b%20c.csv;base64,MSwyCg=="],
        "tags": ["a", "b"],
        "meta": {"k": 1},
        "rows": [{"k": 2}],
        "img": "data:image/png;base64,iVBORwA=",
        "pdf": "data:,x%00y",
        "note": "n",
        "all": [1, 2],
    }
    octets = "application/octet-stream"
    assert parts(call(api, given)) == [
        ("file", "file", octets, b"hello"),
        ("files", "files", octets, b"a"),
        ("files", "b c.csv", "text/csv", b"1,2\n"),
        ("tags", None, None, b"a"),
        ("tags", None, None, b"b"),
        ("meta", None, "application/json", b'{"k":1}'),
        ("rows", None, "application/json", b'{"k":2}'),
        ("img", "img", "image/png", b"\x89PNG\x00"),
        ("pdf", "pdf", "application/pdf", b"x\x00y"),
        ("note", None, None, b"n"),
        ("all", None, "application/json", b"[1,2]"),
    ]


_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(9))
_BASE64 = base64.b64encode(_PNG).decode()
_OCTETS = "application/octet-stream"
_BINARY = {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("schema", "kinds", "value", "wanted"),
    [
        (_BINARY, "", _BASE64, ("f", "image/png", _PNG)),
        (_BINARY, "", "SGVsbG8=", ("f", _OCTETS, b"SGVsbG8=")),
        (
            _BINARY,
            "image/png, image/jpeg",
            "data:image/jpeg;base64,AAE=",
            ("f", "image/jpeg", b"\0\1"),
        ),
        (_BINARY, "image/png", "data:application/pdf;base64,AAE=", ("f", "image/png", b"\0\1")),
        (_BINARY, "image/*", "hi", ("f", _OCTETS, b"hi")),
        (_BINARY, "", "data:;name=..%2Fa.txt,hi", ("a.txt", _OCTETS, b"hi")),
        ({}, "", "hi", ("f", _OCTETS, b"hi")),
        ({}, "", {"a": 1}, (None, "application/json", b'{"a":1}')),
        ({"type": "string"}, "", "data:,hi", (None, None, b"data:,hi")),
        ({"type": "string"}, "text/csv", "a,b", (None, "text/csv", b"a,b")),
        (
            {"type": "string", "format": "byte"},
            "",
            f"data:image/png;name=a.png;base64,{_BASE64}",
            ("a.png", "image/png", _BASE64.encode()),
        ),
        (
            {"type": "object", "properties": {"d": {"contentEncoding": "base64"}}},
            "",
            {"d": "data:,hi"},
            (None, "application/json", b'{"d":"aGk="}'),
        ),
    ],
)
def test_a_part_takes_bytes_as_its_schema_and_encoding_say(
    schema: dict[str, Any], kinds: str, value: Any, wanted: tuple[str | None, str | None, bytes]
) -> None:
    encoding = {"encoding": {"f": {"contentType": kinds}}} if kinds else {}
    api = body({"type": "object", "properties": {"f": schema}}, MULTIPART, **encoding)
    assert parts(call(api, {"f": value})) == [("f", *wanted)]


def test_a_file_name_is_utf_8_and_cannot_end_its_line() -> None:
    api = body({"type": "object", "properties": {"f": _BINARY}}, MULTIPART)
    got = call(api, {"f": "data:text/plain;name=na%C3%AFve%22%0D%0AX:%20y.txt,hi"}).content
    assert 'filename="naïve%22%0D%0AX: y.txt"\r\n'.encode() in got
    assert b"\r\nX:" not in got


def test_a_list_of_no_files_is_refused_and_not_lost() -> None:
    files = {"type": "array", "items": _BINARY}
    api = body({"type": "object", "properties": {"f": files}}, MULTIPART)
    with pytest.raises(ArgumentError, match="empty list"):
        call(api, {"f": []})


def test_bytes_that_are_no_base64_are_refused() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}}
    with pytest.raises(ArgumentError, match="no base64"):
        call(body(schema, MULTIPART), {"f": "data:;base64,!"})


@pytest.mark.parametrize(
    ("media", "value", "wanted"),
    [
        ("application/xml", "<x><a>1</a></x>", b"<x><a>1</a></x>"),
        ("application/octet-stream", "data:;base64,AAE=", b"\x00\x01"),
        ("application/pdf", "data:application/pdf;base64,AAE=", b"\x00\x01"),
        ("text/csv; charset=utf-8", "ü,b", "ü,b".encode()),
    ],
)
def test_other_bodies_are_sent_as_they_are_given(media: str, value: str, wanted: bytes) -> None:
    api = body({"type": "object", "properties": {"a": {}}}, media)
    got = call(api, {"body": value})
    assert (got.headers["Content-Type"], got.content) == (media, wanted)


@pytest.mark.parametrize(
    ("media", "value", "wanted"),
    [
        ("image/*", "data:image/gif;base64,AAE=", "image/gif"),
        ("*/*", "data:image/gif;base64,AAE=", "image/gif"),
        ("image/*", _BASE64, "image/png"),
        ("image/*", "hi", _OCTETS),
    ],
)
def test_of_a_range_of_media_types_the_files_own_is_sent(
    media: str, value: str, wanted: str
) -> None:
    assert call(body(_BINARY, media), {"body": value}).headers["Content-Type"] == wanted


def test_a_long_text_is_sent() -> None:
    api = body({"type": "object", "properties": {"v": {"type": "string"}}}, "application/json")
    assert len(call(api, {"v": "x" * 1_000_000}).content) > 1_000_000


@pytest.mark.parametrize(
    "file",
    [
        FileArgument(b"\0\1", "a b;c.png", "image/png"),
        FileArgument(b"", "", ""),
        FileArgument("é".encode(), "é.txt", "text/plain"),
    ],
)
def test_a_file_is_read_from_its_data_url_as_it_was_written(file: FileArgument) -> None:
    assert is_data_url(data_url(file))
    assert decode_file(data_url(file), "f") == file


def test_of_long_data_urls_people_see_size_and_digest() -> None:
    long = data_url(FileArgument(b"x" * 3_000, "a.png", "image/png"))
    digest = hashlib.sha256(b"x" * 3_000).hexdigest()
    seen = f"data:image/png;name=a.png;base64 (3,000 bytes, SHA-256 {digest})"
    short, broken = "data:,hi", "data:;base64,!" + "x" * 300
    given = {"a": [long, short, 5], "b": broken, "c": "x" * 300}
    assert abbreviate_data_urls(given) == {**given, "a": [seen, short, 5]}


@pytest.mark.parametrize(
    ("coding", "text", "wanted"),
    [
        ("base64", "data:;base64,-_8=", ""),
        ("base64", "data:,%FB%FF", "+/8="),
        ("base64url", "data:;base64,+/8=", "-_8="),
        ("base64", "+/8=", "+/8="),
        ("", "data:,%FB%FF", "data:,%FB%FF"),
    ],
)
def test_bytes_stand_in_a_text_as_its_schema_has_them(coding: str, text: str, wanted: str) -> None:
    schema = {"type": "string", "contentEncoding": coding}
    if not wanted:
        with pytest.raises(StyleError, match="no base64"):
            inline_base64(text, schema)
    else:
        assert inline_base64(text, schema) == wanted

"""What documents in other spellings come to: from the document to the request, without a network."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi.reader import read_openapi
from toolsrv_registry.api import Api
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.request import OutgoingRequest, build_request
from toolsrv_runtime.errors import ArgumentError

SERVER = "https://api.test/v1"


def read(
    document: dict[str, Any], files: dict[str, Any] | None = None
) -> tuple[list[Api], FileFindings]:
    """Return the APIs of a document, which is OpenAPI 3.1 unless it says otherwise."""
    given = files or {}
    if "swagger" in document:
        head: dict[str, Any] = {"host": "api.test", "basePath": "/v1", "schemes": ["https"]}
    else:
        head = {"openapi": "3.1.0", "servers": [{"url": SERVER}]}
    found = FileFindings(path="api.json")
    path, whole = PurePosixPath("api.json"), {**head, **document}
    tool = read_openapi(whole, path, "Other", load=lambda one: given[str(one)], found=found)
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

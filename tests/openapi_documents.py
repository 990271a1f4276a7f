"""OpenAPI documents of one operation, and what is read of a document and sent for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi.reader import read_openapi
from toolsrv_registry.api import Api, Tool
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.errors import ArgumentError

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
NO_FILES: Mapping[str, Any] = {}


def document(
    operation: Any = None, path: str = "/x", method: str = "get", **more: Any
) -> dict[str, Any]:
    """Return a document of one operation; ``more`` are keys beside its paths, or instead of them."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": {path: {method: {} if operation is None else operation}},
        **more,
    }


def read(whole: dict[str, Any], files: Mapping[str, Any] = NO_FILES) -> tuple[Tool, FileFindings]:
    """Return what a document comes to; ``files``: the documents beside it, by name."""
    found = FileFindings(path="a.yaml")
    path = PurePosixPath("a.yaml")
    tool = read_openapi(whole, path, "Other", load=lambda one: files[str(one)], found=found)
    return tool, found


def read_api(whole: dict[str, Any], files: Mapping[str, Any] = NO_FILES) -> Api:
    """Return the one API of a document."""
    (api,) = read(whole, files)[0].apis
    return api


def posted_tool(operation: dict[str, Any], schemas: dict[str, Any] | None = None) -> Tool:
    """Return the tool of a document with one POST."""
    components = {"schemas": schemas or {}}
    whole = document({"operationId": "x"} | operation, method="post", components=components)
    return read(whole | {"openapi": "3.2.0"})[0]


def posted(
    schema: Any, schemas: dict[str, Any] | None = None, *, media: str = JSON, required: bool = True
) -> Api:
    """Return an API that posts a body of this schema."""
    content = {"required": required, "content": {media: {"schema": schema}}}
    return posted_tool({"requestBody": content}, schemas).apis[0]


def sent(api: Api, given: dict[str, Any] | str) -> str:
    """Return the body of a call; arguments may be JSON, as a model writes them."""
    arguments = args.parse(given) if isinstance(given, str) else given
    return build_request(api, args.bind(api, arguments)).content.decode()


def refused(api: Api, given: dict[str, Any] | str) -> str:
    """Return why a call is refused before anything is sent."""
    with pytest.raises(ArgumentError) as caught:
        sent(api, given)
    return caught.value.message

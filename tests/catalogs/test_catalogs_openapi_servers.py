"""Where the APIs of OpenAPI documents are called: servers, their variables, and what an import says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.openapi_documents import document, read

from toolsrv_catalogs.importer import read_catalog
from toolsrv_registry.errors import UsageError


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
    path.write_text(json.dumps(document(servers=servers)))
    (api,) = read_catalog(path, server="https://pets.example/base/").catalog.apis
    assert api.url == url


def test_variables_of_servers_are_what_the_import_says(tmp_path: Path) -> None:
    servers = [
        {"url": "https://{tenant}.example/{v}", "variables": {"v": {"default": "v1"}}},
        {"url": "https://prod.example"},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document(servers=servers)))
    reading = read_catalog(path, variables={"tenant": "acme"})
    assert reading.catalog.apis[0].url == "https://acme.example/v1/x"
    assert "https://prod.example" in reading.files[0].notes[0]


@pytest.mark.parametrize("server", ["", "/api", "ftp://a.example", "https://u:p@a.example"])
def test_a_server_that_is_no_address_is_refused(tmp_path: Path, server: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document()))
    with pytest.raises(UsageError):
        read_catalog(tmp_path / "a.json", server=server)


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        (None, "--server"),
        ([], "--server"),
        ("x", "--server"),
        ([{"url": "/v1"}], "--server"),
        ([{"url": "https://{tenant}.example"}], "is no host"),
        ([{"url": "https://a b.example"}], "is no host"),
        ([{"url": "ftp://a.example"}], "is no web address"),
        ([{"url": "https://user:secret@a.example"}], "hides its host"),
        ([{"url": "https://a.example:99999"}], "is no address"),
        ([{"url": 7}], "--server"),
        ([7], "--server"),
    ],
)
def test_an_api_without_a_usable_server_is_kept_without_address(servers: Any, reason: str) -> None:
    tool, found = read(document(servers=servers))
    assert tool.apis[0].url == ""
    (refused,) = found.refused
    assert refused.what == "address"
    assert reason in refused.reason

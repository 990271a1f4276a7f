"""Documents on the web in several files: those beside the document are read, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import Result

from toolsrv import downloads
from toolsrv_runtime.hub import web as hub_web

Run = Callable[..., Result]
SIZE = {"name": "size", "in": "query", "schema": {"$ref": "../schemas/size.yaml"}}
FILES = {
    "/v1/openapi.yaml": json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Shop", "version": "1"},
            "servers": [{"url": "https://shop.example"}],
            "paths": {
                "/stock": {"$ref": "paths/stock.yaml"},
                "/orders": {"$ref": "paths/orders%20old.yaml"},
            },
        }
    ),
    "/v1/paths/stock.yaml": json.dumps(
        {"get": {"operationId": "stock", "summary": "Count", "parameters": [SIZE], "responses": {}}}
    ),
    "/v1/paths/orders%20old.yaml": json.dumps(
        {"get": {"operationId": "orders", "summary": "List", "responses": {}}}
    ),
    "/v1/schemas/size.yaml": "type: string\nenum: [small, large]\n",
    "/schemas/size.yaml": "type: string\nenum: [of another folder]\n",
}


class Web:
    """A web server on loopback; ``files`` are its texts or statuses by path.

    ``moved`` leads paths to others; ``encoded`` are sent in an encoding, whatever is asked for.
    """

    def __init__(self) -> None:
        self.files: dict[str, str | int] = dict(FILES)
        self.moved: dict[str, str] = {}
        self.encoded: dict[str, tuple[str, bytes]] = {}
        self.asked: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                if self.path in web.moved:
                    self.send_response(302)
                    self.send_header("Location", web.moved[self.path])
                    self.end_headers()
                    return
                found = web.files.get(self.path, 404)
                if isinstance(found, int):
                    self.send_error(found)
                    return
                body = found.encode()
                self.send_response(200)
                if self.path in web.encoded:
                    encoding, body = web.encoded[self.path]
                    self.send_header("Content-Encoding", encoding)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    one = Web()
    threading.Thread(target=one.server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", one.host)
    yield one
    one.server.shutdown()
    one.server.server_close()


def imported(run: Run, web: Web, path: str = "/v1/openapi.yaml") -> Result:
    return run(
        "catalog", "import", f"http://{web.host}{path}", "--name", "shop", "--no-index", "--json"
    )


def described(run: Run, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("describe", f"Other/shop/{name}", "--json").stdout)
    return found


def test_the_files_of_a_document_are_read_from_its_folder_on_the_web(run: Run, web: Web) -> None:
    done = imported(run, web)
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (len(report["added"]), report["refused"]) == (2, [])
    (size,) = described(run, "stock")["parameters"]
    assert size["allowed"] == ["small", "large"]
    assert set(web.asked) == set(FILES) - {"/schemas/size.yaml"}
    web.files["/v1/schemas/size.yaml"] = "type: string\nenum: [small, large, huge]\n"
    shown = json.loads(run("catalog", "refresh", "shop", "--no-index", "--json").stdout)
    assert [one["id"] for one in shown["changed"]] == ["Other/shop/stock"]


def test_a_file_that_is_not_there_costs_what_refers_to_it_and_is_asked_for_once(
    run: Run, web: Web
) -> None:
    del web.files["/v1/paths/stock.yaml"]
    document = json.loads(FILES["/v1/openapi.yaml"])
    document["paths"]["/again"] = {"$ref": "paths/stock.yaml"}
    web.files["/v1/openapi.yaml"] = json.dumps(document)
    report = json.loads(imported(run, web).stdout)
    assert report["added"] == ["Other/shop/orders"]
    assert "paths/stock.yaml" in json.dumps(report["refused"])
    assert web.asked.count("/v1/paths/stock.yaml") == 1


def test_the_files_of_a_document_that_was_moved_lie_beside_either_address(
    run: Run, web: Web
) -> None:
    web.moved = {"/newest/shop.yaml": "/v1/openapi.yaml"}
    web.files["/newest/paths/stock.yaml"] = web.files.pop("/v1/paths/stock.yaml")
    done = imported(run, web, "/newest/shop.yaml")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (len(report["added"]), report["refused"]) == (2, [])
    assert described(run, "stock")["parameters"][0]["allowed"] == ["small", "large"]


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_a_document_that_is_compressed_on_its_way_arrives_as_it_was(
    run: Run, web: Web, request: pytest.FixtureRequest, compress: Callable[[bytes], bytes]
) -> None:
    encoding = request.node.callspec.id
    web.encoded = {name: (encoding, compress(text.encode())) for name, text in FILES.items()}
    done = imported(run, web)
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (len(report["added"]), report["refused"]) == (2, [])
    assert described(run, "stock")["parameters"][0]["allowed"] == ["small", "large"]


BOMB = gzip.compress(bytes(3 << 20))


@pytest.mark.parametrize("path", ["/v1/openapi.yaml", "/v1/paths/stock.yaml"])
@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        ("gzip", BOMB, "more than"),
        ("gzip, gzip", gzip.compress(BOMB), "compressed as 'gzip, gzip'"),
        ("br", b"{}", "compressed as 'br'"),
        ("gzip", b"no gzip", "damaged"),
        ("gzip", gzip.compress(b"{}" * 99)[:-9], "broke off"),
    ],
    ids=["bomb", "twice", "unknown", "damaged", "cut"],
)
def test_what_cannot_be_uncompressed_within_its_limit_is_one_line(
    run: Run, web: Web, monkeypatch: pytest.MonkeyPatch, path: str,
    encoding: str, body: bytes, told: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(hub_web, "UNSIZED_LIMIT", 1 << 20)
    monkeypatch.setattr(downloads, "FILE_LIMIT", 1 << 20)
    web.encoded = {path: (encoding, body)}
    failed = imported(run, web)
    assert failed.exit_code == 1
    assert told in failed.stderr + failed.stdout
    assert "unexpected" not in failed.stderr
    assert "shop" not in run("catalog", "list", "--json").stdout


def test_an_archive_that_is_called_compressed_stays_one(run: Run, web: Web) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in FILES.items():
            about = tarfile.TarInfo(f"shop{unquote(name)}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
    web.moved = {"/newest": "/shop.tar.gz"}
    web.files["/shop.tar.gz"] = "the archive"
    web.encoded = {"/shop.tar.gz": ("gzip", whole.getvalue())}
    digest = hashlib.sha256(whole.getvalue()).hexdigest()
    place = f"http://{web.host}/newest"
    done = run(
        "catalog", "pull", place, "--sha256", digest, "--name", "shop", "--no-index", "--json"
    )
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_server_that_fails_in_the_middle_leaves_the_catalog_as_it_was(
    run: Run, web: Web, status: int
) -> None:
    assert imported(run, web).exit_code == 0
    web.files["/v1/paths/stock.yaml"] = status
    failed = run("catalog", "refresh", "shop", "--no-index", "--json")
    assert failed.exit_code == 1
    assert str(status) in failed.stdout + failed.stderr
    assert described(run, "stock")["parameters"]


def test_no_more_than_so_many_files_are_read(
    run: Run, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MOST_FILES", 2)
    failed = imported(run, web)
    assert failed.exit_code == 1
    assert "refers to more than 2 files" in failed.stdout + failed.stderr


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:1/x.yaml", "//127.0.0.1:1/x.yaml", "/etc/passwd", "../../../secret.yaml",
     ".hidden/x.yaml", "file:///etc/x.yaml", "x.html", "%2e%2e/secret.yaml"],
)  # fmt: skip
def test_a_reference_leads_nowhere_but_into_the_folder(run: Run, web: Web, target: str) -> None:
    document = json.loads(FILES["/v1/openapi.yaml"])
    document["paths"]["/stock"] = {"$ref": target}
    web.files["/v1/openapi.yaml"] = json.dumps(document)
    report = json.loads(imported(run, web).stdout)
    assert report["added"] == ["Other/shop/orders"]
    assert all(one.startswith("/v1/") for one in web.asked)


def test_what_another_document_of_the_host_brought_is_not_read(run: Run, web: Web) -> None:
    """Downloads of one host lie in one folder: a name in it says nothing."""
    web.files["/v2/size.yaml"] = json.dumps(json.loads(FILES["/v1/openapi.yaml"]))
    run("catalog", "import", f"http://{web.host}/v2/size.yaml", "--no-index")
    document = json.loads(FILES["/v1/openapi.yaml"])
    document["paths"]["/stock"] = {"$ref": "size.yaml"}
    web.files["/v1/openapi.yaml"] = json.dumps(document)
    report = json.loads(imported(run, web).stdout)
    assert report["added"] == ["Other/shop/orders"]
    assert "/v1/size.yaml" in web.asked

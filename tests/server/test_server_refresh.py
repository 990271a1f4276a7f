"""``catalog refresh``: sources read again as they were imported, shown first, or left as they were."""

from __future__ import annotations

import functools
import json
import sqlite3
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests import catalog_commands
from tests.catalog_commands import told

from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_runtime.hub import web as hub_web

Run = Callable[..., Result]
SERVER = Path(__file__).parent / "tool_server.py"


def operation(name: str, tag: str, about: str = "") -> dict[str, Any]:
    return {"operationId": name, "summary": about or f"{name} it", "tags": [tag], "responses": {}}


def shop(**paths: Any) -> dict[str, Any]:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {
            "/orders": {
                "get": operation("list_orders", "orders"),
                "post": operation("add_order", "orders"),
            },
            "/admin/users": {"get": operation("list_users", "admin")},
            "/stock": {"get": operation("stock", "stock")},
            **paths,
        },
    }


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def imported(run: Run, source: str, *options: str) -> dict[str, Any]:
    return catalog_commands.imported(run, source, "--name", "shop", "--no-index", *options)


def ids(run: Run) -> set[str]:
    document = json.loads(run("catalog", "show", "shop", "--json").stdout)
    return {one["id"].rpartition("/")[2] for one in document}


def refreshed(run: Run, *options: str) -> dict[str, Any]:
    report: dict[str, Any] = told(
        run("catalog", "refresh", "shop", "--no-index", "--json", *options)
    )
    return report


def test_a_refresh_shows_then_takes_over_and_a_changed_text_waits(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "shop.json", shop())
    assert len(imported(run, str(path))["added"]) == 4
    changed = operation("list_orders", "orders", "List what was ordered")
    changed["parameters"] = [{"name": "page", "in": "query", "schema": {"type": "integer"}}]
    document = shop(
        **{"/orders": {"get": changed}, "/carts": {"get": operation("list_carts", "carts")}}
    )
    write(path, document)
    shown = refreshed(run, "--dry-run")
    assert (shown["added"], shown["removed"]) == (
        ["Other/shop/list_carts"],
        ["Other/shop/add_order"],
    )
    (one,) = shown["changed"]
    assert (one["id"], one["what"]) == ("Other/shop/list_orders", ["description", "arguments"])
    assert any("List what was ordered" in line for line in one["diff"])
    assert ids(run) == {"list_orders", "add_order", "list_users", "stock"}
    taken = refreshed(run)
    assert (taken["added"], taken["waiting"]) == (shown["added"], 1)
    assert ids(run) == {"list_orders", "list_carts", "list_users", "stock"}
    served = json.loads(run("describe", "Other/shop/list_orders", "--json").stdout)
    assert "List what was ordered" not in json.dumps(served)
    again = refreshed(run)
    assert (again["added"], again["removed"], again["waiting"]) == ([], [], 1)


def test_people_see_the_changes_before_the_report(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "shop.json", shop())
    imported(run, str(path))
    write(path, shop(**{"/stock": {"get": operation("stock", "stock", "How much is left")}}))
    result = run("catalog", "refresh", "shop", "--no-index")
    assert result.exit_code == 0
    head, _, rest = result.stdout.partition("changed: Other/shop/stock (description)")
    assert rest.find("+description: How much is left") < rest.find("unchanged")
    assert result.stdout.count("+description: How much is left") == 1, head


@pytest.mark.parametrize("broken", ["gone", "no JSON", "a page", "empty"])
def test_a_source_that_is_gone_or_broken_leaves_the_catalog(
    run: Run, tmp_path: Path, broken: str
) -> None:
    path = write(tmp_path / "shop.json", shop())
    imported(run, str(path))
    if broken == "gone":
        path.unlink()
    else:
        path.write_text({"no JSON": '{"openapi', "a page": "<html>", "empty": ""}[broken], "utf-8")
    result = run("catalog", "refresh", "shop", "--no-index", "--json")
    assert result.exit_code in (1, 2)
    assert "stays as it was" in result.stderr
    assert len(ids(run)) == 4


def test_rules_are_kept_and_a_refresh_reads_by_them(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "shop.json", shop())
    rules = ("--include", "tag:ORDERS", "--include", "tag:admin", "--exclude", "path:/admin/*")
    document = imported(run, str(path), *rules, "--include", "method:get")
    assert ids(run) == {"list_orders"}
    assert document["read"]["not_selected"] == 3
    write(path, shop(**{"/orders/{id}": {"get": operation("one_order", "orders")}}))
    assert refreshed(run)["added"] == ["Other/shop/one_order"]
    assert ids(run) == {"list_orders", "one_order"}
    assert refreshed(run, "--include", "tag:stock")["added"] == ["Other/shop/stock"]
    assert ids(run) == {"stock"}
    assert refreshed(run)["unchanged"] == 1
    shown = json.loads(run("catalog", "inspect", "shop", "--json").stdout)
    assert shown["options"]["include"] == ["tag:stock"]


def test_a_rule_that_fits_nothing_names_the_tags_that_there_are(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "shop.json", shop())
    words = ("catalog", "import", str(path), "--name", "shop", "--no-index")
    result = run(*words, "--include", "tag:order")
    assert result.exit_code == 2
    assert "admin, orders, stock" in result.stderr
    assert run(*words, "--include", "orders").exit_code == 2
    nothing = run(*words, "--exclude", "path:*")
    assert nothing.exit_code == 1
    assert "none of the 4 operations" in nothing.stderr


def test_all_are_refreshed_and_one_that_fails_is_named(run: Run, tmp_path: Path) -> None:
    first = write(tmp_path / "first.json", shop())
    second = write(tmp_path / "second.json", shop())
    for path in (first, second):
        told(run("catalog", "import", str(path), "--no-index", "--json"))
    first.unlink()
    write(second, shop(**{"/carts": {"get": operation("list_carts", "carts")}}))
    result = run("catalog", "refresh", "--all", "--no-index", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [one["name"] for one in document["failed"]] == ["first"]
    assert [one["added"] for one in document["refreshed"]] == [["Other/shop/list_carts"]]
    assert run("catalog", "refresh", "offline").exit_code == 2
    assert run("catalog", "refresh").exit_code == 2
    assert run("catalog", "refresh", "nobody").exit_code == 2


def test_a_url_is_fetched_again_with_the_options_of_its_import(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", "127.0.0.1")
    path = write(tmp_path / "openapi.json", shop())
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/openapi.json"
        imported(run, url, "--include", "method:GET", "--server", "https://other.example")
        write(path, shop(**{"/carts": {"get": operation("list_carts", "carts")}}))
        document = refreshed(run)
        path.unlink()
        gone = run("catalog", "refresh", "shop", "--no-index")
        server.shutdown()
    assert document["added"] == ["Other/shop/list_carts"]
    assert (document["origin"]["address"], document["changed"]) == (url, [])
    assert gone.exit_code != 0
    assert len(ids(run)) == 4


class _Answers(BaseHTTPRequestHandler):
    """Answers with what ``answer`` is: a status, a media type and a body."""

    answer: tuple[int, str, bytes] = (200, "application/json", b"")

    def do_GET(self) -> None:
        status, media, content = self.answer
        self.send_response(status)
        self.send_header("Content-Type", media)
        if status != 304:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Stay silent."""


@pytest.fixture
def place(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of the shop's document, imported from there as ``shop``."""
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/openapi.json"
        _answer(shop())
        imported(run, url)
        yield url
        server.shutdown()


def _answer(document: Any = None, status: int = 200, page: bytes = b"") -> None:
    media = "text/html" if page else "application/json"
    content = page or (json.dumps(document).encode() if document is not None else b"")
    _Answers.answer = (status, media, content)


PAGE = b"\n<!-- moved --><!DOCTYPE html><html><body>Log in</body></html>"


@pytest.mark.parametrize(
    ("status", "page", "said"),
    [
        (404, b"", "there is nothing at"),
        (410, b"", "there is nothing at"),
        (401, b"", "answered 401"),
        (429, b"", "it is asked too often"),
        (500, b"", "answered 500"),
        (304, b"", "answered 304"),
        (200, PAGE, "is a web page"),
        (200, b"", "is empty"),
    ],
)
def test_a_url_that_answers_otherwise_leaves_the_catalog(
    run: Run, place: str, status: int, page: bytes, said: str
) -> None:
    _answer(status=status, page=page)
    result = run("catalog", "refresh", "shop", "--no-index")
    assert result.exit_code in (1, 2)
    assert "shop stays as it was" in result.stderr
    assert said in result.stderr
    assert place in result.stderr
    assert "hint: " in result.stderr
    assert len(ids(run)) == 4
    _answer(shop())
    assert refreshed(run)["unchanged"] == 4


@pytest.mark.usefixtures("place")
def test_a_source_that_holds_another_document_is_taken_over_only_where_a_person_says_so(
    run: Run,
) -> None:
    other = shop()
    other["info"]["title"] = "Harbour"
    _answer(other)
    for options in ((), ("--dry-run",)):
        result = run("catalog", "refresh", "shop", "--no-index", *options)
        assert result.exit_code == 1
        assert "none of the 4 APIs" in result.stderr
        assert "Harbour" in result.stderr
        assert "removed: Other/shop/add_order, Other/shop/list_orders" in result.stdout
    document = json.loads(run("catalog", "show", "shop", "--json").stdout)
    assert {one["id"].split("/")[1] for one in document} == {"shop"}
    shown = refreshed(run, "--dry-run", "--accept")
    assert len(shown["removed"]) == 4
    assert len(refreshed(run, "--accept")["added"]) == 4


def _forget(data_dir: Path) -> None:
    """Leave of a catalog what earlier versions kept: a source, and no origin and no options."""
    with sqlite3.connect(data_dir / STORE_FILE) as database:
        database.execute("UPDATE catalogs SET origin = 'null', options = '{}' WHERE name = 'shop'")


@pytest.mark.parametrize(
    ("servers", "path"),
    [(None, "/stock"), ([{"url": "/v3"}], "/v3/stock"), ([{"url": "v3"}], "/docs/v3/stock")],
)
def test_a_server_without_a_host_is_relative_to_the_url_of_its_document(
    run: Run, place: str, servers: Any, path: str
) -> None:
    document = shop() | {"servers": servers}
    _answer({key: one for key, one in document.items() if one is not None})
    base = place.rpartition("/")[0]
    told_of = imported(run, f"{base}/docs/openapi.json", "--accept")
    assert told_of["refused"] == []
    described = told(run("describe", "Other/shop/stock", "--json"))
    assert described["url"] == base + path
    assert refreshed(run)["changed"] == []


@pytest.mark.parametrize("kind", ["file", "folder", "archive", "url"])
def test_a_catalog_of_an_earlier_version_is_read_from_its_source(
    run: Run, tmp_path: Path, data_dir: Path, place: str, kind: str
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    path = write(folder / "shop.json", shop())
    with tarfile.open(tmp_path / "shop.tar.gz", "w:gz") as archive:
        archive.add(path, "shop.json")
    sources = {"file": path, "folder": folder, "archive": tmp_path / "shop.tar.gz", "url": place}
    imported(run, str(sources[kind]))
    _forget(data_dir)
    more = shop(**{"/carts": {"get": operation("list_carts", "carts")}})
    write(path, more)
    _answer(more)
    with tarfile.open(tmp_path / "shop.tar.gz", "w:gz") as archive:
        archive.add(path, "shop.json")
    first = run("catalog", "refresh", "shop", "--no-index", "--json")
    assert json.loads(first.stdout)["added"] == ["Other/shop/list_carts"]
    assert "imported by an earlier version" in first.stderr
    again = run("catalog", "refresh", "shop", "--no-index", "--json")
    assert json.loads(again.stdout)["unchanged"] == 5
    assert "earlier version" not in again.stderr


def test_a_catalog_of_an_earlier_version_is_not_moved_to_another_category(
    run: Run, tmp_path: Path, data_dir: Path
) -> None:
    imported(run, str(write(tmp_path / "shop.json", shop())), "--category", "Sales")
    _forget(data_dir)
    result = run("catalog", "refresh", "shop", "--no-index")
    assert result.exit_code == 1
    assert "--category" in result.stderr
    document = json.loads(run("catalog", "show", "shop", "--json").stdout)
    assert {one["id"].split("/")[0] for one in document} == {"Sales"}


class _Unsized(SimpleHTTPRequestHandler):
    """Sends a document without saying how large it is, as servers do that write while they send."""

    document = shop()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(self.document).encode())


def test_a_document_of_unknown_size_is_brought_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Unsized) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/docs"
        first = imported(run, url)
        again = refreshed(run)
        monkeypatch.setattr(hub_web, "UNSIZED_LIMIT", 100)
        large = run("catalog", "refresh", "shop", "--no-index")
        server.shutdown()
    assert (len(first["added"]), again["unchanged"]) == (4, 4)
    assert large.exit_code == 1
    assert len(ids(run)) == 4


@pytest.mark.usefixtures("no_keyring")
def test_an_mcp_server_is_listed_again(run: Run, tmp_path: Path, data_dir: Path) -> None:
    state = tmp_path / "state.json"
    command = f"mcp:'{sys.executable}' '{SERVER}' --state '{state}'"
    words = ("catalog", "import", command, "--name", "harbour", "--no-index", "--json")
    before = told(run(*words))["apis"]
    state.write_text(json.dumps({"about": "Tell the tide, and the moon."}))
    result = told(run("catalog", "refresh", "harbour", "--no-index", "--json"))
    assert [one["id"] for one in result["changed"]] == ["Other/harbour/tide"]
    assert "description" in result["changed"][0]["what"]
    assert (result["waiting"], result["unchanged"]) == (1, before - 1)
    (data_dir / "mcp_servers.json").unlink()
    assert run("catalog", "refresh", "harbour", "--no-index").exit_code != 0

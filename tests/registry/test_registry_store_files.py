"""The store's file: of earlier versions, damaged, on a full disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from toolsrv_registry import documents
from toolsrv_registry.api import ORIGINAL, Api, Catalog, Parameter, Tool
from toolsrv_registry.errors import DataError
from toolsrv_registry.storage.schema import MIGRATIONS
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]


@contextmanager
def earlier(path: Path, versions: int) -> Iterator[sqlite3.Connection]:
    """Change a file into one of so many versions ago."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection
        connection.execute("DROP TABLE response_schemas")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) - versions}")


def test_a_file_of_an_earlier_version_keeps_its_catalogs(tmp_path: Path, make_api: MakeApi) -> None:
    path = tmp_path / "registry.sqlite3"
    api = make_api("Tools", "T", "one")
    plain = Catalog(name="small", tools=(Tool(category="Tools", name="T", apis=(api,)),))
    with Store.open(path) as store:
        store.put_catalog(plain)
    with earlier(path, 7) as connection:
        connection.execute("DROP TABLE originals")
        connection.execute("DROP TABLE removed")
        connection.execute("ALTER TABLE tools DROP COLUMN file")
        connection.execute("ALTER TABLE catalogs DROP COLUMN origin")
        connection.execute("ALTER TABLE catalogs DROP COLUMN options")
    extras = ({ORIGINAL: "as it was read"},)
    more = plain.tools[0].model_copy(update={"api_extras": extras})
    with Store.open(path) as store:
        assert store.catalog("small") == plain
        assert store.files("small") == ("",)
        whole = Catalog(name="small", tools=(more,))
        assert store.put_catalog(whole, hold=True, files=["T.json"]).unchanged == 1
        assert store.catalog("small").tools == (more,)
        assert store.files("small") == ("T.json",)


def test_documents_that_named_no_category_get_their_hash_anew(
    tmp_path: Path, make_api: MakeApi
) -> None:
    path = tmp_path / "registry.sqlite3"
    apis = (make_api("Other", "T", "one"), make_api("Tools", "U", "two"))
    tools = tuple(Tool(category=one.category, name=one.tool, apis=(one,)) for one in apis)
    with Store.open(path) as store:
        store.put_catalog(Catalog(name="small", tools=tools))
        wanted = store.documents()
    with earlier(path, 3) as connection:
        connection.execute("UPDATE apis SET document_hash = 'x' WHERE category = 'Other'")
    with Store.open(path) as store:
        assert store.documents() == wanted
    assert {one.text.partition(":")[0] for one in wanted} == {"T", "Tools"}


def test_what_earlier_versions_kept_beside_a_schema_is_derived_from_it(
    tmp_path: Path, make_api: MakeApi
) -> None:
    path = tmp_path / "registry.sqlite3"
    schema = {"type": "integer", "maximum": 9}
    known = {"description": "How many", "default": 3, "examples": [4]}
    parameter = Parameter(name="n", place="query", json_schema=known | schema)
    api = make_api("Tools", "T", "one").model_copy(update={"optional": (parameter,)})
    plain = Catalog(name="small", tools=(Tool(category="Tools", name="T", apis=(api,)),))
    older = {
        "name": "n",
        "type": "NUMBER",
        "description": "How many (maximum: 9)",
        "default": 3,
        "enum": [],
        "place": "query",
        "example": 4,
        "json_schema": schema,
    }
    with Store.open(path) as store:
        store.put_catalog(plain)
        checked = documents.content_hash(api)
    document = json.loads(api.model_dump_json()) | {"optional": [older]}
    with earlier(path, 2) as connection:
        connection.execute(
            "UPDATE apis SET document = ?, content_hash = 'old'", [json.dumps(document)]
        )
        connection.execute(
            "INSERT INTO health VALUES (?, 'old', '2026-01-01', 'works', 200, 1.0, 0, 'live', '')",
            [api.id],
        )
        connection.execute("UPDATE catalogs SET content_hash = ''")
    with Store.open(path) as store:
        assert store.catalog("small") == plain
        assert store.put_catalog(plain, hold=True).unchanged == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT content_hash FROM health").fetchone() == (checked,)
        (kept,) = connection.execute("SELECT document FROM apis").fetchone()
    (one,) = json.loads(kept)["optional"]
    assert one == {"name": "n", "place": "query", "json_schema": known | schema}


def test_a_damaged_file_is_a_data_error_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.write_bytes(b"this is no database at all, " * 200)
    with pytest.raises(DataError) as caught:
        Store.open(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_file_damaged_in_the_middle_is_a_data_error(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "registry.sqlite3"
    with Store.open(path) as store:
        store.put_catalog(catalog)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(DataError), Store.open(path) as store:
        store.apis()


def test_a_data_directory_that_is_a_file_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("I am a file")
    with pytest.raises(DataError):
        Store.open(tmp_path / "data" / "registry.sqlite3")


def test_a_full_disk_is_a_data_error_and_leaves_the_old_state(
    filled: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    pages = filled._database.read("PRAGMA page_count")[0][0]
    filled._database.read(f"PRAGMA max_page_count = {pages + 2}")
    big = [make_api("Tools", "T", f"api {n}", "long words " * 300) for n in range(50)]
    with pytest.raises(DataError) as caught:
        filled.put_catalog(make_catalog(*big, name="big"))
    assert "space" in caught.value.message
    assert [entry.name for entry in filled.catalogs()] == ["small"]
    assert filled.stats().apis == 12

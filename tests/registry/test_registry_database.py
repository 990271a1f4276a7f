"""The SQLite file under everything: whose it is, its versions, and whose failure a failure is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from toolsrv_registry.errors import DataError
from toolsrv_registry.storage.database import APPLICATION_ID, Database
from toolsrv_registry.storage.schema import MIGRATIONS
from toolsrv_registry.storage.store import Store


def create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE ours (x)")


def theirs(path: Path, *, owner: int = 0, version: int = 0, tables: int = 1) -> bytes:
    """Make another program's file; return its bytes."""
    connection = sqlite3.connect(path)
    for number in range(tables):
        connection.execute(f"CREATE TABLE theirs{number} (x)")
    connection.execute(f"PRAGMA application_id = {owner}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("owner", "version", "tables"),
    [(0, 0, 1), (0, 1, 1), (0, 2, 1), (0, 99, 1), (7, 0, 0), (7, 1, 1), (0, 1, 0)],
)
def test_another_programs_file_is_refused_before_anything_is_written(
    tmp_path: Path, owner: int, version: int, tables: int
) -> None:
    path = tmp_path / "file.db"
    before = theirs(path, owner=owner, version=version, tables=tables)
    for opened in (lambda: Database.open(path, [create, create]), lambda: Store.open(path)):
        with pytest.raises(DataError) as caught:
            opened()
        assert "another program" in caught.value.message
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_an_empty_file_of_nobody_is_begun(tmp_path: Path) -> None:
    for name, content in (("none.db", b""), ("empty.db", theirs(tmp_path / "empty.db", tables=0))):
        path = tmp_path / name
        path.write_bytes(content)
        with Database.open(path, [create]) as database:
            assert database.read("SELECT * FROM ours") == []


def test_a_newer_versions_file_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file.db"
    before = theirs(path, owner=APPLICATION_ID, version=2)  # as a copy by VACUUM INTO: no WAL
    with pytest.raises(DataError) as caught:
        Database.open(path, [create])
    assert "newer" in caught.value.message
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_a_file_of_every_version_there_was_is_opened(tmp_path: Path, version: int) -> None:
    path = tmp_path / "registry.sqlite3"
    Database.open(path, MIGRATIONS[:version]).close()
    with Store.open(path) as store:
        assert store.stats().apis == 0
        (row,) = store._database.read("PRAGMA user_version")
        assert row[0] == len(MIGRATIONS)


def test_what_goes_wrong_beside_the_file_is_not_told_as_its_failure(tmp_path: Path) -> None:
    missing = tmp_path / "pack.zip"

    def add(database: Database, then: Callable[[sqlite3.Connection], object]) -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO ours VALUES (1)")
            then(connection)

    with Database.open(tmp_path / "file.db", [create]) as database:
        with pytest.raises(FileNotFoundError) as caught:
            add(database, lambda _: missing.read_bytes())
        assert caught.value.filename == str(missing)
        with pytest.raises(DataError):
            add(database, lambda connection: connection.execute("INSERT INTO nothing VALUES (1)"))
        assert database.read("SELECT * FROM ours") == []

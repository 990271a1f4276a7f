"""What is kept of a registry file until it changes: own writes, others' writes, one look a search."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from toolsrv_registry.api import Catalog
from toolsrv_registry.registry import Registry
from toolsrv_registry.storage.database import Database
from toolsrv_registry.storage.store import Store


class Counted:
    """Counts how often it is read."""

    def __init__(self, store: Store) -> None:
        self.times = 0
        self._store = store

    def __call__(self) -> list[str]:
        self.times += 1
        return [entry.name for entry in self._store.catalogs()]


def test_what_is_kept_is_read_again_after_our_own_write_only(
    filled: Store, make_catalog: Callable[..., Catalog]
) -> None:
    read = Counted(filled)
    kept = filled.kept(read)
    first = kept.get()
    assert kept.get() is first
    assert read.times == 1
    filled.put_catalog(make_catalog(name="another"))
    assert "another" in kept.get()
    assert read.times == 2


def test_another_process_is_seen_after_the_steady_block(
    filled: Store, make_catalog: Callable[..., Catalog]
) -> None:
    kept = filled.kept(Counted(filled))
    with Store.open(filled.path) as other, filled.steady():
        kept.get()
        other.put_catalog(make_catalog(name="another"))
        assert "another" not in kept.get()
        with filled.steady():
            assert "another" not in kept.get()
        # Our own write makes it look again, and then it sees all there is.
        filled.put_catalog(make_catalog(name="own"))
        assert {"another", "own"} <= set(kept.get())
    assert "another" in kept.get()


def test_a_steady_block_binds_its_thread_and_its_file_alone(
    filled: Store, make_catalog: Callable[..., Catalog]
) -> None:
    kept = filled.kept(Counted(filled))
    found: list[list[str]] = []
    with Store.open(filled.path) as other:
        others = other.kept(Counted(other))
        assert "another" not in others.get()
        with filled.steady():
            filled.put_catalog(make_catalog(name="another"))
            assert "another" in others.get()
        with filled.steady():
            kept.get()
            other.put_catalog(make_catalog(name="third"))
            thread = threading.Thread(target=lambda: found.append(kept.get()))
            thread.start()
            thread.join()
    assert "third" in found[0]


def test_a_search_reads_the_file_a_few_times_whatever_its_length(
    hashed: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "the weather in Rome, then a hash of a password, and also what a euro is in pounds"
    hashed.retriever.search(text)
    with _reads(monkeypatch) as statements:
        hashed.retriever.search(text)
    # Whether others wrote, the APIs of the hits, their labels.
    assert len(statements) == 3, statements


@contextmanager
def _reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    statements: list[str] = []
    real = Database.read

    def read(self: Database, sql: str, parameters: object = ()) -> list[sqlite3.Row]:
        statements.append(sql)
        return real(self, sql, parameters)  # type: ignore[arg-type]  # passed on as it came

    with monkeypatch.context() as patched:
        patched.setattr(Database, "read", read)
        yield statements

"""Which collections of vectors are finished: kept beside the APIs, switched in one transaction."""

from __future__ import annotations

import json
import sqlite3
from functools import lru_cache
from typing import Any

from toolsrv_registry.database import Database
from toolsrv_registry.entries import IndexPointer


class Pointers:
    """The finished collections that a registry file knows, by place and encoder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def at(self, place: str) -> list[IndexPointer]:
        """Return all finished collections at a place."""
        rows = self._database.read("SELECT * FROM indexes WHERE place = ?", [place])
        return [_pointer(row) for row in rows]

    def get(self, place: str, encoder_digest: str) -> IndexPointer | None:
        """Return the finished collection of an encoder at a place, if any."""
        rows = self._database.read(
            "SELECT * FROM indexes WHERE place = ? AND encoder_digest = ?", [place, encoder_digest]
        )
        return _pointer(rows[0]) if rows else None

    def set(self, pointer: IndexPointer) -> None:
        """Point to a finished collection, in one transaction."""
        with self._database.write() as db:
            db.execute(
                "INSERT OR REPLACE INTO indexes VALUES (:place, :encoder_digest, :encoder,"
                " :collection, :content_hash, :documents, :built_at, :files)",
                pointer.model_dump() | {"files": json.dumps(pointer.files)},
            )

    def drop(self, place: str, *, encoder_digest: str | None = None) -> None:
        """Forget the collections at a place: one encoder's, or all of them."""
        with self._database.write() as db:
            db.execute(
                "DELETE FROM indexes WHERE place = ?1 AND encoder_digest = ifnull(?2, encoder_digest)",
                (place, encoder_digest),
            )


def _pointer(row: sqlite3.Row) -> IndexPointer:
    return _pointer_of(tuple(row.keys()), tuple(row))


@lru_cache(maxsize=8)
def _pointer_of(names: tuple[str, ...], values: tuple[Any, ...]) -> IndexPointer:
    """Return the pointer of a row; every search asks for the same one twice."""
    row = dict(zip(names, values, strict=True))
    return IndexPointer.model_validate(row | {"files": json.loads(row["files"])})

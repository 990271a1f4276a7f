"""The texts that APIs had when an import removed them: what they are compared with when they return.

An API that is away for one import would else come back as a new one, which is served at once. Rows
of the caller's transaction; only ``store_rows.py`` imports it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence


def remember(db: sqlite3.Connection, number: int, ids: Sequence[str]) -> None:
    """Keep the accepted texts of APIs of a catalog that are about to be deleted."""
    db.executemany(
        "INSERT OR REPLACE INTO removed SELECT catalog, id, content_hash, document FROM apis"
        " WHERE catalog = ? AND id = ?",
        [(number, api_id) for api_id in ids],
    )


def take_back(db: sqlite3.Connection, number: int, ids: Collection[str]) -> list[sqlite3.Row]:
    """Return id, content hash and text of those of the APIs that were removed, and forget them."""
    return db.execute(
        "DELETE FROM removed WHERE catalog = ? AND id IN (SELECT value FROM json_each(?))"
        " RETURNING id, content_hash, document",
        [number, json.dumps(list(ids))],
    ).fetchall()

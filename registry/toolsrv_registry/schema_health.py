"""The table of API checks: one row per API and content, the latest check of that content.

The content hash is part of the key, so a changed API has not been checked, and two catalogs that
share an id keep a result each. Rows are read and written in ``health.py`` only.
"""

from __future__ import annotations

import sqlite3

_STATEMENTS = (
    """
    CREATE TABLE health (
        api_id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        checked_at TEXT NOT NULL,
        verdict TEXT NOT NULL,
        status INTEGER NOT NULL,
        seconds REAL NOT NULL,
        guessed INTEGER NOT NULL,
        source TEXT NOT NULL,
        excerpt TEXT NOT NULL,
        PRIMARY KEY (api_id, content_hash)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX health_by_verdict ON health (verdict)",
)


def create_health(connection: sqlite3.Connection) -> None:
    """Make the table."""
    for statement in _STATEMENTS:
        connection.execute(statement)

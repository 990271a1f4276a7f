"""Rows of the registry's tables, written inside a transaction of the caller.

Beside ``store.py`` so that reading and writing each stay readable; nothing else imports it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from toolsrv_registry import documents, names
from toolsrv_registry.api import Api, Catalog


def put_catalog_row(db: sqlite3.Connection, name: str, total: str) -> int:
    """Add or update the row of a catalog; return its number."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = db.execute(
        "INSERT INTO catalogs (name, content_hash, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET content_hash = excluded.content_hash,"
        " updated_at = excluded.updated_at RETURNING number",
        [name, total, now],
    ).fetchall()
    return int(rows[0]["number"])


def put_tools(db: sqlite3.Connection, number: int, catalog: Catalog) -> None:
    """Replace the tools of a catalog."""
    db.execute("DELETE FROM tools WHERE catalog = ?", [number])
    db.executemany(
        "INSERT INTO tools VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                position,
                tool.category,
                names.standardize(tool.name),
                tool.name,
                tool.description,
                tool.home_url,
                tool.host,
            )
            for position, tool in enumerate(catalog.tools)
        ],
    )


def put_api(db: sqlite3.Connection, number: int, position: int, api: Api, content: str) -> None:
    """Add or update one API and its word row; ``content`` is its content hash."""
    row = db.execute(
        "INSERT INTO apis (catalog, position, id, category, tool_key, content_hash, accepted_hash,"
        " document_hash, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (catalog, id) DO UPDATE SET category = excluded.category,"
        " tool_key = excluded.tool_key, content_hash = excluded.content_hash,"
        " document_hash = excluded.document_hash, document = excluded.document"
        " RETURNING number",
        [
            number,
            position,
            api.id,
            api.category,
            api.tool_key,
            content,
            content,
            documents.document_hash(documents.document_text(api)),
            api.model_dump_json(),
        ],
    ).fetchall()[0]
    db.execute("DELETE FROM words WHERE rowid = ?", [row["number"]])
    db.execute(
        "INSERT INTO words (rowid, name, tool, category, description, about_tool, parameters)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [row["number"], *documents.columns(api)],
    )


def delete_apis(db: sqlite3.Connection, number: int, ids: Sequence[str]) -> None:
    """Delete APIs of a catalog together with their word rows."""
    keys = [(number, api_id) for api_id in ids]
    db.executemany(
        "DELETE FROM words WHERE rowid = (SELECT number FROM apis WHERE catalog = ? AND id = ?)",
        keys,
    )
    db.executemany("DELETE FROM apis WHERE catalog = ? AND id = ?", keys)

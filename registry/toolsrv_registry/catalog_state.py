"""Which catalogs a store has, in which state, read without opening it as a store.

For whoever has to know in milliseconds whether anything changed: nothing is created, migrated or
waited for.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

STORE_FILE = "registry.sqlite3"
"""The store's name in a data folder."""

STATE = "SELECT name, enabled, content_hash, revision FROM catalogs ORDER BY name"


def catalog_state(folder: Path) -> str | None:
    """Return a text that changes with the catalogs of a data folder.

    "" where it has no store, None where the store cannot be read.
    """
    path = folder / STORE_FILE
    if not path.exists():
        return ""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=0)) as connection:
            return repr(connection.execute(STATE).fetchall())
    except (sqlite3.Error, OSError):
        return None

"""Is an embedded Chroma folder whole, and what in it is of no use any more?

Asked before Chroma's native code reads it.

Chroma's core crashes the process on a truncated graph file and panics on a damaged database, so
both are checked first: the database by SQLite's own quick check, the graph files by the hashes
taken when they were built (they are never written again). Cheap: 70 ms for 16,463 vectors.

Chroma leaves the graph files of a collection that was dropped, and those of a process that was
killed: some 30 MB a build for 16,463 vectors.
"""

from __future__ import annotations

import hashlib
import sqlite3
import uuid
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

DATABASE = "chroma.sqlite3"
# Present once Chroma has saved a graph; without it the folder's files are scratch space and the
# database alone counts.
_SAVED = "index_metadata.pickle"


def database_fault(folder: Path) -> str:
    """Return what is wrong with the folder's database, ``""`` if nothing."""
    path = folder / DATABASE
    if not path.exists():
        return ""
    try:
        # Read-write, so that SQLite may roll back what a killed process left.
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=20)
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        # Busy is not broken: whoever writes there leaves it whole.
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_BUSY else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == "ok" else " ".join(found.split())


def emptied(folder: Path) -> str:
    """Return what is wrong where a database that held collections is there and empty."""
    try:
        size = (folder / DATABASE).stat().st_size
    except OSError:
        return f"{DATABASE} cannot be read"
    return "" if size else f"{DATABASE} is empty"


def graph_hashes(folder: Path) -> dict[str, str]:
    """Return relative path -> SHA-256 of all saved graph files."""
    saved = [path.parent for path in folder.glob(f"*/{_SAVED}")]
    files = [file for directory in saved for file in directory.iterdir() if file.is_file()]
    return {str(file.relative_to(folder)): _sha256(file) for file in sorted(files)}


def graph_fault(folder: Path, hashes: Mapping[str, str]) -> str:
    """Return which of the hashed files is missing or altered, ``""`` if none."""
    for name, digest in hashes.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if _sha256(path) != digest:
            return f"{name} was altered"
    return ""


def strays(folder: Path) -> list[Path]:
    """Return the graph folders that belong to no collection; none when that cannot be told."""
    uri = f"file:{quote(str(folder / DATABASE))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=20)
        try:
            used = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return []
    return [path for path in folder.iterdir() if _is_segment(path) and path.name not in used]


def _is_segment(path: Path) -> bool:
    try:
        return path.is_dir() and str(uuid.UUID(path.name)) == path.name
    except ValueError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

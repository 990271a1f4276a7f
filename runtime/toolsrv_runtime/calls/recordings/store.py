"""The recordings on disk: one SQLite file that is only ever appended to, until it is pruned.

With n entries in all: ``find`` and ``add`` O(log n), ``nearest`` that and O(``NEAREST_LIMIT``).
Safe for several threads and processes; an entry that was added survives the death of its process.
Knows nothing of how calls are made.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rapidfuzz import fuzz

from toolsrv_registry import wellformed
from toolsrv_registry.database import Database
from toolsrv_runtime.calls.recordings.entry import Entry, Provenance

RECORDINGS_FILE = "recordings.sqlite3"
"""The store's name in a data directory."""

NEAREST_LIMIT = 300
"""The latest entries of an API that a near one is looked for among."""
_PAGE = 500

_SCHEMA = (
    """
    CREATE TABLE entries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        digest TEXT NOT NULL UNIQUE,
        key TEXT NOT NULL,
        api_id TEXT NOT NULL,
        provenance TEXT NOT NULL CHECK (provenance IN ('live', 'imported', 'simulated')),
        kind TEXT NOT NULL,
        recorded_at TEXT NOT NULL,
        document TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX entries_by_key ON entries (key)",
    "CREATE INDEX entries_by_api ON entries (api_id)",
    "CREATE TABLE key_names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    """
    CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'recordings are never changed'); END
    """,
)
_INSERT = (
    "INSERT OR IGNORE INTO entries (digest, key, api_id, provenance, kind, recorded_at, document)"
    " VALUES (:digest, :key, :api_id, :provenance, :kind, :recorded_at, :document)"
)
_RANK = "CASE provenance WHEN 'live' THEN 0 WHEN 'imported' THEN 1 ELSE 2 END"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which entries are meant: all conditions that are set must hold.

    ``failed`` are calls that did not succeed; ``superseded`` those that ``find`` no longer
    returns; ``before`` is a time in ISO 8601 (entries without a time are never before it).
    """

    api_ids: frozenset[str] = frozenset()
    provenances: frozenset[Provenance] = frozenset()
    before: str = ""
    failed: bool = False
    superseded: bool = False

    def where(self) -> tuple[str, dict[str, Any]]:
        """Return the condition in SQL, and its parameters."""
        parts = ["1"]
        if self.api_ids:
            parts.append("api_id IN (SELECT value FROM json_each(:api_ids))")
        if self.provenances:
            parts.append("provenance IN (SELECT value FROM json_each(:provenances))")
        if self.before:
            parts.append("recorded_at <> '' AND recorded_at < :before")
        if self.failed:
            parts.append("kind <> 'ok'")
        if self.superseded:
            parts.append(
                "number <> (SELECT other.number FROM entries AS other"  # noqa: S608 - a constant
                f" WHERE other.key = entries.key ORDER BY {_RANK}, other.number DESC LIMIT 1)"
            )
        return " AND ".join(parts), {
            "api_ids": json.dumps(sorted(self.api_ids)),
            "provenances": json.dumps(sorted(self.provenances)),
            "before": self.before,
        }


@dataclass(frozen=True, slots=True)
class Stats:
    """What the recordings hold; ``oldest`` and ``newest`` are ``""`` where no time is known."""

    entries: int
    calls: int
    apis: int
    provenances: dict[str, int]
    kinds: dict[str, int]
    oldest: str
    newest: str
    bytes: int


class RecordingStore:
    """An open file of recordings; ``RecordingStore.open`` makes one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create the file.

        Raises DataError (damaged, unreadable, foreign, newer, no room) and BusyError.
        """
        return cls(Database.open(path, (_create,)))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._database.path

    def add(self, entry: Entry) -> None:
        """Append an entry. Raises DataError (no room, damaged) and BusyError."""
        self.add_all([entry])

    def add_all(self, entries: Iterable[Entry], key_names: Iterable[str] = ()) -> int:
        """Append entries in one transaction; return how many were new.

        What ``entries`` raises undoes all of it.
        """
        added = 0
        with self._database.write() as db:
            for one in entries:
                added += db.execute(_INSERT, _columns(one)).rowcount
            rows = [(name,) for name in key_names]
            db.executemany("INSERT OR IGNORE INTO key_names VALUES (?)", rows)
        return added

    def find(self, key: str) -> Entry | None:
        """Return the entry that answers a call: live before imported before simulated, newest."""
        rows = self._database.read(
            f"SELECT document FROM entries WHERE key = ? ORDER BY {_RANK}, number DESC LIMIT 1",  # noqa: S608 - a constant
            [key],
        )
        return _entry(rows[0]) if rows else None

    def nearest(self, api_id: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the recorded arguments of an API that are most like these, None without any."""
        rows = self._database.read(
            "SELECT json_extract(document, '$.arguments') AS arguments FROM entries"
            " WHERE api_id = ? ORDER BY number DESC LIMIT ?",
            [api_id, NEAREST_LIMIT],
        )
        known: list[dict[str, Any]] = [wellformed.loads(row["arguments"]) for row in rows]
        return max(known, key=lambda one: _likeness(one, arguments), default=None)

    def entries(self, chosen: Chosen | None = None) -> Iterator[Entry]:
        """Yield entries in the order in which they were added."""
        where, values = (chosen or Chosen()).where()
        last = 0
        while rows := self._database.read(
            f"SELECT number, document FROM entries WHERE number > :last AND {where}"  # noqa: S608 - constants
            f" ORDER BY number LIMIT {_PAGE}",
            values | {"last": last},
        ):
            last = rows[-1]["number"]
            yield from map(_entry, rows)

    def count(self, chosen: Chosen) -> int:
        """Return how many entries are meant."""
        where, values = chosen.where()
        rows = self._database.read(f"SELECT count(*) AS n FROM entries WHERE {where}", values)  # noqa: S608 - constants
        return int(rows[0]["n"])

    def prune(self, chosen: Chosen) -> int:
        """Remove entries in one transaction and give their room back; return how many."""
        where, values = chosen.where()
        with self._database.write() as db:
            removed = db.execute(f"DELETE FROM entries WHERE {where}", values).rowcount  # noqa: S608 - constants
        self._database.read("VACUUM")
        return removed

    def note_key(self, name: str) -> None:
        """Remember that calls were made with a key of this name; never the key."""
        self.add_all((), [name])

    def key_names(self) -> frozenset[str]:
        """Return the names of keys that there were while calls were recorded."""
        return frozenset(row["name"] for row in self._database.read("SELECT name FROM key_names"))

    def recorded_apis(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of APIs with a recording of their own, and of those with a simulation."""
        rows = self._database.read("SELECT DISTINCT api_id, provenance FROM entries")
        invented = frozenset(row["api_id"] for row in rows if row["provenance"] == "simulated")
        real = frozenset(row["api_id"] for row in rows if row["provenance"] != "simulated")
        return real, invented

    def latest(self, api_ids: Iterable[str]) -> dict[str, str]:
        """Return of which APIs calls are recorded, and when each last succeeded live.

        The time is ``""`` where none did, or none is known.
        """
        rows = self._database.read(
            "SELECT api_id, max(CASE WHEN kind = 'ok' AND provenance = 'live' THEN recorded_at"
            " ELSE '' END) AS at FROM entries WHERE provenance <> 'simulated'"
            " AND api_id IN (SELECT value FROM json_each(?)) GROUP BY api_id",
            [json.dumps(list(api_ids))],
        )
        return {row["api_id"]: row["at"] for row in rows}

    def stats(self) -> Stats:
        """Return what there is."""
        row = self._database.read(
            "SELECT count(*) AS entries, count(DISTINCT key) AS calls,"
            " count(DISTINCT api_id) AS apis, ifnull(min(nullif(recorded_at, '')), '') AS oldest,"
            " ifnull(max(recorded_at), '') AS newest FROM entries"
        )[0]
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        return Stats(
            **dict(row),
            provenances=self._counts("provenance"),
            kinds=self._counts("kind"),
            bytes=sum(file.stat().st_size for file in files if file.exists()),
        )

    def _counts(self, column: str) -> dict[str, int]:
        rows = self._database.read(
            f"SELECT {column} AS name, count(*) AS n FROM entries GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608 - a constant
        )
        return {row["name"]: row["n"] for row in rows}


def _columns(entry: Entry) -> dict[str, str]:
    named = entry.model_dump(include={"key", "api_id", "provenance", "kind", "recorded_at"})
    return named | {"digest": entry.digest, "document": entry.line()}


def _entry(row: sqlite3.Row) -> Entry:
    return Entry.model_validate(json.loads(row["document"]))


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


def _likeness(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Return how much arguments have in common: equal values count 1, similar ones less."""
    names = known.keys() | wanted.keys()
    shared = known.keys() & wanted.keys()
    alike = sum(_alike(str(known[name]), str(wanted[name])) for name in shared)
    return alike / len(names) if names else 1.0


def _alike(one: str, other: str) -> float:
    return 1.0 if one == other else fuzz.ratio(one[:200], other[:200]) / 200

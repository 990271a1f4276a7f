"""Store recordings in SQLite, and exchange them as packs.

``RecordingStore`` is one SQLite file that is appended to until it is pruned. A pack is a zip of
``entries.jsonl`` and a manifest with its SHA-256; a pack whose content differs from its manifest is
refused. Knows nothing of calls.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rapidfuzz import fuzz

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_registry.storage.database import Database
from toolsrv_runtime.calls.recordings import Provenance, Recording
from toolsrv_runtime.files import is_zip_file, open_atomic

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
class RecordingFilter:
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
class RecordingStats:
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

    def add(self, entry: Recording) -> None:
        """Append an entry. Raises DataError (no room, damaged) and BusyError."""
        self.add_all([entry])

    def add_all(self, entries: Iterable[Recording], key_names: Iterable[str] = ()) -> int:
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

    def find(self, key: str) -> Recording | None:
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
        return max(known, key=lambda one: _similarity(one, arguments), default=None)

    def responses(self, api_id: str, most: int) -> list[Any]:
        """Return what successful calls of an API returned, live ones first, then the newest.

        Simulated ones are left out.
        """
        rows = self._database.read(
            "SELECT document FROM entries WHERE api_id = ? AND kind = 'ok'"  # noqa: S608 - a constant
            f" AND provenance <> 'simulated' ORDER BY {_RANK}, number DESC LIMIT ?",
            [api_id, most],
        )
        return [wellformed.value(_entry(row).response) for row in rows]

    def entries(self, chosen: RecordingFilter | None = None) -> Iterator[Recording]:
        """Yield entries in the order in which they were added."""
        where, values = (chosen or RecordingFilter()).where()
        last = 0
        while rows := self._database.read(
            f"SELECT number, document FROM entries WHERE number > :last AND {where}"  # noqa: S608 - constants
            f" ORDER BY number LIMIT {_PAGE}",
            values | {"last": last},
        ):
            last = rows[-1]["number"]
            yield from map(_entry, rows)

    def count(self, chosen: RecordingFilter) -> int:
        """Return how many entries are meant."""
        where, values = chosen.where()
        rows = self._database.read(f"SELECT count(*) AS n FROM entries WHERE {where}", values)  # noqa: S608 - constants
        return int(rows[0]["n"])

    def prune(self, chosen: RecordingFilter) -> int:
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

    def stats(self) -> RecordingStats:
        """Return what there is."""
        row = self._database.read(
            "SELECT count(*) AS entries, count(DISTINCT key) AS calls,"
            " count(DISTINCT api_id) AS apis, ifnull(min(nullif(recorded_at, '')), '') AS oldest,"
            " ifnull(max(recorded_at), '') AS newest FROM entries"
        )[0]
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        return RecordingStats(
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


def _columns(entry: Recording) -> dict[str, str]:
    named = entry.model_dump(include={"key", "api_id", "provenance", "kind", "recorded_at"})
    return named | {"digest": entry.digest, "document": entry.line()}


def _entry(row: sqlite3.Row) -> Recording:
    return Recording.model_validate(json.loads(row["document"]))


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)


def _similarity(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Return how much arguments have in common: equal values count 1, similar ones less."""
    names = known.keys() | wanted.keys()
    shared = known.keys() & wanted.keys()
    alike = sum(_value_similarity(str(known[name]), str(wanted[name])) for name in shared)
    return alike / len(names) if names else 1.0


def _value_similarity(one: str, other: str) -> float:
    return 1.0 if one == other else fuzz.ratio(one[:200], other[:200]) / 200


MAX_PACK_BYTES = 4_000_000_000
"""Bytes of all entries of a pack, unpacked."""
LINE_LIMIT = 40_000_000
"""Bytes of one entry: a response of 4 MB, every character escaped, and room to spare."""
_MANIFEST, _ENTRIES = "manifest.json", "entries.jsonl"
_MANIFEST_LIMIT = 1_000_000
_TAMPERED = "get the pack again: it is damaged, or somebody has changed it"

Progress = Callable[[int, int], None]


class PackManifest(BaseModel):
    """What a pack says of itself. ``key_names`` are names of keys, never keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["toolsrv-recordings"]
    version: Literal[1]
    entries: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    digests: str = Field(pattern=r"^[0-9a-f]{64}$")
    key_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackSummary:
    """What was written or read: entries, those of them that were new, and the file's SHA-256."""

    entries: int
    added: int
    sha256: str


def write_pack(path: Path, entries: Iterable[Recording], key_names: Iterable[str]) -> PackSummary:
    """Write a pack in place of ``path``; where it fails the old file stays.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written (a full disk, no permission).
    """
    with open_atomic(path) as file:
        count = _write(file, entries, key_names)
    return PackSummary(count, count, _hash_of(path))


def _write(file: IO[bytes], entries: Iterable[Recording], key_names: Iterable[str]) -> int:
    count, size, whole, digests = 0, 0, hashlib.sha256(), hashlib.sha256()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        with pack.open(zipfile.ZipInfo(_ENTRIES), "w", force_zip64=True) as lines:
            for one in entries:
                line = one.line().encode("ascii") + b"\n"
                lines.write(line)
                whole.update(line)
                digests.update(one.digest.encode("ascii"))
                count, size = count + 1, size + len(line)
        manifest = PackManifest(
            format="toolsrv-recordings",
            version=1,
            entries=count,
            bytes=size,
            sha256=whole.hexdigest(),
            digests=digests.hexdigest(),
            key_names=tuple(sorted(key_names)),
        )
        pack.writestr(zipfile.ZipInfo(_MANIFEST), manifest.model_dump_json(indent=2))
    return count


def read_pack(
    path: Path, store: RecordingStore, *, sha256: str = "", progress: Progress | None = None
) -> PackSummary:
    """Take a pack's entries into a store, in one transaction; live ones become imported.

    ``sha256`` is what the file's own hash has to be, where the person knows it.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is a file of another kind.
        DataError: it is damaged, or not as its manifest says, or too large.
    """
    try:
        found = _hash_of(path)
        if sha256 and sha256.lower() != found:
            raise DataError(f"{path} has the SHA-256 {found}, not {sha256}", hint=_TAMPERED)
        with zipfile.ZipFile(path) as pack:
            manifest = _manifest(path, pack)
            with pack.open(_ENTRIES) as lines:
                entries = _entries(path, lines, manifest, progress)
                added = store.add_all(entries, manifest.key_names)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", hint="name a pack to import") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if not is_zip_file(path):
            raise UsageError(f"{path} is no pack", hint="name a pack to import") from None
        raise DataError(f"{path} is no pack, or a damaged one: {error}", hint=_TAMPERED) from error
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}", hint="name a pack to import"
        ) from error
    return PackSummary(manifest.entries, added, found)


def is_pack(path: Path) -> bool:
    """Whether a file has a pack's members and a manifest that ``import_pack`` would accept."""
    try:
        with zipfile.ZipFile(path) as pack:
            _manifest(path, pack)
    except (DataError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False
    return True


def _manifest(path: Path, pack: zipfile.ZipFile) -> PackManifest:
    sizes = {info.filename: info.file_size for info in pack.infolist()}
    if len(pack.infolist()) != 2 or sizes.keys() != {_MANIFEST, _ENTRIES}:
        raise DataError(
            f"{path} is no pack: it does not hold {_MANIFEST} and {_ENTRIES}, and nothing else",
            hint="name a file that toolsrv recordings export made",
        )
    if sizes[_MANIFEST] > _MANIFEST_LIMIT or sizes[_ENTRIES] > MAX_PACK_BYTES:
        raise DataError(
            f"{path} would unpack to {sum(sizes.values()):,} bytes, more than {MAX_PACK_BYTES:,}",
            hint="export it in parts: toolsrv recordings export --api ID",
        )
    with pack.open(_MANIFEST) as file:
        text = file.read(_MANIFEST_LIMIT)
    try:
        return PackManifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path}: {_MANIFEST}: {where}: {first['msg']}",
            hint="a newer toolsrv may have made it; else get it again",
        ) from error


def _entries(
    path: Path, lines: IO[bytes], manifest: PackManifest, progress: Progress | None
) -> Iterator[Recording]:
    """Yield the entries of a pack; what is not as the manifest says is raised at the end."""
    count, size, whole, digests = 0, 0, hashlib.sha256(), hashlib.sha256()
    for line in _lines(path, lines, manifest.bytes):
        count, size = count + 1, size + len(line)
        whole.update(line)
        entry = _parse_line(path, line, count)
        digests.update(entry.digest.encode("ascii"))
        if progress is not None:
            progress(min(count, manifest.entries), manifest.entries)
        live = entry.provenance == "live"
        yield entry.model_copy(update={"provenance": "imported"}) if live else entry
    seen = (count, size, whole.hexdigest(), digests.hexdigest())
    if seen != (manifest.entries, manifest.bytes, manifest.sha256, manifest.digests):
        raise DataError(f"{path}: {_ENTRIES} is not what {_MANIFEST} says", hint=_TAMPERED)


def _lines(path: Path, file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the lines of a file; one that goes on behind its announced size is not read."""
    left = most
    while line := file.readline(LINE_LIMIT + 1):
        left -= len(line)
        if left < 0 or len(line) > LINE_LIMIT:
            raise DataError(f"{path}: {_ENTRIES} is larger than it may be", hint=_TAMPERED)
        yield line


def _parse_line(path: Path, line: bytes, number: int) -> Recording:
    try:
        return Recording.model_validate(json.loads(line))
    except (ValueError, RecursionError) as error:  # ValidationError is a ValueError
        first = str(error).splitlines()[0][:200]
        raise DataError(f"{path}: entry {number} is none: {first}", hint=_TAMPERED) from error


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

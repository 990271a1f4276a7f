"""A pack: recordings in one file, a zip of ``entries.jsonl`` and a manifest with its hash.

Writing the same entries twice gives the same bytes. Reading checks the hash of the file, of every
entry in it, and the sizes, and takes all of it or nothing. Nothing is unpacked to the disk.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.atomic import fresh_bytes
from toolsrv_runtime.calls.recordings.entry import Entry
from toolsrv_runtime.calls.recordings.store import RecordingStore
from toolsrv_runtime.file_in import begins_as_zip

MOST_BYTES = 4_000_000_000
"""Bytes of all entries of a pack, unpacked."""
LINE_LIMIT = 40_000_000
"""Bytes of one entry: a response of 4 MB, every character escaped, and room to spare."""
_MANIFEST, _ENTRIES = "manifest.json", "entries.jsonl"
_MANIFEST_LIMIT = 1_000_000
_TAMPERED = "get the pack again: it is damaged, or somebody has changed it"

Progress = Callable[[int, int], None]


class Manifest(BaseModel):
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
class Packed:
    """What was written or read: entries, those of them that were new, and the file's SHA-256."""

    entries: int
    added: int
    sha256: str


def write_pack(path: Path, entries: Iterable[Entry], key_names: Iterable[str]) -> Packed:
    """Write a pack in place of ``path``; where it fails the old file stays.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written (a full disk, no permission).
    """
    with fresh_bytes(path) as file:
        count = _write(file, entries, key_names)
    return Packed(count, count, _hash_of(path))


def _write(file: IO[bytes], entries: Iterable[Entry], key_names: Iterable[str]) -> int:
    count, size, whole, digests = 0, 0, hashlib.sha256(), hashlib.sha256()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pack:
        with pack.open(zipfile.ZipInfo(_ENTRIES), "w", force_zip64=True) as lines:
            for one in entries:
                line = one.line().encode("ascii") + b"\n"
                lines.write(line)
                whole.update(line)
                digests.update(one.digest.encode("ascii"))
                count, size = count + 1, size + len(line)
        manifest = Manifest(
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
) -> Packed:
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
        if not begins_as_zip(path):
            raise UsageError(f"{path} is no pack", hint="name a pack to import") from None
        raise DataError(f"{path} is no pack, or a damaged one: {error}", hint=_TAMPERED) from error
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}", hint="name a pack to import"
        ) from error
    return Packed(manifest.entries, added, found)


def is_pack(path: Path) -> bool:
    """Whether a file has a pack's members and a manifest that ``import_pack`` would accept."""
    try:
        with zipfile.ZipFile(path) as pack:
            _manifest(path, pack)
    except (DataError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False
    return True


def _manifest(path: Path, pack: zipfile.ZipFile) -> Manifest:
    sizes = {info.filename: info.file_size for info in pack.infolist()}
    if len(pack.infolist()) != 2 or sizes.keys() != {_MANIFEST, _ENTRIES}:
        raise DataError(
            f"{path} is no pack: it does not hold {_MANIFEST} and {_ENTRIES}, and nothing else",
            hint="name a file that toolsrv recordings export made",
        )
    if sizes[_MANIFEST] > _MANIFEST_LIMIT or sizes[_ENTRIES] > MOST_BYTES:
        raise DataError(
            f"{path} would unpack to {sum(sizes.values()):,} bytes, more than {MOST_BYTES:,}",
            hint="export it in parts: toolsrv recordings export --api ID",
        )
    with pack.open(_MANIFEST) as file:
        text = file.read(_MANIFEST_LIMIT)
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path}: {_MANIFEST}: {where}: {first['msg']}",
            hint="a newer toolsrv may have made it; else get it again",
        ) from error


def _entries(
    path: Path, lines: IO[bytes], manifest: Manifest, progress: Progress | None
) -> Iterator[Entry]:
    """Yield the entries of a pack; what is not as the manifest says is raised at the end."""
    count, size, whole, digests = 0, 0, hashlib.sha256(), hashlib.sha256()
    for line in _lines(path, lines, manifest.bytes):
        count, size = count + 1, size + len(line)
        whole.update(line)
        entry = _entry(path, line, count)
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


def _entry(path: Path, line: bytes, number: int) -> Entry:
    try:
        return Entry.model_validate(json.loads(line))
    except (ValueError, RecursionError) as error:  # ValidationError is a ValueError
        first = str(error).splitlines()[0][:200]
        raise DataError(f"{path}: entry {number} is none: {first}", hint=_TAMPERED) from error


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

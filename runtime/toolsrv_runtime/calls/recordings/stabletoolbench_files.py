"""StableToolBench's cache on disk, read into recordings and written from them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_registry.file_names import portable_name
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls import toolbench_codes as codes
from toolsrv_runtime.calls.recordings import stabletoolbench as stb
from toolsrv_runtime.calls.recordings.entry import Entry, Provenance
from toolsrv_runtime.calls.recordings.key import call_key
from toolsrv_runtime.calls.recordings.masking import masked, masked_arguments
from toolsrv_runtime.calls.result import Kind
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.file_in import begins_as_zip

ORIGIN = "StableToolBench"
FILE_LIMIT = 200_000_000
"""Bytes of one file of a cache."""

_MEANT: dict[str, tuple[Kind, int]] = {
    "": ("ok", 200),
    codes.UNAUTHORIZED: ("unauthorized", 401),
    codes.UNSUBSCRIBED: ("not_subscribed", 403),
    codes.TOO_MANY: ("rate_limited", 429),
    codes.RATE_LIMIT: ("rate_limited", 429),
    codes.RATE_LIMIT_PER_MINUTE: ("rate_limited", 429),
    codes.NOT_WORKING: ("not_found", 404),
    codes.BLOCKED: ("unauthorized", 403),
    codes.TIMEOUT: ("timed_out", 0),
}
"""A label tells the outcome; the HTTP status was never kept, and this is the usual one."""
_OTHERWISE: tuple[Kind, int] = ("server_error", 500)

FindApi = Callable[[str], Api | None]
"""From an API's id to the API, None where no catalog has it."""


@dataclass(slots=True)
class Seen:
    """What a reading came to: replies by judgement, and what was left out, with the reason."""

    judged: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class CacheFile:
    """The replies of one API: ``place`` is CATEGORY, TOOL_for_CATEGORY, API.json.

    ``read`` returns its bytes; it raises DataError where they are too many or cannot be read.
    """

    place: PurePosixPath
    read: Callable[[], bytes]


def cache_files(folder: Path) -> list[CacheFile]:
    """Return the files of a cache, sorted; ``folder`` is it, or holds it.

    Raises:
        NotFoundError: there is no such folder, or no cache in it.
    """
    for place in (folder / stb.ROOT, folder / "server_cache" / stb.ROOT, folder):
        if found := sorted(place.glob("*/*_for_*/*.json")):
            return [
                CacheFile(PurePosixPath(*one.parts[-3:]), functools.partial(_content, one))
                for one in found
            ]
    raise _no_cache(folder)


@contextlib.contextmanager
def zipped_cache(path: Path) -> Iterator[list[CacheFile]]:
    """Yield the files of a cache in a zip archive, sorted; none is unpacked to the disk.

    Raises:
        NotFoundError: there is no such file, or no cache in it.
        UsageError: it is no zip archive.
        DataError: it is a damaged one.
    """
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}", hint="name a zip archive") from None
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        if path.is_file() and not begins_as_zip(path):
            raise UsageError(f"{path} is no zip archive", hint="name a zip archive") from None
        raise DataError(
            f"{path} is no zip archive, or a damaged one: {error}", hint="get it again"
        ) from error
    with archive:
        found = _cache_members(archive)
        if not found:
            raise _no_cache(path)
        yield [
            CacheFile(place, functools.partial(_unpacked, archive, member))
            for place, member in sorted(found.items())
        ]


def _cache_members(archive: zipfile.ZipFile) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """Return the members that are a cache's; those below its own folder where there is one."""
    found: dict[PurePosixPath, zipfile.ZipInfo] = {}
    below: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        parts = PurePosixPath(member.filename).parts
        place = PurePosixPath(*parts[-3:])
        if len(parts) < 3 or "__MACOSX" in parts or not place.match("*/*_for_*/*.json"):
            continue
        if place.name.startswith("."):
            continue
        found.setdefault(place, member)
        if parts[-4:-3] == (stb.ROOT,):
            below.setdefault(place, member)
    return below or found


def _no_cache(place: Path) -> NotFoundError:
    return NotFoundError(
        f"{place} holds no cache of StableToolBench",
        hint=f"name its folder {stb.ROOT}: CATEGORY/TOOL_for_CATEGORY/API.json",
    )


def read_cache(
    files: list[CacheFile], find: FindApi, seen: Seen, progress: Callable[[int, int], None]
) -> Iterator[Entry]:
    """Yield the replies of cache files whose API a catalog has; ``seen`` counts the others too."""
    for done, file in enumerate(files, 1):
        progress(done, len(files))
        api = _api_of(file.place, find)
        if api is None:
            seen.unknown.add(file.place.with_suffix("").as_posix())
        try:
            cache = _read(file)
        except DataError as error:
            seen.left_out[error.message] += 1
            continue
        for key, reply in cache.items():
            if api is None:
                seen.left_out["no catalog has the API"] += 1
            elif (entry := _entry(api, key, reply)) is None:
                seen.left_out["the reply or its arguments are damaged"] += 1
            else:
                seen.judged[entry.origin.rpartition(" ")[2]] += 1
                yield entry


def _api_of(path: PurePosixPath, find: FindApi) -> Api | None:
    """Find the API of a file; a name of an API may have its tool's behind it."""
    category, folder, name = path.parts[-3], path.parts[-2], path.stem
    tool = folder.removesuffix(f"_for_{category}")
    return find(f"{category}/{tool}/{name}") or find(
        f"{category}/{tool}/{name.removesuffix(f'_for_{tool}')}"
    )


def _read(file: CacheFile) -> dict[str, Any]:
    try:
        found = wellformed.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise DataError("files that are not JSON") from error
    if not isinstance(found, dict):
        raise DataError("files that hold no object")
    return found


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _within_limit(file)
    except OSError as error:
        raise DataError(f"files that cannot be read ({error.strerror})") from error


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as file:
            return _within_limit(file)
    except (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError("files that cannot be unpacked") from error


def _within_limit(file: IO[bytes]) -> bytes:
    data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise DataError(f"files of more than {FILE_LIMIT:,} bytes")
    return data


def _entry(api: Api, key: str, reply: Any) -> Entry | None:
    arguments = stb.read_key(key)
    if arguments is None or not isinstance(reply, dict) or {"error", "response"} - reply.keys():
        return None
    if too_deep([arguments, reply]):
        return None
    error, judged = str(reply["error"]), stb.judge(reply)
    kind, status = _MEANT.get(error, _OTHERWISE)
    provenance: Provenance = "imported" if judged == "real" else "simulated"
    shown, hidden = masked_arguments(arguments)
    try:
        number = call_key(api, arguments)
    except ArgumentError:
        return None
    return Entry(
        key=number,
        api_id=api.id,
        arguments=shown,
        status=status,
        kind=kind,
        response=masked(reply["response"], hidden),
        error=masked(error, hidden),
        seconds=0.0,
        provenance=provenance,
        origin=f"{ORIGIN}: {judged}",
        recorded_at="",
        api_hash=content_hash(api),
    )


def write_cache(folder: Path, entries: Iterable[Entry]) -> int:
    """Write entries as a cache into a new folder; of equal requests the last counts.

    Returns the number of replies. All of them are held in memory meanwhile.

    Raises:
        UsageError: there is something at ``folder`` already, or no folder to make it in.
        DataError: it cannot be written; nothing is left behind.
    """
    if folder.exists() or not folder.parent.is_dir():
        why = "exists already" if folder.exists() else "has no folder to be made in"
        raise UsageError(f"{folder} {why}", hint="name a new folder")
    files: dict[str, dict[str, Any]] = {}
    for one in entries:
        files.setdefault(_place(one.api_id), {})[stb.cache_key(one.arguments)] = _reply(one)
    fresh = folder.with_name(f".{folder.name[:80]}.{secrets.token_hex(4)}.new")
    try:
        _write(fresh, files)
        fresh.rename(folder)
    except OSError as error:
        raise DataError(
            f"cannot write {folder}: {error.strerror or error}",
            hint="free some space, or name another folder",
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return sum(map(len, files.values()))


def _place(api_id: str) -> str:
    """Return the file of an API; ids of somebody else's pack name no place outside of it."""
    parts = api_id.split("/")
    if len(parts) != 3 or any(part.strip(". ") == "" or "\\" in part for part in parts):
        raise DataError(
            f"the API id {api_id[:80]!r} is no CATEGORY/TOOL/API",
            hint="leave it out: toolsrv recordings export --api ID",
        )
    category, tool, name = map(portable_name, parts)
    return f"{stb.ROOT}/{category}/{tool}_for_{category}/{name}.json"


def _write(folder: Path, files: Mapping[str, dict[str, Any]]) -> None:
    for place, replies in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="ascii") as file:
            json.dump(replies, file, indent=4)
            file.flush()
            os.fsync(file.fileno())


def _reply(entry: Entry) -> dict[str, Any]:
    """Return an entry as the service would have said it; its own replies as they were."""
    if entry.origin.startswith(ORIGIN):
        return {"error": entry.error, "response": entry.response}
    label = codes.label(entry.result(entry.arguments, ""))
    returned = "" if entry.response is None else str(entry.response)[: stb.CUT]
    return {"error": label, "response": returned}

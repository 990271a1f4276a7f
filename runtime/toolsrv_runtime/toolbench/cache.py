"""StableToolBench's response cache: file names, keys, genuineness of replies; read and written.

Reads a cache from a folder or a zip archive without unpacking it, and writes recordings as one.
Tells replies of real APIs from simulated ones as well as their text allows. Keys depend on order
and types of the arguments, as in the reference.
"""

from __future__ import annotations

import ast
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
from typing import IO, Any, Literal

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_registry.file_names import portable_name
from toolsrv_registry.names import api_name, standardize, standardize_category
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls.recordings import (
    Provenance,
    Recording,
    call_key,
    mask_arguments,
    mask_secrets,
)
from toolsrv_runtime.calls.result import ResultKind
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.files import is_zip_file
from toolsrv_runtime.toolbench import environment as codes

CACHE_FOLDER = "tool_response_cache"
Genuineness = Literal["real", "simulated", "unclear"]

NO_SIMULATION = "Failed to generate fake response"
_KEY_LIMIT = 100_000
_UNUSABLE = (
    "http", "connection", "rate limit", "time out", "timed out", "does not exist",
    "404", "504", "500", "internal error", "api doesn't exist", "service not found",
    "authoriz", "authenticat", "unsubscribe", "blocked", "401", "403", "credential",
    "disabled for your subscription", "access_denied", "parameter", "parse",
    "is not defined", "status_code=50", "status_code=429",
)  # fmt: skip
_ALWAYS_USED = "got an unexpected keyword argument"
_SERVICE_ERRORS = ("Function executing ", "Tool input parse error")
REPLY_LIMIT = 2048
"""Characters at which ToolBench's service cuts a response."""


def cache_file(category: str, tool_name: str, api: str) -> str:
    """Return the file of an API's replies, for the names as a request gives them."""
    place = standardize_category(category)
    name = api_name(api).partition(f"_for_{tool_name}")[0]
    suffix = f"_for_{place}"
    tool = standardize(tool_name.removesuffix(suffix))
    return f"{CACHE_FOLDER}/{place}/{tool}{suffix}/{name}.json"


def cache_key(arguments: Mapping[str, Any]) -> str:
    """Return the key of a reply inside its file: order and types of the arguments count."""
    return str(dict(arguments))


def read_key(key: str) -> dict[str, Any] | None:
    """Return the arguments that a key was made of, None where it is no such key."""
    if len(key) > _KEY_LIMIT:
        return None
    try:
        found = ast.literal_eval(key)  # literals only
        json.dumps(found)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    named = isinstance(found, dict) and all(isinstance(name, str) for name in found)
    return found if named else None


def is_usable(reply: Mapping[str, Any]) -> bool:
    """Return whether the reference would have used, and kept, such a reply of a real service."""
    if reply.get("error") != "" or "response" not in reply:
        return False
    text = str(reply["response"])
    if _ALWAYS_USED in text:
        return True
    lower = text.lower()
    return bool(text) and not any(words in lower for words in _UNUSABLE)


def judge_reply(reply: Mapping[str, Any]) -> Genuineness:
    """Tell a reply of a real API from one that a model made up, as well as can be.

    The service always answers with text: Python's ``str`` of what the API returned, cut at a
    fixed length, or an error label of its own. A model answers in JSON, mostly with an object.
    Plain text is said by both, unless the reference would not have kept it from a service.
    """
    error, response = reply.get("error"), reply.get("response")
    if error in codes.LABELS or str(error).startswith(_SERVICE_ERRORS):
        return "real"
    if error == NO_SIMULATION or not isinstance(response, str):
        return "simulated"
    if len(response) == REPLY_LIMIT or _only_python(response):
        return "real"
    return "unclear" if is_usable(reply) else "simulated"


def _only_python(text: str) -> bool:
    """Whether a text is a list or object as Python prints it, and no JSON."""
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _is_literal(text)
    return False


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


ORIGIN = "StableToolBench"
FILE_LIMIT = 200_000_000
"""Bytes of one file of a cache."""

_KIND_OF_ERROR: dict[str, tuple[ResultKind, int]] = {
    "": ("ok", 200),
    codes.UNAUTHORIZED: ("unauthorized", 401),
    codes.UNSUBSCRIBED: ("not_subscribed", 403),
    codes.TOO_MANY: ("rate_limited", 429),
    codes.RATE_LIMIT: ("rate_limited", 429),
    codes.RATE_LIMIT_PER_MINUTE: ("rate_limited", 429),
    codes.NOT_WORKING: ("not_found", 404),
    codes.BLOCKED: ("unauthorized", 403),
    codes.TIMED_OUT: ("timed_out", 0),
}
"""A label tells the outcome; the HTTP status was never kept, and this is the usual one."""
_OTHER_ERROR: tuple[ResultKind, int] = ("server_error", 500)

FindApi = Callable[[str], Api | None]
"""From an API's id to the API, None where no catalog has it."""


@dataclass(slots=True)
class CacheReadout:
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
    for place in (folder / CACHE_FOLDER, folder / "server_cache" / CACHE_FOLDER, folder):
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
        if path.is_file() and not is_zip_file(path):
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
        if parts[-4:-3] == (CACHE_FOLDER,):
            below.setdefault(place, member)
    return below or found


def _no_cache(place: Path) -> NotFoundError:
    return NotFoundError(
        f"{place} holds no cache of StableToolBench",
        hint=f"name its folder {CACHE_FOLDER}: CATEGORY/TOOL_for_CATEGORY/API.json",
    )


def read_cache(
    files: list[CacheFile], find: FindApi, seen: CacheReadout, progress: Callable[[int, int], None]
) -> Iterator[Recording]:
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


def _entry(api: Api, key: str, reply: Any) -> Recording | None:
    arguments = read_key(key)
    if arguments is None or not isinstance(reply, dict) or {"error", "response"} - reply.keys():
        return None
    if too_deep([arguments, reply]):
        return None
    error, judged = str(reply["error"]), judge_reply(reply)
    kind, status = _KIND_OF_ERROR.get(error, _OTHER_ERROR)
    provenance: Provenance = "imported" if judged == "real" else "simulated"
    shown, hidden = mask_arguments(arguments)
    try:
        number = call_key(api, arguments)
    except ArgumentError:
        return None
    return Recording(
        key=number,
        api_id=api.id,
        arguments=shown,
        status=status,
        kind=kind,
        response=mask_secrets(reply["response"], hidden),
        error=mask_secrets(error, hidden),
        seconds=0.0,
        provenance=provenance,
        origin=f"{ORIGIN}: {judged}",
        recorded_at="",
        api_hash=content_hash(api),
    )


def write_cache(folder: Path, entries: Iterable[Recording]) -> int:
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
        files.setdefault(_place(one.api_id), {})[cache_key(one.arguments)] = _reply(one)
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
    return f"{CACHE_FOLDER}/{category}/{tool}_for_{category}/{name}.json"


def _write(folder: Path, files: Mapping[str, dict[str, Any]]) -> None:
    for place, replies in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="ascii") as file:
            json.dump(replies, file, indent=4)
            file.flush()
            os.fsync(file.fileno())


def _reply(entry: Recording) -> dict[str, Any]:
    """Return an entry as the service would have said it; its own replies as they were."""
    if entry.origin.startswith(ORIGIN):
        return {"error": entry.error, "response": entry.response}
    label = codes.error_label(entry.result(entry.arguments, ""))
    returned = "" if entry.response is None else str(entry.response)[:REPLY_LIMIT]
    return {"error": label, "response": returned}

"""Files that calls return, written to disk.

A file goes where a person says, else into the data folder. Nothing is overwritten unless the person
says so. A host's own name for a file only becomes a name in a folder that is chosen here. In a
solve the model reads that a file was saved and under which name; its bytes and its path stay out of
prompts.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv_registry.errors import DataError, ToolsrvError, UsageError
from toolsrv_runtime.calls.response_body import Attachment, safe_filename
from toolsrv_runtime.calls.result import PART_PREFIX, PART_SUFFIX, Spool, Spooled
from toolsrv_runtime.files import check_target, open_atomic
from toolsrv_runtime.outcome import KeptFile

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.caller import Caller
    from toolsrv_runtime.calls.result import CallResult, Consent

FOLDER = "files"
FILE_URI = "toolsrv://files/{handle}"
HANDLE_BYTES = 16
STALE_S = 86_400.0
"""A part file that is older belongs to a process that was killed."""
MOST_FILES = 200
MOST_BYTES = 500_000_000
"""What the folder keeps; the oldest files go first."""


def check_save(path: Path, *, force: bool) -> None:
    """Raise UsageError where nothing can be saved at ``path``: before the call is made.

    A folder will do: the file gets a name of its own in it.
    """
    if path.is_dir():
        return
    check_target(path)
    if path.exists() and not force:
        raise _exists(path)


def save_file(path: Path, content: bytes, *, force: bool) -> Path:
    """Write bytes to ``path`` and return it; a file that is there stays, unless ``force``.

    Raises:
        UsageError: there is a file already, or none can be made there.
        DataError: it cannot be written.
    """
    if force:
        with open_atomic(path) as file:
            file.write(content)
        return path
    made = False
    try:
        with path.open("xb") as file:
            made = True
            file.write(content)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if made:
            with contextlib.suppress(OSError):
                path.unlink()
        raise DataError(
            f"cannot write {path}: {error.strerror or error}",
            hint="free some space, or name another file",
        ) from error
    return path


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists already", hint="name another file, or add --force")


def save_spooled(path: Path, one: Spooled, *, force: bool, api_id: str) -> Path:
    """Move a part file to ``path``, or into it where it is a folder, and return where.

    Raises:
        UsageError: there is a file already.
        DataError: it cannot be moved. The part file is gone in either case.
    """
    try:
        into = path.is_dir()
        target = unused_path(path, one.name, one.media, api_id) if into else path
        if force and not into:
            one.part.replace(target)
        else:
            _moved(one.part, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}",
            hint="free some space, or name another file",
        ) from error
    finally:
        discard_part(one)
    return target


def _moved(part: Path, target: Path) -> None:
    """Give a file a second name and take the first; what is there already stays."""
    try:
        target.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(str(target)) from None
        part.replace(target)


def discard_part(one: Spooled | None) -> None:
    """Remove a part file that nobody wants."""
    if one is not None:
        with contextlib.suppress(OSError):
            one.part.unlink(missing_ok=True)


def response_spool(data_dir: Path, limit: int, save: Path | None = None) -> Spool:
    """Return where a large response goes: beside the file to save, else into the data folder.

    Only what is saved where a person says may be text, and larger than the folder keeps.
    """
    if save is not None:
        return Spool(save if save.is_dir() else save.parent, limit, texts=True)
    return Spool(data_dir / FOLDER, min(limit, MOST_BYTES))


def save_all(path: Path, files: tuple[Attachment, ...], *, force: bool, api_id: str) -> list[Path]:
    """Write what a call brought to ``path``, or into it where it is a folder; return where.

    Several files get numbers: ``photo.png``, ``photo-2.png``.

    Raises:
        UsageError, DataError: as ``save_file``.
    """
    if path.is_dir():
        return [
            save_file(unused_path(path, one.name, one.media, api_id), one.content, force=False)
            for one in files
        ]
    places = [path] + [_numbered(path, at) for at in range(2, len(files) + 1)]
    pairs = zip(places, files, strict=True) if files else ()
    return [save_file(place, one.content, force=force) for place, one in pairs]


def keep_file(data_dir: Path, file: Attachment, api_id: str) -> Path:
    """Write a file that nobody said where to save into the data folder and return where.

    Raises:
        DataError: it cannot be written.
    """
    folder = _folder_with_room(data_dir, file.size)
    return save_file(unused_path(folder, file.name, file.media, api_id), file.content, force=False)


def keep_spooled(data_dir: Path, one: Spooled, api_id: str) -> Path:
    """Move a part file into the data folder and return where.

    Raises:
        DataError: it cannot be moved; the part file is gone then.
    """
    try:
        folder = _folder_with_room(data_dir, one.size)
        return save_spooled(folder, one, force=False, api_id=api_id)
    finally:
        discard_part(one)


def saved_file(path: Path, media: str, size: int) -> KeptFile:
    """Return what is told of a file that was saved at ``path``; no MCP client reads it yet."""
    return KeptFile(name=path.name, media_type=media, bytes=size, path=str(path), uri="")


def kept_path(data_dir: Path, file: KeptFile) -> Path | None:
    """Return where a file lies in the data folder's own folder of files.

    None where it is gone, or where its path or what that links to lies elsewhere.
    """
    path = Path(file.path)
    try:
        inside = path.is_file() and path.resolve().parent == (data_dir / FOLDER).resolve()
    except OSError:
        return None
    return path if inside else None


def new_uri() -> str:
    """Return a resource address that nobody can guess, for a file that MCP clients read."""
    return FILE_URI.format(handle=secrets.token_urlsafe(HANDLE_BYTES))


def _folder_with_room(data_dir: Path, size: int) -> Path:
    """Return the data folder's own folder of files, with room for one more."""
    folder = data_dir / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, size)
    except OSError as error:
        raise DataError(
            f"cannot write to {folder}: {error.strerror or error}",
            hint="name a file with --save",
        ) from error
    return folder


def unused_path(folder: Path, name: str, media: str, api_id: str) -> Path:
    """Return a path in a folder at which nothing is yet: by the file's name, else its API's."""
    first = folder / safe_filename(name, media, safe_filename(api_id, "").rpartition(".")[0])
    numbered = (_numbered(first, number) for number in range(2, 1_000))
    free = (path for path in chain((first,), numbered) if not os.path.lexists(path))
    return next(free, _numbered(first, secrets.randbelow(10**12)))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def _make_room(folder: Path, size: int) -> None:
    """Remove the oldest files, so that one more of ``size`` bytes stays within the limits."""
    with os.scandir(folder) as entries:
        known = [(one.stat(), Path(one.path)) for one in entries if one.is_file()]
    known = [one for one in known if not _is_fresh_part(*one)]
    known.sort(key=lambda one: one[0].st_mtime)
    left = sum(stat.st_size for stat, _ in known) + size
    for at, (stat, path) in enumerate(known):
        if len(known) - at < MOST_FILES and left <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        left -= stat.st_size


def _is_fresh_part(stat: os.stat_result, path: Path) -> bool:
    """Whether a file may still be written by somebody."""
    is_part = path.name.startswith(PART_PREFIX) and path.name.endswith(PART_SUFFIX)
    return is_part and time.time() - stat.st_mtime < STALE_S


log = logging.getLogger(__name__)


class FileSavingCaller:
    """A caller whose results name the files that were saved of them."""

    def __init__(self, caller: Caller, data_dir: Path, limit: int) -> None:
        """Take the caller, and the most bytes of one file."""
        self._caller = caller
        self._data_dir = data_dir
        self._limit = limit

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """See ``Caller.call``; the result's files are in ``kept``."""
        result = await self._caller.call(
            api,
            arguments,
            tainted=tainted,
            consent=consent,
            spool=spool or response_spool(self._data_dir, self._limit),
        )
        if not result.files and result.spooled is None:
            return result
        try:
            return await asyncio.to_thread(save_files, result, self._data_dir)
        except ToolsrvError as error:
            log.warning("a file of %s was not saved: %s", result.api_id, error.message)
            return result.model_copy(update={"spooled": None, "hint": error.message})

    def schema(self, api: Api) -> Any:
        """See ``Caller.schema``."""
        return self._caller.schema(api)


class UnsavedError(DataError):
    """A call was made and its response cannot be saved; ``result`` is what the call came to."""

    def __init__(self, result: CallResult, error: ToolsrvError) -> None:
        super().__init__(error.message, hint=error.hint)
        self.result = result


def save_files(result: CallResult, data_dir: Path) -> CallResult:
    """Return a result with its files saved in the data folder and named for a model.

    Raises:
        DataError: they cannot be written.
    """
    kept = tuple(one.model_copy(update={"uri": new_uri()}) for one in _kept(result, data_dir))
    return result.model_copy(
        update={"kept": kept, "spooled": None, "response": _named(result.response, kept)}
    )


def save(
    result: CallResult, data_dir: Path, path: Path | None = None, *, force: bool = False
) -> CallResult:
    """Return a result whose ``kept`` says where its files were saved. Blocks.

    Without ``path`` bytes go to the data folder. With it they go there, or into it where it is a
    folder, and so do a text or a JSON value, where the call succeeded.

    Raises:
        UnsavedError: they cannot be written, or there is a file already and no ``force``.
    """
    try:
        kept = _kept(result, data_dir) if path is None else _kept_at(result, path, force=force)
    except ToolsrvError as error:
        raise UnsavedError(result, error) from error
    return result.model_copy(update={"kept": kept, "spooled": None})


def _kept(result: CallResult, data_dir: Path) -> tuple[KeptFile, ...]:
    api_id = result.api_id
    saved = [
        saved_file(keep_file(data_dir, one, api_id), one.media, one.size) for one in result.files
    ]
    if (large := result.spooled) is not None:
        path = keep_spooled(data_dir, large, api_id)
        saved.append(saved_file(path, large.media, large.size))
    return tuple(saved)


def _kept_at(result: CallResult, path: Path, *, force: bool) -> tuple[KeptFile, ...]:
    files, large, api_id = result.files, result.spooled, result.api_id
    if large is not None:
        place = save_spooled(path, large, force=force, api_id=api_id)
        return (saved_file(place, large.media, large.size),)
    if not files and result.ok:
        files = (_as_file(result.response),)
    places = save_all(path, files, force=force, api_id=api_id)
    pairs = zip(places, files, strict=True)
    return tuple(saved_file(place, one.media, one.size) for place, one in pairs)


def _as_file(response: Any) -> Attachment:
    """Return a text, or a JSON value on many lines, as a file in UTF-8."""
    is_text = isinstance(response, str)
    text = response if is_text else json.dumps(response, ensure_ascii=False, indent=2)
    blob = base64.b64encode(text.encode(errors="backslashreplace")).decode("ascii")
    return Attachment(media="text/plain" if is_text else "application/json", blob=blob)


def _named(response: Any, saved: Sequence[KeptFile]) -> Any:
    """Return what stands for a file in a response, with the names under which it was saved."""
    if not isinstance(response, str):
        return response
    names = ", ".join(one.name for one in saved)
    return f"{response.removesuffix(', not shown')}, saved as {names}"

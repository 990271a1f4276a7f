"""Files that calls brought, written to disk: where a person says, else into the data folder.

Nothing is overwritten unless the person says so, and a host's own name for a file only ever
becomes a name in a folder that was chosen here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from itertools import chain
from pathlib import Path

from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.atomic import check_target, fresh_bytes
from toolsrv_runtime.calls.attachment import Attachment, safe_name

FOLDER = "files"
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
        with fresh_bytes(path) as file:
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


def save_all(path: Path, files: tuple[Attachment, ...], *, force: bool, api_id: str) -> list[Path]:
    """Write what a call brought to ``path``, or into it where it is a folder; return where.

    Several files get numbers: ``photo.png``, ``photo-2.png``.

    Raises:
        UsageError, DataError: as ``save_file``.
    """
    if path.is_dir():
        return [save_file(unused(path, one, api_id), one.content, force=False) for one in files]
    places = [path] + [_numbered(path, at) for at in range(2, len(files) + 1)]
    pairs = zip(places, files, strict=True) if files else ()
    return [save_file(place, one.content, force=force) for place, one in pairs]


def keep_file(data_dir: Path, file: Attachment, api_id: str) -> Path:
    """Write a file that nobody said where to save into the data folder and return where.

    Raises:
        DataError: it cannot be written.
    """
    folder = data_dir / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder, file.size)
    except OSError as error:
        raise DataError(
            f"cannot write to {folder}: {error.strerror or error}",
            hint="name a file with --save",
        ) from error
    return save_file(unused(folder, file, api_id), file.content, force=False)


def unused(folder: Path, file: Attachment, api_id: str) -> Path:
    """Return a path in a folder at which nothing is yet: by the file's name, else its API's."""
    first = folder / safe_name(file.name, file.media, safe_name(api_id, "").rpartition(".")[0])
    numbered = (_numbered(first, number) for number in range(2, 1_000))
    free = (path for path in chain((first,), numbered) if not os.path.lexists(path))
    return next(free, _numbered(first, secrets.randbelow(10**12)))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def _make_room(folder: Path, size: int) -> None:
    """Remove the oldest files, so that one more of ``size`` bytes stays within the limits."""
    with os.scandir(folder) as entries:
        known = [(one.stat(), Path(one.path)) for one in entries if one.is_file()]
    known.sort(key=lambda one: one[0].st_mtime)
    left = sum(stat.st_size for stat, _ in known) + size
    for at, (stat, path) in enumerate(known):
        if len(known) - at < MOST_FILES and left <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        left -= stat.st_size

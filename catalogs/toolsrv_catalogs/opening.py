"""What is at a path: a folder, an archive, or one file of JSON or YAML.

Decides by what the system and the first bytes say. Reading is in ``sources.py`` and ``archive.py``.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from toolsrv_catalogs.archive import reader_of
from toolsrv_catalogs.sources import (
    FILE_LIMIT,
    MIB,
    Source,
    SourceFile,
    Watch,
    content,
    ours,
    read_folder,
    unreadable,
)
from toolsrv_registry.errors import DataError, NotFoundError


def open_source(path: Path) -> Source:
    """Return the source at ``path``: a folder, an archive, or one JSON or YAML file.

    Raises:
        NotFoundError: there is nothing at ``path``.
        DataError: it can be none of these, or cannot be read.
    """
    try:
        kind = path.stat()
    except FileNotFoundError as error:
        raise NotFoundError(
            f"there is nothing at {str(path)!r}",
            hint="name a folder, an archive, or one JSON or YAML file",
        ) from error
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(kind.st_mode):
        return Source(path.resolve().name, lambda watch: read_folder(path, watch), lambda _: None)
    if not stat.S_ISREG(kind.st_mode):
        raise DataError(
            f"{str(path)!r} is neither a file nor a folder", hint="name a file or a folder"
        )
    if reader := reader_of(path):
        return Source(path.name, reader, lambda _: None)
    if kind.st_size > FILE_LIMIT:
        raise DataError(
            f"{str(path)!r} is too large: {kind.st_size // MIB} MiB, at most {FILE_LIMIT // MIB}",
            hint="split it into smaller files",
        )
    folder = path.resolve().parent
    return Source(
        path.name, lambda watch: _single(path, watch), lambda wanted: _sibling(folder, wanted)
    )


def _single(path: Path, watch: Watch) -> Iterator[SourceFile]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    watch.progress(len(data), len(data))
    yield SourceFile(PurePosixPath(path.name), data)


def _sibling(folder: Path, wanted: PurePosixPath) -> bytes | None:
    """Read a file below ``folder`` that another one refers to; None where that is not allowed."""
    path = folder.joinpath(*wanted.parts)
    try:
        if path.resolve(strict=True) != path or not path.is_relative_to(folder):
            return None
        return content(path) if ours(PurePosixPath(path.name)) else None
    except (OSError, ValueError):
        return None

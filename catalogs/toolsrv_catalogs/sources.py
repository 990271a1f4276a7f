"""Where catalog files lie: what a source is, and folders as sources.

The files come one by one, with their paths inside the source. Nothing is written, no link is
followed, and nothing outside of what was named is read. Knows sizes, paths and kinds of files;
does not know what is in them. ``archive`` opens a source and reads archives.
"""

from __future__ import annotations

import errno
import functools
import operator
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from toolsrv_registry.errors import DataError

SUFFIXES = frozenset({".json", ".yaml", ".yml"})
MIB = 1024 * 1024
FILE_LIMIT = 128 * MIB
"""Bytes of one file; a larger one is refused unread."""
TOTAL_LIMIT = 2048 * MIB
"""Bytes of all files of a source together, unpacked."""
COUNT_LIMIT = 500_000
"""Files of a source."""

Progress = Callable[[int, int], None]
"""Hears (bytes read, bytes in all) of the source as it lies on disk."""

_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # none of them is everywhere
_READ = functools.reduce(operator.or_, (getattr(os, one, 0) for one in _FLAGS), os.O_RDONLY)


@dataclass
class Watch:
    """What a walk through a source tells besides the files: refusals, and how far it is.

    ``within`` is the name of a folder outside of which nothing is read, ``""`` for all of them.
    ``passed`` counts files that are none of ours by name or place; ``complete`` is False when a
    source was not read to its end.
    """

    refuse: Callable[[str, str], None]
    progress: Progress = field(default=lambda _done, _total: None)
    within: str = ""
    passed: int = 0
    complete: bool = True

    def wanted(self, path: PurePosixPath) -> bool:
        """Return whether a file may be of the catalog: one of ours, in the folder that is read."""
        return ours(path) and (not self.within or self.within in path.parts[:-1])


@dataclass(frozen=True)
class SourceFile:
    """One file: ``path`` inside its source, and what is in it."""

    path: PurePosixPath
    content: bytes


Sibling = Callable[[PurePosixPath], bytes | None]
"""Reads another file of a source by its path, relative to the one that is there; None for none."""


@dataclass(frozen=True)
class Source:
    """A source: ``files`` walks it once; ``sibling`` reads one more file of it, or None."""

    name: str
    files: Callable[[Watch], Iterator[SourceFile]]
    sibling: Sibling


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error for a path that the system would not read."""
    why = error.strerror if isinstance(error, OSError) else error
    return DataError(f"cannot read {str(path)!r}: {why or error}", hint="check the path")


def placed(name: str) -> PurePosixPath | None:
    """Return a name in an archive as a path inside it; None when it climbs out."""
    parts = name.replace("\\", "/").split("/")
    if name[:1] in {"/", "\\"} or ".." in parts or parts[0].endswith(":"):
        return None
    return PurePosixPath(*(part for part in parts if part not in {"", "."}))


def ours(path: PurePosixPath) -> bool:
    """Return whether a file may be of a catalog: by its suffix, hidden ones not."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return path.suffix.lower() in SUFFIXES and not hidden


def too_large(size: int) -> str:
    """Return why a file of this size is refused."""
    return f"{size // MIB} MiB, at most {FILE_LIMIT // MIB} MiB are read"


def read_folder(root: Path, watch: Watch) -> Iterator[SourceFile]:
    """Yield the files of ours below ``root``, in path order."""
    paths = list(_walk(root, watch))
    total = sum(size for _, size in paths)
    done = taken = 0
    for path, size in paths:
        name = PurePosixPath(*path.relative_to(root).parts)
        done += size
        if size > FILE_LIMIT:
            watch.refuse(str(name), too_large(size))
            continue
        if taken + size > TOTAL_LIMIT:
            watch.refuse(
                str(name), f"more than {TOTAL_LIMIT // MIB} MiB in all; not read from here"
            )
            watch.complete = False
            return
        try:
            data = content(path)
        except OSError as error:
            watch.refuse(str(name), f"cannot be read: {error.strerror or error}")
            continue
        taken += size
        watch.progress(done, total)
        yield SourceFile(name, data)


def _walk(root: Path, watch: Watch) -> Iterator[tuple[Path, int]]:
    """Yield the regular files of ours below ``root`` with their sizes, in path order."""
    count = 0

    def failed(error: OSError) -> None:
        folder = os.path.relpath(error.filename, root)
        watch.refuse(folder, f"cannot be read: {error.strerror}")

    for folder, folders, files in os.walk(root, onerror=failed):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in [*folders]:
            if (here / name).is_symlink():
                watch.refuse(str((here / name).relative_to(root)), "is a link")
                folders.remove(name)
        for name in sorted(files):
            count += 1
            if count > COUNT_LIMIT:
                watch.refuse(name, f"more than {COUNT_LIMIT} files; not read from here")
                watch.complete = False
                return
            path = here / name
            inside = PurePosixPath(*path.relative_to(root).parts)
            if not watch.wanted(inside):
                watch.passed += 1
                continue
            kind = path.lstat()
            if stat.S_ISREG(kind.st_mode):
                yield path, kind.st_size
            else:
                what = "a link" if stat.S_ISLNK(kind.st_mode) else "no regular file"
                watch.refuse(str(inside), f"is {what}")


def content(path: Path) -> bytes:
    """Read a regular file without following a link at its place."""
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, "is a link")
    number = os.open(path, _READ)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(0, "no regular file")
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise OSError(0, "too large")
    return data

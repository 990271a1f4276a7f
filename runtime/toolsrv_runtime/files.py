"""Read regular files of bounded size, and write files atomically.

A pipe, socket or device is refused unopened, as is a file that is too large. A written file
replaces its target when it is complete: a reader sees the old content or the new.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from toolsrv_registry.errors import DataError, NotFoundError, UsageError


class UnfitFileError(OSError):
    """A file that is not read: a pipe, socket or device, or one that is too large."""


def open_file(path: Path) -> BinaryIO:
    """Open an ordinary file to read its bytes; a link to one is one.

    Raises:
        UnfitFileError: it is a pipe, socket or device.
        OSError: it is missing, a folder, or cannot be read.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a folder says what it is
        raise UnfitFileError(errno.EINVAL, "it is a pipe, socket or device, no file", str(path))
    return path.open("rb")


def read_file(path: Path, most: int) -> bytes:
    """Return the content of an ordinary file of at most ``most`` bytes.

    Raises:
        UnfitFileError: it is a pipe, socket or device, or larger.
        OSError: it is missing, a folder, or cannot be read.
    """
    with open_file(path) as file:
        content = file.read(most + 1)  # its size may change, and in /proc it is 0
    if len(content) > most:
        raise UnfitFileError(errno.EFBIG, f"it has more than {_read_error(most)}", str(path))
    return content


def is_zip_file(path: Path) -> bool:
    """Whether a file begins as a zip archive does; False where it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def describe_absence(path: Path) -> str:
    """Say of a path where nothing was found how that is: "does not exist", or a link to nothing."""
    try:
        return f"is a link to {path.readlink()}, which does not exist"
    except OSError:
        return "does not exist"


def _read_error(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size:,} bytes"


def read_text(path: Path, most: int, *, hint: str) -> str:
    """Return a file of UTF-8, with or without a byte order mark, as text.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, is larger than ``most`` bytes, or is not UTF-8.
    """
    try:
        return read_file(path, most).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist", hint=hint) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start})", hint=hint) from error


def check_target(path: Path) -> None:
    """Raise UsageError where no file can be made at ``path``: told before the work, not after."""
    try:
        there, ordinary = path.exists(), path.is_file()
    except OSError as error:  # a name that no file can have
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}", hint="name another file"
        ) from error
    if there and not ordinary:
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise UsageError(f"{path} is {kind}", hint="name a file to write")
    if not path.parent.is_dir():
        raise UsageError(
            f"the folder {path.parent} for {path.name!r} does not exist",
            hint=f"mkdir -p {path.parent}",
        )


def check_writable(path: Path) -> None:
    """Raise as ``open_atomic`` would, before the work: its new file is made, and removed again."""
    check_target(path)
    fresh = _temporary_path(path)
    try:
        fresh.touch(exist_ok=False)
        fresh.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}.new")


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"cannot write {path}: {error.strerror or error}",
        hint="free some space, or name another file",
    )


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of ``path`` when the block ends well.

    Where the block fails, nothing is left behind and the old file stays.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written (a full disk, no permission).
    """
    check_target(path)
    fresh = _temporary_path(path)
    try:
        with fresh.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


@contextlib.contextmanager
def open_atomic_text(path: Path) -> Iterator[TextIO]:
    """Open a text file as ``open_atomic`` does.

    UTF-8; a lone surrogate is written as the JSON escape of it.
    """
    with open_atomic(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield text
        text.flush()
        text.detach()

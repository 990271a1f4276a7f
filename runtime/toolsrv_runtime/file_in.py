"""An ordinary file opened or read: what waits for a writer or has no end is refused, unopened.

What is wrong is told as an ``OSError`` whose ``strerror`` says it, so that callers tell it as they
tell every file that cannot be read; ``read_text`` tells it itself.
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import BinaryIO

from toolsrv_registry.errors import DataError, NotFoundError


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
        raise UnfitFileError(errno.EFBIG, f"it has more than {_told(most)}", str(path))
    return content


def begins_as_zip(path: Path) -> bool:
    """Whether a file begins as a zip archive does; False where it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def absence(path: Path) -> str:
    """Say of a path where nothing was found how that is: "does not exist", or a link to nothing."""
    try:
        return f"is a link to {path.readlink()}, which does not exist"
    except OSError:
        return "does not exist"


def _told(size: int) -> str:
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

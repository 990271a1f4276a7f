"""A file that appears when it is complete: a reader sees the old content or the new."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from toolsrv_registry.errors import DataError, UsageError


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
    """Raise as ``fresh_bytes`` would, before the work: its new file is made, and removed again."""
    check_target(path)
    fresh = _beside(path)
    try:
        fresh.touch(exist_ok=False)
        fresh.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}.new")


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"cannot write {path}: {error.strerror or error}",
        hint="free some space, or name another file",
    )


@contextlib.contextmanager
def fresh_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of ``path`` when the block ends well.

    Where the block fails, nothing is left behind and the old file stays.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written (a full disk, no permission).
    """
    check_target(path)
    fresh = _beside(path)
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
def fresh_text(path: Path) -> Iterator[TextIO]:
    """Open a text file as ``fresh_bytes`` does.

    UTF-8; a lone surrogate is written as the JSON escape of it.
    """
    with fresh_bytes(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield text
        text.flush()
        text.detach()

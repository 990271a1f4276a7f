"""A large file that appears whole or not at all. Knows nothing about what is in it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from toolsrv_registry.errors import BusyError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.atomic import check_target
from toolsrv_runtime.convert.errors import WriteError


def check_free(target: Path) -> None:
    """Refuse a file that is there already, whatever is in it.

    Raises:
        UsageError: there is one.
    """
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"{str(target)!r} is there already",
            hint="name another place with --out, or replace it with --force",
        )


def check_room(fresh: Path, target: Path, size: int) -> None:
    """Raise WriteError where ``size`` bytes have no room on the disk of ``fresh``; names ``target``."""
    free = shutil.disk_usage(fresh.parent).free
    if size > free:
        raise WriteError(
            f"{str(target)!r} needs {size:,} bytes and the disk has {free:,} free",
            hint="free some space, or name another place with --out",
        )


@contextlib.contextmanager
def fresh_file(target: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside ``target``, and rename it to that at the end.

    It is flushed to the disk before; whatever goes wrong, it is removed and ``target`` is as it
    was. What a killed process left of it is written over the next time.

    Raises:
        UsageError: No file can be made there: the folder is missing, or it is one, or a device.
        WriteError: The folder is closed, or the disk is full.
        BusyError: Another process writes the same file.
    """
    check_target(target)
    fresh = target.with_name(f"{target.name}.partial")
    try:
        with _locked(target):
            try:
                fresh.touch()
                yield fresh
                with fresh.open("r+b") as written:
                    os.fsync(written.fileno())
                fresh.replace(target)
            finally:
                with contextlib.suppress(OSError):  # on Windows while llama.cpp still writes it
                    fresh.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot write {str(target)!r}: {error.strerror or error}",
            hint="free some space, or name another place with --out",
        ) from error


def _locked(target: Path) -> HeldLock:
    try:
        return lock_beside(target)
    except BlockingIOError:
        raise BusyError(
            f"another process is writing {str(target)!r}",
            hint="wait for it, or name another place with --out",
        ) from None

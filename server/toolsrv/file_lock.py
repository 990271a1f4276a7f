"""A file that one process, and one thread of it, holds at a time: for read, change and write."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from toolsrv_registry.errors import DataError


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock ``path`` in the block; wait for whoever holds it. The file stays, empty.

    Raises:
        DataError: Its folder cannot be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a")
    except OSError as error:
        raise DataError(
            f"cannot use the folder {path.parent}: {error.strerror}",
            hint="name another data folder with --data-dir",
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

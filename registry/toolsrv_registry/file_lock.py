"""Exclusive locks between processes and threads, on lock files of their own.

The operating system releases a lock when its holder ends, however that ends; a lock file that is
left behind is empty and blocks nobody. What a lock protects is never locked itself: on Windows
nobody else could read it, and an open file can neither be replaced nor removed.
"""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock


class HeldLock:
    """A lock that is held; a context manager that releases it."""

    def __init__(self, lock: BaseFileLock, remove: Path | None) -> None:
        self._lock = lock
        self._remove = remove

    def __enter__(self) -> None:
        """Do nothing: it is held already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._remove is not None and self._lock.is_locked:
            # While it is held: whoever waits for the removed file opens a new one (filelock looks
            # at the number of its links). Windows refuses; there filelock removes it afterwards.
            with contextlib.suppress(OSError):
                self._remove.unlink()
        self._lock.release()


def acquire_lock(path: Path, *, wait: bool = True, temporary: bool = False) -> HeldLock:
    """Acquire the lock file ``path``; with ``wait``, once its holder releases it.

    ``temporary``: the file is removed with the release.

    Raises:
        BlockingIOError: ``wait`` is False and another process or thread holds it.
        OSError: the file cannot be made or opened.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 20 ms of a start

    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        raise BlockingIOError(
            errno.EWOULDBLOCK, "another process holds the lock", str(path)
        ) from None
    return HeldLock(lock, path if temporary else None)


def lock_beside(path: Path) -> HeldLock:
    """Acquire, without waiting, the temporary lock ``.NAME.lock`` beside a file that is written.

    Raises as ``acquire_lock`` does.
    """
    return acquire_lock(path.with_name(f".{path.name}.lock"), wait=False, temporary=True)

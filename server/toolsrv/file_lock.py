"""A lock file in the data folder: for read, change and write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from toolsrv_registry.errors import DataError
from toolsrv_registry.file_lock import acquire_lock


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` in the block; wait for whoever holds it.

    Raises:
        DataError: Its folder cannot be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = acquire_lock(path)
    except OSError as error:
        raise DataError(
            f"cannot use the folder {path.parent}: {error.strerror}",
            hint="name another data folder with --data-dir",
        ) from None
    with held:
        yield

"""One training at a time in a folder. The lock goes with the process, however that ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from toolsrv_registry.errors import BusyError
from toolsrv_registry.file_lock import acquire_lock

LOCK = ".lock"


@contextlib.contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keep other trainings out of ``out``; raises BusyError where one is at work already."""
    try:
        held = acquire_lock(out / LOCK, wait=False)
    except BlockingIOError:
        raise BusyError(
            f"another training works in {str(out)!r}",
            hint="wait for it, or choose another --out",
        ) from None
    with held:
        yield

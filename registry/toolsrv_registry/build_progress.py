"""How far a build of the vector index is, in a small file that other processes read.

Written about once a second while a build goes on, and gone after it. One that a dead process left
behind counts for nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.encoder import Progress

_EVERY_S = 1.0


class Building(BaseModel):
    """A build under way: texts done and in all, texts a second, the process that builds."""

    model_config = ConfigDict(frozen=True)

    done: int
    total: int
    per_second: float
    pid: int


class BuildProgress:
    """The file of one data folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Building | None:
        """Return how far a build under way is, None where there is none."""
        try:
            found = Building.model_validate(json.loads(self._path.read_text("utf-8")))
        except (OSError, ValueError, ValidationError):
            return None
        return found if psutil.pid_exists(found.pid) else None

    @contextmanager
    def kept(self, progress: Progress | None) -> Iterator[Progress]:
        """Yield a progress that keeps the file up to date and passes everything on."""
        started = time.monotonic()
        known, written = -1, -_EVERY_S

        def show(done: int, total: int) -> None:
            nonlocal known, written
            known = done if known < 0 else known  # those were known before
            now = time.monotonic()
            if now - written >= _EVERY_S:
                written = now
                rate = (done - known) / max(now - started, 0.001)
                self._write(
                    Building(done=done, total=total, per_second=round(rate, 1), pid=os.getpid())
                )
            if progress is not None:
                progress(done, total)

        try:
            yield show
        finally:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _write(self, building: Building) -> None:
        fresh = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):  # a build goes on where only this cannot be written
            fresh.write_text(building.model_dump_json(), "utf-8")
            fresh.replace(self._path)

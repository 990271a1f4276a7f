"""The file in which the verdicts of an evaluation stand, so that a killed one goes on.

JSON lines: first the settings, then ``{"strategy", "verdict"}`` as they come; each line is on the
disk before the next task is begun. Solves nothing.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from toolsrv_lab.solving import Verdict
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.atomic import check_target

_ELSE = "name another --out, or delete this file to begin again"


class Book:
    """Verdicts by strategy and task; ``path`` None keeps them in memory alone. Close it."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        """Open or begin a book of an evaluation with ``settings`` (any JSON).

        Raises:
            UsageError: no file can be made there.
            BusyError: another evaluation writes it.
            DataError: it is no such file, or of an evaluation with other settings.
        """
        self.path = path
        self._found: dict[tuple[str, str], Verdict] = {}
        self._file: io.FileIO | None = None
        self._lock: HeldLock | None = None
        if path is None:
            return
        check_target(path)
        try:
            self._lock = _locked(path)
            self._file = path.open("a+b", buffering=0)  # what failed is not written again
        except OSError as error:
            self.close()
            raise UsageError(
                f"cannot write {path}: {error.strerror or error}", hint="name another file"
            ) from error
        try:
            self._resume(self._file, path, json.loads(json.dumps(settings)))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, strategy: str, task_id: str) -> Verdict | None:
        """Return the verdict, None where there is none yet."""
        return self._found.get((strategy, task_id))

    def of(self, strategy: str, task_ids: Iterable[str]) -> list[Verdict]:
        """Return the verdicts that there are, in the order of the tasks."""
        found = (self.get(strategy, task_id) for task_id in task_ids)
        return [one for one in found if one is not None]

    def add(self, strategy: str, verdict: Verdict) -> None:
        """Keep a verdict; it is on the disk when this returns.

        Raises:
            DataError: it cannot be written.
        """
        self._write({"strategy": strategy, "verdict": verdict.model_dump(mode="json")})
        self._found[strategy, verdict.id] = verdict

    def close(self) -> None:
        """Close the file and let others write it; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _resume(self, file: io.FileIO, path: Path, settings: dict[str, Any]) -> None:
        """Read what is there; what a kill cut off in the middle of a line is dropped."""
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            file.truncate(len(whole))
        lines = whole.decode("utf-8", "replace").splitlines()
        if not lines:
            self._write({"settings": settings})
            return
        self._check(path, _object(lines[0], path, 1).get("settings"), settings)
        for at, line in enumerate(lines[1:], start=2):
            entry = _object(line, path, at)
            try:
                verdict = Verdict.model_validate(entry.get("verdict"))
            except ValidationError as error:
                raise DataError(
                    f"{path}, line {at}: not a verdict: {error.errors()[0]['msg']}", hint=_ELSE
                ) from None
            self._found[str(entry.get("strategy")), verdict.id] = verdict

    def _check(self, path: Path, there: Any, settings: dict[str, Any]) -> None:
        if not isinstance(there, dict):
            raise DataError(f"{path} does not hold the verdicts of an evaluation", hint=_ELSE)
        keys = there.keys() | settings.keys()
        other = sorted(key for key in keys if there.get(key) != settings.get(key))
        if other:
            raise DataError(
                f"{path} is of an evaluation with other settings: {', '.join(other)}", hint=_ELSE
            )

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        line = f"{json.dumps(entry, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")
        try:
            _append(self._file, line)
        except OSError as error:
            raise DataError(
                f"cannot write {self.path}: {error.strerror or error}",
                hint="free some space; the same command goes on after the verdicts that stand there",
            ) from error


def _locked(path: Path) -> HeldLock:
    try:
        return lock_beside(path)
    except BlockingIOError as error:
        raise BusyError(
            f"another evaluation writes {path}", hint="wait for it, or name another --out"
        ) from error


def _append(file: io.FileIO, line: bytes) -> None:
    """Write a line onto the disk; an unbuffered write may end early without an error."""
    if file.write(line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file.fileno())


def _object(line: str, path: Path, at: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {at}: not JSON: {error}", hint=_ELSE) from None
    if not isinstance(value, dict):
        raise DataError(f"{path}, line {at}: not an object", hint=_ELSE)
    return value

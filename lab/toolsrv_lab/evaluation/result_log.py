"""Append-only JSON-lines log of an evaluation's results, so that a killed run goes on.

The first line holds the settings, each further one a result; a line is on the disk before its
task counts as done. A line that a kill cut off is dropped. One process writes a log at a time.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.files import check_target

ELSE = "name another --out, or delete this file to begin again"
"""Hint of an error about a file that cannot be gone on with."""


class ResultLog:
    """Results as JSON objects, in order; ``path`` None keeps them in memory alone. Close it."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        """Open or begin the log of an evaluation with ``settings`` (any JSON).

        Raises:
            UsageError: no file can be made there.
            BusyError: another evaluation writes it.
            DataError: it is no such file, or of an evaluation with other settings.
        """
        self.path = path
        self._entries: list[dict[str, Any]] = []
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
        return len(self._entries)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._entries)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append a result; it is on the disk when this returns.

        Raises:
            DataError: it cannot be written.
        """
        self._write(entry)
        self._entries.append(dict(entry))

    def close(self) -> None:
        """Close the file and let others write it; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def kept(self) -> str:
        """Return what to tell a person whose evaluation stops here."""
        if self.path is None:
            return "with --out an evaluation can go on where it stopped"
        return f"{len(self)} results are kept in {self.path}; the same command goes on after them"

    def _resume(self, file: io.FileIO, path: Path, settings: dict[str, Any]) -> None:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            file.truncate(len(whole))
        lines = whole.decode("utf-8", "replace").split("\n")[:-1]  # U+2028 in a text ends no line
        if not lines:
            self._write({"settings": settings})
            return
        _check(path, _object(lines[0], path, 1).get("settings"), settings)
        self._entries = [_object(line, path, at) for at, line in enumerate(lines[1:], start=2)]

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        line = f"{json.dumps(entry, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")
        try:
            _append(self._file, line)
        except OSError as error:
            raise DataError(
                f"cannot write {self.path}: {error.strerror or error}",
                hint="free some space; the same command goes on after the results that stand there",
            ) from error


def _check(path: Path, there: Any, settings: dict[str, Any]) -> None:
    if not isinstance(there, dict):
        raise DataError(f"{path} does not hold the results of an evaluation", hint=ELSE)
    keys = there.keys() | settings.keys()
    other = sorted(key for key in keys if there.get(key) != settings.get(key))
    if other:
        raise DataError(
            f"{path} is of an evaluation with other settings: {', '.join(other)}", hint=ELSE
        )


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
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {at}: not JSON: {error}", hint=ELSE) from None
    if not isinstance(value, dict):
        raise DataError(f"{path}, line {at}: not an object", hint=ELSE)
    return value

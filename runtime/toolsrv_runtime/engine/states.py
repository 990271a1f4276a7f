"""Evaluated beginnings of prompts, kept on disk: a system text and function list read once.

A file holds llama.cpp's state of one sequence, named by a hash of the tokens and of everything
that the state depends on: each of the model's files (size, time, first and last bytes), the
context's parameters, llama.cpp's version. So a changed model never meets an old state. Knows no
engine.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

_MAGIC = b"toolsrv-state-1\n"
_SAMPLE = 1 << 20

_BEGUN = ".state-"
"""How the name of a file begins that is being written."""

_LEFT_OVER_S = 600.0
"""A file still being written after so long belongs to a process that was killed over it."""


def identity(files: Sequence[Path], *about: object) -> str:
    """Return what names a model and the parameters it is run with; reads 2 MiB of each file.

    ``files`` are all that the model lies in: any part of a split one may be exchanged.
    """
    found = hashlib.sha256(repr(about).encode())
    for one in files:
        stat = one.stat()
        # The second time is when it was last changed in any way: nobody can set it back.
        found.update(repr((stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)).encode())
        with one.open("rb") as file:
            found.update(file.read(_SAMPLE))
            file.seek(max(0, stat.st_size - _SAMPLE))
            found.update(file.read(_SAMPLE))
    return found.hexdigest()


class StateStore:
    """States below ``folder``, the least recently used dropped beyond ``limit`` bytes in all.

    A store that cannot be read or written behaves like an empty one: it only ever saves time.
    """

    def __init__(self, folder: Path, *, limit: int) -> None:
        self._folder = folder
        self._limit = limit

    def get(self, owner: str, tokens: Sequence[int]) -> bytes | None:
        """Return the state behind ``tokens``; a damaged file is deleted and counts as none."""
        path = self._path(owner, tokens)
        try:
            data = path.read_bytes()
            head, payload = data[: len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
            if head == _MAGIC + hashlib.sha256(payload).digest():
                os.utime(path)
                return payload
            path.unlink()
        except OSError:
            pass
        return None

    def put(self, owner: str, tokens: Sequence[int], state: bytes) -> bool:
        """Keep a state; False when it is larger than the limit or cannot be written."""
        if len(state) > self._limit:
            return False
        path = self._path(owner, tokens)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, fresh = tempfile.mkstemp(prefix=_BEGUN, dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(state).digest())
                    file.write(state)
                    file.flush()
                    os.fsync(file.fileno())
                Path(fresh).replace(path)
            except OSError:
                Path(fresh).unlink(missing_ok=True)
                raise
            self._evict()
        except OSError:
            return False
        return True

    def _path(self, owner: str, tokens: Sequence[int]) -> Path:
        digest = hashlib.sha256(owner.encode() + array("q", tokens).tobytes()).hexdigest()
        return self._folder / f"{digest}.state"

    def _evict(self) -> None:
        """Drop what is beyond the limit; what others are writing counts, and is left alone."""
        found = [(one.stat().st_mtime_ns, one.stat().st_size, one) for one in self._files()]
        total = self._being_written() + sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _being_written(self) -> int:
        """Return the bytes of files that are not complete; those left over are deleted."""
        total, now = 0, time.time()
        for path in self._folder.glob(f"{_BEGUN}*"):
            try:
                stat = path.stat()
            except FileNotFoundError:  # complete by now
                continue
            if now - stat.st_mtime > _LEFT_OVER_S:
                path.unlink(missing_ok=True)
            else:
                total += stat.st_size
        return total

    def _files(self) -> list[Path]:
        return list(self._folder.glob("*.state"))

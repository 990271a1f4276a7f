"""A part that is built when it is first needed, once, whichever thread asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """A part that is built on the first ``get``; a failed build is tried again next time."""

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._part: T | None = None

    def get(self) -> T:
        """Return the part; concurrent callers wait for the one that builds it."""
        with self._lock:
            if self._part is None:
                self._part = self._build()
            return self._part

    def take(self) -> T | None:
        """Return the part if it is built, and forget it."""
        with self._lock:
            part, self._part = self._part, None
            return part

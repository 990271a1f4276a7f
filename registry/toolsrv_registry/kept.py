"""One thing read from a file and kept until the file changes. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from toolsrv_registry.database import Database, Stamp

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """What ``read`` gave last; O(1) while neither this process nor another wrote the file."""

    def __init__(self, database: Database, read: Callable[[], Value]) -> None:
        self._database = database
        self._read = read
        self._kept: tuple[Stamp, Value] | None = None

    def get(self) -> Value:
        """Return it as the file has it now, or had it when ``Database.steady`` began."""
        stamp = self._database.stamp()
        kept = self._kept
        if kept is None or kept[0] != stamp:
            # Read after the stamp: a change between the two is seen the next time. No lock is
            # held, as whoever writes may ask for this; two threads at worst read the same twice.
            self._kept = kept = (stamp, self._read())
        return kept[1]

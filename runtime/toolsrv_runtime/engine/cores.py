"""The processor's cores, shared by what decodes at the same time."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator


class Cores:
    """Lends ``count`` threads to decodes: all to who is alone, equal shares to several.

    ``users`` is how many they are shared among, whether each decodes just now or not; who owns the
    users keeps it right.
    """

    def __init__(self, count: int) -> None:
        self.users = 1
        self._count = count
        self._free = count
        self._turn = threading.Condition()
        self._line: deque[object] = deque()

    @contextlib.contextmanager
    def lend(self) -> Iterator[int]:
        """Lend some threads, at least one, to who asked first."""
        ticket = object()
        with self._turn:
            self._line.append(ticket)
            try:
                while self._line[0] is not ticket or not self._free:
                    self._turn.wait()
                lent = min(self._free, max(1, self._count // max(1, self.users)))
                self._free -= lent
            finally:
                self._line.remove(ticket)
                self._turn.notify_all()
        try:
            yield lent
        finally:
            with self._turn:
                self._free += lent
                self._turn.notify_all()

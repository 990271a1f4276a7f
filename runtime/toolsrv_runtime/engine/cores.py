"""The processor's cores, shared by what decodes at the same time."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from toolsrv_runtime.engine.crews import CREWS

_T = TypeVar("_T")

_WINDOW_S = 0.08
"""Decodes of so long together say whether the cores were ours; the clock of the processor is coarse."""

_MISSED, _MISSED_SHARE = 0.4, 0.1
"""Cores, and their share of all, that may be missing before somebody else is taken to need one."""

_IN_A_ROW = 2
"""Such findings that count: the first decodes of a model wait for its file instead."""

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 4.0


class Cores:
    """Lends ``count`` threads to decodes: ``most`` at once, all to who is alone, else equal shares.

    ``users`` is how many they are shared among, whether each decodes just now or not; who owns the
    users keeps it right.

    The threads of a decode wait for each other many times in it, so one that another process keeps
    from its core holds up all: on two cores beside a busy process a token takes ten times as long.
    Where the processor time (``cpu``) of decodes falls behind the ``clock``, fewer are lent for a
    while, longer each time that it is still so. Seen only while a call is ``alone``: others of this
    process wait for the interpreter, and what is decoded with them. Not ``watched`` where a GPU does
    the work.
    """

    def __init__(
        self,
        count: int,
        *,
        most: int | None = None,
        watched: bool = True,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.users = 1
        self.alone = True
        self._count = count
        self._most = self._able = min(most or count, count)
        self._watched = watched
        self._free = count
        self._turn = threading.Condition()
        self._line: deque[object] = deque()
        self._clock = clock
        self._cpu = cpu
        self._wall_s = self._cpu_s = 0.0
        self._in_a_row = 0
        self._pause_s = _FIRST_PAUSE_S
        self._until = -math.inf

    def run(self, work: Callable[[int], _T]) -> _T:
        """Do ``work``, given a number of threads, when they are free: several are a crew's."""
        with self.lend() as threads:
            if threads == 1:
                return work(1)
            return CREWS.run(lambda: work(threads), alone=threads == self._count)

    @contextlib.contextmanager
    def lend(self) -> Iterator[int]:
        """Lend some threads, at least one, to who asked first."""
        ticket = object()
        with self._turn:
            self._line.append(ticket)
            try:
                while self._line[0] is not ticket or not self._free:
                    self._turn.wait()
                most = self._able if self._clock() < self._until else self._most
                share = max(1, self._count // max(1, self.users))
                lent = min(self._free, most, share)
                self._free -= lent
            finally:
                self._line.remove(ticket)
                self._turn.notify_all()
        began, used = self._clock(), self._cpu()
        try:
            yield lent
        finally:
            wall, used = self._clock() - began, self._cpu() - used
            with self._turn:
                self._free += lent
                if self._watched and self.alone and lent == self._most > 1:
                    self._watch(wall, used)
                self._turn.notify_all()

    def _watch(self, wall: float, used: float) -> None:
        """See whether a decode on all threads had a core for each."""
        self._wall_s += wall
        self._cpu_s += used
        if self._wall_s < _WINDOW_S:
            return
        missed = self._most - self._cpu_s / self._wall_s
        self._wall_s = self._cpu_s = 0.0
        if missed < max(_MISSED, _MISSED_SHARE * self._most):
            self._in_a_row = 0
            self._pause_s = _FIRST_PAUSE_S
            return
        self._in_a_row += 1
        if self._in_a_row >= _IN_A_ROW:
            self._able = max(1, self._most - math.ceil(missed))
            self._until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

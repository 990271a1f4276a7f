"""Threads that start the threads of decodes, as few of them as can be.

llama.cpp computes with OpenMP, whose library (GCC's) keeps a team for every thread that ever decoded
with several. Where all teams of a process together have more threads than there are cores, they no
longer spin at a barrier but sleep, and a decode has some hundred barriers: a token of the model that
ships took 6 ms instead of 0.9 on two cores once calls had come from two threads. So whoever wants
several threads has its work done by a crew: a thread of its own, of which there are no more than work
at the same time, and one alone where somebody has all cores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

_T = TypeVar("_T")


class Crews:
    """Crews that wait for work; safe for threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._idle: list[ThreadPoolExecutor] = []

    def run(self, work: Callable[[], _T], *, alone: bool) -> _T:
        """Do ``work`` on a crew's thread and return what it returns, or raise what it raises.

        ``alone``: it uses all cores, so crews that wait are dismissed, and their teams with them.
        Returns after the work has ended, also where an interrupt comes meanwhile.
        """
        with self._turn:
            crew = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "toolsrv-decode")
            spare = self._idle if alone else []
            self._idle = self._idle if not alone else []
        for one in spare:
            one.shutdown(wait=True)  # its team is gone when its thread is
        try:
            done = crew.submit(work)
            try:
                return done.result()
            finally:
                wait([done])
        finally:
            with self._turn:
                self._idle.append(crew)


CREWS = Crews()
"""Those of this process: OpenMP counts all of its threads together."""

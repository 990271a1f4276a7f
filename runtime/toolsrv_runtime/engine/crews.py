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
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Crews:
    """Crews that wait for work; safe for threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._idle: list[_Crew] = []

    def run(self, work: Callable[[], _T], *, alone: bool) -> _T:
        """Do ``work`` on a crew's thread and return what it returns, or raise what it raises.

        ``alone``: it uses all cores, so crews that wait are dismissed, and their teams with them.
        Returns after the work has ended, also where an interrupt comes meanwhile.
        """
        with self._turn:
            crew = self._idle.pop() if self._idle else _Crew()
            spare = list(self._idle) if alone else []
            if alone:
                self._idle.clear()
        for one in spare:
            one.dismiss()
        job = _Job(work)
        try:
            crew.do(job)
        finally:
            if job.over:  # else an interrupt came where nothing in Python can keep it off
                with self._turn:
                    self._idle.append(crew)
        return job.result()


class _Job(Generic[_T]):
    """Work, and what came of it once it is ``over``."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.over = False
        self._work = work
        self._made: list[_T] = []
        self._error: BaseException | None = None
        # A bare lock: an executor's future takes 0.1 ms from one thread to the other and back where
        # the cores are busy, a tenth of what it is asked for.
        self._ended = threading.Lock()
        self._ended.acquire()

    def do(self) -> None:
        """Do the work, the first time that this is called."""
        if self.over:
            return
        try:
            self._made.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self._error = error
        self.over = True
        self._ended.release()

    def wait(self) -> None:
        """Return when it is over; once."""
        self._ended.acquire()

    def result(self) -> _T:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._made[0]


class _Crew:
    """A thread that does one job after the other."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._stand_by, name="toolsrv-crew", daemon=True)
        self._thread.start()

    def do(self, job: _Job[Any]) -> None:
        """Do a job and return when it is over, also where interrupts come meanwhile."""
        interrupt: BaseException | None = None
        while not job.over:
            try:
                # Again after an interrupt, which may have come before it: a job is done once.
                self._jobs.put(job)
                job.wait()
            except BaseException as error:  # noqa: BLE001 - raised when the job is over
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def dismiss(self) -> None:
        """End the thread; its OpenMP team goes with it."""
        self._jobs.put(None)
        self._thread.join()

    def _stand_by(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.do()


CREWS = Crews()
"""Those of this process: OpenMP counts all of its threads together."""

"""Several KV caches of one model, so that calls of a small one do not stand in each other's way.

Without flash attention a token looks at all cells of its cache, whoever filled them. Where these are
more to read than the weights, calls that share decodes lose by it: four trees at once on the model
that ships took 1.85 times as long as one after the other. So each call gets a lane, a cache that it
has for itself while there are enough, and the cores are shared. Lanes are made when they are first
needed. Safe for threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from toolsrv_runtime.engine.cores import Cores
from toolsrv_runtime.engine.heads import Heads
from toolsrv_runtime.engine.scheduler import Scheduler

LANES = 4
"""Lanes at most: each takes the memory of two paths."""

WORTH_MOVING = 1000
"""Tokens that a call rather evaluates again than share a lane with one more call."""


@dataclass(slots=True)
class Lane:
    """What decodes in a KV cache, what makes heads resident there, and its calls just now."""

    scheduler: Scheduler
    heads: Heads | None
    calls: int = 0


class Lanes:
    """Up to ``count`` lanes that share ``cores``; ``make`` makes one, given how many there are.

    ``made`` are those there are, at least one. MemoryError of the first ``make`` is the caller's;
    later ones make do with the lanes there are.
    """

    def __init__(self, make: Callable[[int], Lane], cores: Cores, *, count: int) -> None:
        self._make = make
        self._cores = cores
        self._count = count
        self._turn = threading.Condition()
        self._inside = 0
        self.made = [make(0)]

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Keep model and caches from being freed meanwhile."""
        with self._turn:
            self._inside += 1
        try:
            yield
        finally:
            with self._turn:
                self._inside -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def lend(self, tokens: Sequence[int]) -> Iterator[Lane]:
        """Lend a call the lane that suits its prompt."""
        with self._turn:
            lane = self._best(tokens)
            self._count_calls(lane, 1)
        try:
            with lane.scheduler.call():
                yield lane
        finally:
            with self._turn:
                self._count_calls(lane, -1)

    def close(self) -> None:
        """Free the caches when nobody is inside any more."""
        with self._turn:
            while self._inside:
                self._turn.wait()
        for lane in self.made:
            lane.scheduler.close()

    def _best(self, tokens: Sequence[int]) -> Lane:
        """Return the lane that knows most of the prompt; one of others' calls knows that much less."""
        if self._count == 1:
            return self.made[0]
        worth = [one.scheduler.known(tokens) - WORTH_MOVING * one.calls for one in self.made]
        if max(worth) < 0 and len(self.made) < self._count:
            try:
                self.made.append(self._make(len(self.made)))
                worth.append(0)
            except MemoryError:
                self._count = len(self.made)
        return self.made[worth.index(max(worth))]

    def _count_calls(self, lane: Lane, more: int) -> None:
        lane.calls += more
        self._cores.users = sum(one.calls > 0 for one in self.made)

"""Several KV caches of one model, so that calls of a small one do not stand in each other's way.

Without flash attention a token looks at all cells of its cache, whoever filled them. Where these are
more to read than the weights, calls that share decodes lose by it: four trees at once on the model
that ships took 1.85 times as long as one after the other. So there are lanes, each a cache of its own
and a share of the cores: as many as cores, so that no more decode at once. What prompts begin with
alike is evaluated in one lane and copied to the others. Lanes are made when they are first needed.
Safe for threads.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from toolsrv_runtime.engine.cache import common_prefix
from toolsrv_runtime.engine.cores import Cores
from toolsrv_runtime.engine.heads import Heads
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.stop import Stop

_LANES = 2, 4
"""Lanes at least and at most: each takes the memory of two paths."""

WORTH_MOVING = 1000
"""Tokens that a call rather evaluates again than share a lane with one more call."""

WORTH_COPYING = 64
"""Tokens that are copied from another lane rather than evaluated again."""


def lanes_for(threads: int) -> int:
    """Return how many lanes a small model gets.

    Two calls in a lane share decodes and look at each other's cells; where calls outnumber cores,
    that costs less than one more cache that waits for a core.
    """
    least, most = _LANES
    return max(least, min(threads, most))


_SHORTEST_WAIT_S = 0.5
_SLOW_TOKEN_S = 0.002
"""What reading a token takes in a slow model of those that have lanes."""


@dataclass(eq=False, slots=True)
class Lane:
    """What decodes in a KV cache, and what makes heads resident there."""

    scheduler: Scheduler
    heads: Heads | None


@dataclass(eq=False, slots=True)
class Visit:
    """A call in a lane; it ``waits`` for what another lane evaluates, and is ``over`` at its end."""

    lane: Lane
    tokens: Sequence[int]
    waits: bool = False
    over: bool = False


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
        self._visits: list[Visit] = []
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
    def lend(self, tokens: Sequence[int], stop: Stop | None = None) -> Iterator[Lane]:
        """Lend a call the lane that suits its prompt, with what other lanes know of it."""
        visit = Visit(self.made[0], tokens)
        try:
            with self._turn:
                earlier = tuple(self._visits)
                visit.lane = self._best(tokens)
                self._visits.append(visit)
                self._share()
            self._bring(visit, earlier, stop)
            with visit.lane.scheduler.call():
                yield visit.lane
        finally:
            with self._turn:
                visit.over = True
                if visit in self._visits:
                    self._visits.remove(visit)
                self._share()

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
        calls = [sum(visit.lane is one for visit in self._visits) for one in self.made]
        known = [one.scheduler.known(tokens) for one in self.made]
        worth = [most - WORTH_MOVING * some for most, some in zip(known, calls, strict=True)]
        if max(worth) < 0 and len(self.made) < self._count:
            try:
                self.made.append(self._make(len(self.made)))
                worth.append(0)
            except MemoryError:
                self._count = len(self.made)
        return self.made[worth.index(max(worth))]

    def _bring(self, visit: Visit, earlier: Sequence[Visit], stop: Stop | None) -> None:
        """Copy what another lane knows of a prompt, or will when an earlier call has read it.

        Nobody waits for a later call, so no two wait for each other.
        """
        mine, tokens = visit.lane.scheduler, visit.tokens
        others = [one for one in self.made if one is not visit.lane]
        sources: list[tuple[int, Scheduler, Visit | None]] = [
            *((one.scheduler.known(tokens), one.scheduler, None) for one in others),
            *(
                (common_prefix(one.tokens, tokens), one.lane.scheduler, one)
                for one in earlier
                if one.lane is not visit.lane
            ),
        ]
        length, source, reader = max(sources, key=lambda one: one[0], default=(0, mine, None))
        if length < mine.known(tokens) + WORTH_COPYING:
            return
        self._pause(visit, waits=True)
        try:
            if reader is not None:
                source.wait_known(tokens[:length], _given_up(reader, length, stop))
            if length < mine.known(tokens) + WORTH_COPYING:
                return  # another call has brought it
            known, state = source.known_state(tokens[:length])
        finally:
            self._pause(visit, waits=False)
        if known < mine.known(tokens) + WORTH_COPYING:
            return
        with mine.call(), mine.seat(tokens[:known], reserve=1, stop=stop) as seat:
            if seat is not None:
                mine.restore(seat, tokens[:known], state)

    def _pause(self, visit: Visit, *, waits: bool) -> None:
        with self._turn:
            visit.waits = waits
            self._share()

    def _share(self) -> None:
        self._cores.users = len({id(one.lane) for one in self._visits if not one.waits})
        self._cores.alone = len(self._visits) == 1


def _given_up(reader: Visit, length: int, stop: Stop | None) -> Callable[[], bool]:
    """Return what says that a call's reading of so many tokens is not to be waited for any more.

    It has ended, or it takes longer than reading them oneself would, or Stop is set.
    """
    until = time.monotonic() + _SHORTEST_WAIT_S + length * _SLOW_TOKEN_S

    def given_up() -> bool:
        stopped = stop is not None and stop.is_set()
        return reader.over or stopped or time.monotonic() >= until

    return given_up

"""Cache pools of a small model: several KV caches, with shared prompt prefixes copied between them.

Without flash attention a token reads all cells of its cache, so calls of a small model slow each
other down: four trees at once took 1.85 times as long as one after the other. Each pool has a cache
of its own and a share of the cores. A shared prefix is restored from disk or evaluated once in one
pool and copied to the others; only prefixes that took long to evaluate are stored. Pools are
created when they are first needed. Thread-safe.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from toolsrv_runtime.contract.models import Prompt
from toolsrv_runtime.engine.hardware import SharedCores
from toolsrv_runtime.engine.prefix_cache import StateStore, common_prefix
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.stop import Stop

MIN_STORED_SECONDS = 0.25
"""Evaluation time below which a prefix is not stored."""

_MIN_PREFIX_TOKENS = 32


def shared_prefix(prompt: Prompt) -> Prompt:
    """Return the pieces up to the last one that other prompts share; empty without one."""
    last = max((at for at, piece in enumerate(prompt, start=1) if piece.shared), default=0)
    return prompt[:last]


class PrefixCache:
    """Makes prompt prefixes resident, for one engine; ``owner`` names model and parameters."""

    def __init__(
        self,
        scheduler: Scheduler,
        store: StateStore,
        owner: str,
        *,
        worth_s: float = MIN_STORED_SECONDS,
    ) -> None:
        self._scheduler = scheduler
        self._store = store
        self._owner = owner
        self._worth_s = worth_s

    def ready(self, tokens: Sequence[int], stop: Stop | None) -> int:
        """Make ``tokens`` resident unless they are; return how many were evaluated."""
        if len(tokens) < _MIN_PREFIX_TOKENS or self._scheduler.known(tokens) >= len(tokens):
            return 0
        state = self._store.get(self._owner, tokens)
        with self._scheduler.seat(tokens, reserve=1, stop=stop) as seat:
            if seat is None:
                return 0
            if state is not None and self._scheduler.restore(seat, tokens, state):
                return 0
            cold, began = seat.keep, time.monotonic()
            work = self._scheduler.evaluate(seat, tokens[cold:], stop)
            slow = time.monotonic() - began >= self._worth_s
            if work.row is not None and slow:
                self._store.put(self._owner, tokens, self._scheduler.save(seat, len(tokens)))
            return work.evaluated


_POOLS = 2, 4
"""Minimum and maximum number of cache pools: each takes the memory of two paths."""

REEVALUATION_COST = 1000
"""Re-evaluation cost accepted to avoid sharing a cache pool with one more call (tokens)."""

MIN_COPIED_TOKENS = 64
"""Minimum number of tokens to copy from another pool instead of evaluating them again."""


def pool_count(threads: int) -> int:
    """Return the number of cache pools of a small model.

    Two calls in a pool share decodes and look at each other's cells; where calls outnumber cores,
    that costs less than one more cache that waits for a core.
    """
    least, most = _POOLS
    return max(least, min(threads, most))


_SHORTEST_WAIT_S = 0.5
_SLOW_TOKEN_S = 0.002
"""Time to evaluate one prompt token in a slow model among those with pools."""


@dataclass(eq=False, slots=True)
class CachePool:
    """A KV cache with its scheduler, and its prefix cache."""

    scheduler: Scheduler
    prefixes: PrefixCache | None


@dataclass(eq=False, slots=True)
class PoolVisit:
    """A call in a pool; it ``waits`` for what another pool evaluates, and is ``over`` at its end."""

    lane: CachePool
    tokens: Sequence[int]
    waits: bool = False
    over: bool = False


class CachePools:
    """Up to ``count`` cache pools that share ``cores``; ``make`` makes one, given how many there are.

    ``made`` are those there are, at least one. MemoryError of the first ``make`` is the caller's;
    later calls use the pools there are.
    """

    def __init__(self, make: Callable[[int], CachePool], cores: SharedCores, *, count: int) -> None:
        self._make = make
        self._cores = cores
        self._count = count
        self._turn = threading.Condition()
        self._inside = 0
        self._visits: list[PoolVisit] = []
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
    def lend(self, tokens: Sequence[int], stop: Stop | None = None) -> Iterator[CachePool]:
        """Lend a call the best pool for its prompt, with prefixes copied from other pools."""
        visit = PoolVisit(self.made[0], tokens)
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

    def _best(self, tokens: Sequence[int]) -> CachePool:
        """Return the pool with the longest prefix of the prompt; each call in it costs tokens."""
        if self._count == 1:
            return self.made[0]
        calls = [sum(visit.lane is one for visit in self._visits) for one in self.made]
        known = [one.scheduler.known(tokens) for one in self.made]
        worth = [most - REEVALUATION_COST * some for most, some in zip(known, calls, strict=True)]
        if max(worth) < 0 and len(self.made) < self._count:
            try:
                self.made.append(self._make(len(self.made)))
                worth.append(0)
            except MemoryError:
                self._count = len(self.made)
        return self.made[worth.index(max(worth))]

    def _bring(self, visit: PoolVisit, earlier: Sequence[PoolVisit], stop: Stop | None) -> None:
        """Copy the prefix that another pool holds, or will hold once an earlier call evaluated it.

        Nobody waits for a later call, so no two wait for each other.
        """
        mine, tokens = visit.lane.scheduler, visit.tokens
        others = [one for one in self.made if one is not visit.lane]
        sources: list[tuple[int, Scheduler, PoolVisit | None]] = [
            *((one.scheduler.known(tokens), one.scheduler, None) for one in others),
            *(
                (common_prefix(one.tokens, tokens), one.lane.scheduler, one)
                for one in earlier
                if one.lane is not visit.lane
            ),
        ]
        length, source, reader = max(sources, key=lambda one: one[0], default=(0, mine, None))
        if length < mine.known(tokens) + MIN_COPIED_TOKENS:
            return
        self._pause(visit, waits=True)
        try:
            if reader is not None:
                source.wait_known(tokens[:length], _given_up(reader, length, stop))
            if length < mine.known(tokens) + MIN_COPIED_TOKENS:
                return  # another call has brought it
            known, state = source.known_state(tokens[:length])
        finally:
            self._pause(visit, waits=False)
        if known < mine.known(tokens) + MIN_COPIED_TOKENS:
            return
        with mine.call(), mine.seat(tokens[:known], reserve=1, stop=stop) as seat:
            if seat is not None:
                mine.restore(seat, tokens[:known], state)

    def _pause(self, visit: PoolVisit, *, waits: bool) -> None:
        with self._turn:
            visit.waits = waits
            self._share()

    def _share(self) -> None:
        self._cores.users = len({id(one.lane) for one in self._visits if not one.waits})
        self._cores.alone = len(self._visits) == 1


def _given_up(reader: PoolVisit, length: int, stop: Stop | None) -> Callable[[], bool]:
    """Return what says that a call's reading of so many tokens is not to be waited for any more.

    It has ended, or it takes longer than reading them oneself would, or Stop is set.
    """
    until = time.monotonic() + _SHORTEST_WAIT_S + length * _SLOW_TOKEN_S

    def given_up() -> bool:
        stopped = stop is not None and stop.is_set()
        return reader.over or stopped or time.monotonic() >= until

    return given_up

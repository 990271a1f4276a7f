"""One KV cache for all calls: who has which sequence, and one decode for everyone who waits.

Calls come from several threads. Each says which tokens it wants evaluated and sleeps; whichever
of them finds the context idle decodes for all (leader and followers), so a call that is alone
never changes threads. A leader waits for calls that are still choosing their next token, but no
longer than a decode takes: more could not be won by sharing it. Knows no grammars and no text.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolsrv_runtime.engine.cache import Plan, SequenceCache, common_prefix
from toolsrv_runtime.engine.context import ABORTED, DECODED, NO_ROOM, Context, Part
from toolsrv_runtime.engine.drawing import Logits
from toolsrv_runtime.engine.shares import shares
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.stop import Stop

_WORTH_WAITING = 32
"""A prompt waits for another one that is evaluating at least so many of the same tokens."""

_LEAST_PATIENCE_S = 0.001
"""Choosing a token takes about as long; how long a decode took is waited where that is more."""

_POLL_S = 0.02
"""How often a call that waits for cells looks at its Stop."""


@dataclass(slots=True)
class Work:
    """Tokens that a call wants behind its sequence; ``row`` after the last one is the result.

    ``evaluated`` counts those that are done; ``over`` also when Stop ended it or it ``failed``.
    """

    sequence: int
    tokens: Sequence[int]
    position: int
    stop: Stop | None
    evaluated: int = 0
    row: Logits | None = None
    over: bool = False
    failed: str = ""


@dataclass(slots=True)
class Counts:
    """What was done so far.

    ``steps`` are calls of ``llama_decode``, ``shared_steps`` those for several calls at once,
    ``tokens`` were evaluated, ``seconds`` were spent inside llama.cpp.
    """

    steps: int = 0
    shared_steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Seat:
    """A sequence that a call works on; the first ``keep`` of its tokens were there already."""

    sequence: int
    keep: int
    tokens: list[int] = field(default_factory=list)


class Scheduler:
    """Gives calls sequences of a context, and decodes for them together."""

    def __init__(
        self, context: Context, *, cells: int, sequences: int, interruptible: bool
    ) -> None:
        """``interruptible``: a decode takes long enough to be broken off by Stop."""
        self._context = context
        self._cache = SequenceCache(slots=sequences, cells=cells)
        self._spare = sequences
        self._interruptible = interruptible
        self._turn = threading.Condition()
        self._decoding = False
        self._calls = 0
        self._waiting: list[Work] = []
        self._seats: list[Seat] = []
        self._line: list[object] = []
        self._patience = _LEAST_PATIENCE_S
        self.counts = Counts()
        self.on_step: Callable[[Sequence[int]], None] | None = None

    def idle(self) -> None:
        """Wait until no call works."""
        with self._turn:
            while self._calls:
                self._turn.wait()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Be one of the calls that others wait for to share a decode."""
        with self._turn:
            self._calls += 1
        try:
            yield
        finally:
            with self._turn:
                self._calls -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def seat(
        self, tokens: Sequence[int], *, reserve: int, stop: Stop | None
    ) -> Iterator[Seat | None]:
        """Lend a sequence that holds as much of ``tokens`` as is known; None when Stop is set.

        Waits while the calls that are working leave no room for ``reserve`` more tokens, and
        while one of them is evaluating what both begin with.
        """
        seat = self._sit(list(tokens), reserve, stop)
        try:
            yield seat
        finally:
            if seat is not None:
                with self._turn:
                    self._seats.remove(seat)
                    self._cache.release(seat.sequence)
                    self._turn.notify_all()

    def known(self, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` are resident."""
        with self._turn:
            return self._cache.longest(tokens)

    def restore(self, seat: Seat, tokens: Sequence[int], state: bytes) -> bool:
        """Let a seat begin with ``tokens``, from the state that ``save`` gave of them."""
        with self._turn:
            while self._decoding:
                self._turn.wait()
            self._context.cut(seat.sequence, -1)
            loaded = self._context.load(seat.sequence, state)
            seat.keep = len(tokens) if loaded else 0
            self._cache.replace(seat.sequence, tokens if loaded else ())
            return loaded

    def save(self, seat: Seat, length: int) -> bytes:
        """Return the state of a seat's first ``length`` tokens."""
        with self._turn:
            while self._decoding:
                self._turn.wait()
            return self._context.save(seat.sequence, length, self._spare)

    def evaluate(self, seat: Seat, tokens: Sequence[int], stop: Stop | None) -> Work:
        """Evaluate ``tokens`` behind the seat's; returns when all are done or Stop is set.

        Raises:
            ModelError: llama.cpp failed.
        """
        with self._turn:
            work = Work(seat.sequence, tokens, seat.keep, stop)
            self._waiting.append(work)
            self._turn.notify_all()
            try:
                self._see_to(work)
            finally:
                while self._decoding and not work.over:  # an interrupt must not leave a batch
                    self._turn.wait()
                if work in self._waiting:
                    self._waiting.remove(work)
        seat.keep += work.evaluated
        if work.failed:
            raise ModelError(work.failed, hint="the model may need more memory than there is")
        return work

    @property
    def _choosing(self) -> int:
        """How many calls neither wait for a decode nor for a seat: they choose their next token."""
        return self._calls - len(self._waiting) - len(self._line)

    def _see_to(self, work: Work) -> None:
        """Lead or follow until ``work`` is over. Holds the lock."""
        until = time.monotonic() + self._patience
        while not work.over:
            left = until - time.monotonic()
            if self._decoding:
                self._turn.wait()
                until = time.monotonic() + self._patience
            elif self._choosing > 0 and left > 0:
                self._turn.wait(left)
            else:
                self._step()

    def _step(self) -> None:
        """Decode once for everyone who waits. Holds the lock, but not while decoding."""
        for work in self._waiting:
            work.over = work.evaluated > 0 and work.stop is not None and work.stop.is_set()
        works = [work for work in self._waiting if not work.over]
        counts = shares(
            [len(work.tokens) - work.evaluated for work in works],
            self._context.batch_size,
            others=self._choosing > 0,
        )
        served = [(work, count) for work, count in zip(works, counts, strict=True) if count]
        if served:
            parts = [_part(work, count) for work, count in served]
            code, rows = self._decode(parts, [work for work, _ in served])
            for index, (work, count) in enumerate(served):
                self._book(work, count, code, rows[index] if rows else None)
        self._waiting = [work for work in self._waiting if not work.over]
        self._turn.notify_all()

    def _decode(
        self, parts: Sequence[Part], works: Sequence[Work]
    ) -> tuple[int, list[Logits | None]]:
        """Decode with the lock let go, twice if the cache has to make room first."""
        self._decoding = True
        self._turn.release()
        try:
            began = time.monotonic()
            abort = works[0].stop.is_set if self._breaks_off(works) and works[0].stop else None
            code, rows = self._context.decode(parts, abort=abort)
            took = time.monotonic() - began
        finally:
            self._turn.acquire()
            self._decoding = False
            self._turn.notify_all()
        self.counts.seconds += took
        self._patience = max(_LEAST_PATIENCE_S, took)
        if code == NO_ROOM and self._make_room():  # cells in pieces, or not shared
            return self._decode(parts, works)
        self.counts.steps += 1
        self.counts.shared_steps += len(parts) > 1
        if self.on_step is not None:
            self.on_step([len(part.tokens) for part in parts])
        return code, rows

    def _breaks_off(self, works: Sequence[Work]) -> bool:
        """Whether Stop may break off this decode: nobody else's work would be lost."""
        return self._interruptible and len(works) == 1

    def _book(self, work: Work, count: int, code: int, row: Logits | None) -> None:
        if code == DECODED:
            self._cache.extend(work.sequence, work.tokens[work.evaluated : work.evaluated + count])
            work.evaluated += count
            self.counts.tokens += count
            work.row = row
            work.over = work.evaluated == len(work.tokens)
        else:
            work.over = True
            if code != ABORTED:
                work.failed = f"llama.cpp could not evaluate {count} tokens (code {code})"

    def _make_room(self) -> bool:
        """Drop every sequence that no call works on; False when there is none."""
        idle = self._cache.idle()
        for sequence in idle:
            self._context.cut(sequence, -1)
            self._cache.forget(sequence)
        return bool(idle)

    def _sit(self, tokens: list[int], reserve: int, stop: Stop | None) -> Seat | None:
        ticket = object()
        with self._turn:
            self._line.append(ticket)
            try:
                while True:
                    if stop is not None and stop.is_set():
                        return None
                    if plan := self._possible(tokens, reserve, ticket):
                        return self._carry_out(plan, tokens, reserve)
                    self._turn.wait(_POLL_S)
            finally:
                self._line.remove(ticket)
                self._turn.notify_all()

    def _possible(self, tokens: list[int], reserve: int, ticket: object) -> Plan | None:
        """Return a plan when it is this call's turn and there is room. Holds the lock."""
        if self._decoding or self._line[0] is not ticket:
            return None
        known = self._cache.longest(tokens)
        for seat in self._seats:
            if common_prefix(seat.tokens, tokens) >= known + _WORTH_WAITING:
                return None
        return self._cache.plan(tokens, reserve=reserve)

    def _carry_out(self, plan: Plan, tokens: list[int], reserve: int) -> Seat:
        for dropped in plan.drop:
            self._context.cut(dropped, -1)
        if plan.source == plan.target:
            self._context.cut(plan.target, plan.keep)
        elif plan.source >= 0:
            self._context.copy(plan.source, plan.target, plan.keep)
        self._cache.commit(plan, tokens[: plan.keep])
        self._cache.pin(plan.target, room=len(tokens) - plan.keep + reserve)
        seat = Seat(plan.target, plan.keep, tokens)
        self._seats.append(seat)
        return seat


def _part(work: Work, count: int) -> Part:
    begin, end = work.evaluated, work.evaluated + count
    return Part(
        work.sequence,
        work.tokens[begin:end],
        work.position + begin,
        logits=end == len(work.tokens),
    )

"""Schedule calls on one KV cache: a slot for each call, and one shared decode for all that wait.

Calls come from several threads. Each states the tokens that it wants evaluated and sleeps; the
first that finds the context idle decodes for all (leader and followers). A leader waits for calls
that still sample their next token, no longer than a decode takes. Slots allocate llama.cpp
sequences to active requests, with spare sequences for branches and for saving. Batches are divided
as in vLLM's chunked prefill: single tokens are served whole in every step, prompts share the rest
of a chunk. Knows no grammars and no text.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolsrv_runtime.engine.context import (
    ABORTED,
    DECODED,
    NO_ROOM,
    BatchPart,
    Context,
    DecodeCounts,
    DecodeWork,
)
from toolsrv_runtime.engine.prefix_cache import PrefixPlan, SequenceCache, common_prefix
from toolsrv_runtime.engine.sampling import Logits
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.stop import Stop

BRANCH_SEQUENCES = 32
"""Sequences for branches, of all calls together."""

SPARE_SEQUENCES = 1
"""Sequences for saving."""

_MIN_AWAITED_TOKENS = 32
"""A prompt waits for another one that is evaluating at least so many of the same tokens."""


@dataclass(slots=True)
class Slot:
    """A sequence allocated to a call; the first ``keep`` of its tokens were resident already.

    ``rollback``: rejected draft tokens to remove from the end. ``missed`` counts draft tokens that
    were evaluated and rejected.
    """

    sequence: int
    keep: int
    tokens: list[int] = field(default_factory=list)
    rollback: int = 0
    missed: int = 0

    def work(self, tokens: Sequence[int], ahead: Sequence[int], stop: Stop | None) -> DecodeWork:
        """Return the work on ``tokens`` and, with logits for each, on ``ahead`` behind them."""
        back, self.rollback = self.rollback, 0
        self.keep -= back
        parts = [BatchPart((self.sequence,), tokens, self.keep, logits=True)]
        parts += [
            BatchPart((self.sequence,), (token,), position, logits=True)
            for position, token in enumerate(ahead, self.keep + len(tokens))
        ]
        return DecodeWork(parts, stop, self.sequence, back)


class Slots:
    """The sequences of a context with ``cells`` cells: ``resident`` ones, a spare one, branches."""

    def __init__(self, context: Context, *, cells: int, resident: int) -> None:
        self._context = context
        self._cache = SequenceCache(
            slots=resident, cells=cells, carried=context.carried, whole=context.whole
        )
        self._spare = resident
        self._branches = list(range(resident + SPARE_SEQUENCES, context.sequences))
        self._seats: list[Slot] = []

    def take(self, tokens: list[int], reserve: int, head: int = 0) -> Slot | None:
        """Return a slot with the longest resident prefix of ``tokens``; None when it has to wait.

        It has to while there is no room for ``reserve`` more tokens, and while another slot is
        about to hold what both begin with.
        """
        known = self._cache.longest(tokens)
        for seat in () if self._context.whole else self._seats:
            if common_prefix(seat.tokens, tokens) >= known + _MIN_AWAITED_TOKENS:
                return None
        plan = self._cache.plan(tokens, reserve=reserve, head=head)
        return self._carry_out(plan, tokens, reserve) if plan is not None else None

    def leave(self, seat: Slot) -> None:
        """Release a slot; its tokens stay resident while there is room."""
        self._seats.remove(seat)
        self._cache.release(seat.sequence)

    def known(self, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` are resident."""
        return self._cache.longest(tokens)

    def known_state(self, tokens: Sequence[int]) -> tuple[int, bytes]:
        """Return how many leading ``tokens`` are resident, and the state of these."""
        sequence, length = self._cache.holder(tokens)
        return length, self._context.save(sequence, length, self._spare) if length else b""

    def extend(self, sequence: int, tokens: Sequence[int]) -> None:
        """Record tokens that were evaluated behind a resident sequence."""
        self._cache.extend(sequence, tokens)

    def forget(self, sequence: int) -> None:
        """Forget a resident sequence whose state is not what its tokens say."""
        self._context.cut(sequence, -1)
        self._cache.replace(sequence, ())

    def roll_back(self, works: Sequence[DecodeWork]) -> None:
        """Forget the tokens that works want forgotten before their first decode."""
        for work in works:
            if work.sequence is not None and work.rollback:
                self._context.cut(work.sequence, self._cache.shorten(work.sequence, work.rollback))
                work.rollback = 0

    def restore(self, seat: Slot, tokens: Sequence[int], state: bytes) -> bool:
        """Start a slot with ``tokens``, from the state that ``save`` returned."""
        self._context.cut(seat.sequence, -1)
        loaded = self._context.load(seat.sequence, state)
        seat.keep = len(tokens) if loaded else 0
        self._cache.replace(seat.sequence, tokens if loaded else ())
        return loaded

    def save(self, seat: Slot, length: int) -> bytes:
        """Return the state of a slot's first ``length`` tokens."""
        return self._context.save(seat.sequence, length, self._spare)

    def make_room(self) -> bool:
        """Drop every sequence that no call works on; False when there is none."""
        idle = self._cache.idle()
        for sequence in idle:
            self._context.cut(sequence, -1)
            self._cache.forget(sequence)
        return bool(idle)

    def fork(self, seat: Slot, count: int) -> list[int]:
        """Return up to ``count`` sequences that begin like the slot's; none when all are lent."""
        lent, self._branches = self._branches[:count], self._branches[count:]
        for sequence in lent:
            self._context.copy(seat.sequence, sequence, seat.keep)
        return lent

    def return_branches(self, lent: Sequence[int]) -> None:
        """Take back what ``fork`` lent, and forget its tokens."""
        for sequence in lent:
            self._context.cut(sequence, -1)
        self._branches += lent

    def _carry_out(self, plan: PrefixPlan, tokens: list[int], reserve: int) -> Slot:
        for dropped in plan.drop:
            self._context.cut(dropped, -1)
        if plan.source == plan.target:
            self._context.cut(plan.target, plan.keep)
        elif plan.source >= 0:
            self._context.copy(plan.source, plan.target, plan.keep)
        self._cache.commit(plan, tokens[: plan.keep])
        self._cache.pin(plan.target, room=len(tokens) - plan.keep + reserve)
        seat = Slot(plan.target, plan.keep, tokens)
        self._seats.append(seat)
        return seat


SHORT_REQUEST = 16
"""Up to so many tokens count as the next step of a reply (one sampled, the others forced)."""

PREFILL_CHUNK = 64
"""Prompt tokens per step while somebody waits for the next token."""


def divide_batch(wanted: Sequence[int], capacity: int, *, others: bool) -> list[int]:
    """Return how many tokens each call decodes now; ``wanted`` in the order they came, each > 0.

    ``others``: calls that are choosing a token meanwhile and will soon wait too. A call that is
    alone gets whole batches, so its arithmetic is always the same.
    """
    given = [count if count <= SHORT_REQUEST else 0 for count in wanted]
    for index in range(len(given)):
        given[index] = min(given[index], capacity - sum(given[:index]))
    long = [index for index, count in enumerate(wanted) if count > SHORT_REQUEST]
    left = capacity - sum(given)
    if others or len(long) < len(wanted):
        left = min(left, PREFILL_CHUNK)
    for place, index in enumerate(long):
        given[index] = min(wanted[index], left // (len(long) - place))
        left -= given[index]
    return given


_LEAST_PATIENCE_S = 0.001
"""Choosing a token takes about as long; how long a decode took is waited where that is more."""

_POLL_S = 0.02
"""How often a call that waits for cells looks at its Stop."""


class Scheduler:
    """Gives calls sequences of a context, and decodes for them together."""

    def __init__(
        self, context: Context, *, cells: int, sequences: int, interruptible: bool
    ) -> None:
        """``interruptible``: a decode takes long enough to be broken off by Stop."""
        self.context = context
        self._seats = Slots(context, cells=cells, resident=sequences)
        self._interruptible = interruptible
        self._turn = threading.Condition()
        self._decoding = False
        self._calls = 0
        self._waiting: list[DecodeWork] = []
        self._line: list[object] = []
        self._guests = 0
        self._patience = _LEAST_PATIENCE_S
        self.counts = DecodeCounts()
        self.on_step: Callable[[Sequence[int]], None] | None = None

    def close(self) -> None:
        """Free the context, once, when no call works any more."""
        self.context.close()

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
        self, tokens: Sequence[int], *, reserve: int, stop: Stop | None, head: int = 0
    ) -> Iterator[Slot | None]:
        """Lend a sequence that holds as much of ``tokens`` as is known; None when Stop is set.

        Waits while the calls that are working leave no room for ``reserve`` more tokens, and
        while one of them is evaluating what both begin with. The first ``head`` tokens begin
        other prompts too (0: not known).
        """
        seat = self._sit(list(tokens), reserve, stop, head)
        try:
            yield seat
        finally:
            if seat is not None:
                with self._turn:
                    self._seats.leave(seat)
                    self.counts.missed += seat.missed
                    self._turn.notify_all()

    def known(self, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` are resident."""
        with self._turn:
            return self._seats.known(tokens)

    def wait_known(self, tokens: Sequence[int], given_up: Callable[[], bool]) -> None:
        """Wait until all ``tokens`` are resident, or ``given_up`` says so; asked now and then.

        That must not take a lock of a scheduler.
        """
        with self._turn:
            while self._seats.known(tokens) < len(tokens) and not given_up():
                self._turn.wait(_POLL_S)

    def known_state(self, tokens: Sequence[int]) -> tuple[int, bytes]:
        """Return how many leading ``tokens`` are resident, and the state of these."""
        with self._still():
            return self._seats.known_state(tokens)

    def restore(self, seat: Slot, tokens: Sequence[int], state: bytes) -> bool:
        """Start a slot with ``tokens``, from the state that ``save`` returned."""
        with self._still():
            return self._seats.restore(seat, tokens, state)

    def save(self, seat: Slot, length: int) -> bytes:
        """Return the state of a slot's first ``length`` tokens."""
        with self._still():
            return self._seats.save(seat, length)

    @contextlib.contextmanager
    def fork(self, seat: Slot, count: int) -> Iterator[list[int]]:
        """Lend up to ``count`` sequences, at least one, that begin like the slot's."""
        with self._turn:
            while self._decoding or not (lent := self._seats.fork(seat, count)):
                self._turn.wait()
        try:
            yield lent
        finally:
            with self._still():
                self._seats.return_branches(lent)
                self._turn.notify_all()

    def evaluate(
        self, seat: Slot, tokens: Sequence[int], stop: Stop | None, ahead: Sequence[int] = ()
    ) -> DecodeWork:
        """Evaluate ``tokens`` after the slot's; returns when all are done or Stop is set.

        ``ahead`` comes behind them, with logits for each.

        Raises:
            ModelError: llama.cpp failed.
        """
        work = self._do(seat.work(tokens, ahead, stop))
        seat.keep += work.evaluated
        return work

    def evaluate_branches(self, parts: Sequence[BatchPart]) -> DecodeWork:
        """Evaluate parts of sequences that ``fork`` lent, as ``evaluate`` does."""
        return self._do(DecodeWork(parts, None, None))

    @contextlib.contextmanager
    def _still(self) -> Iterator[None]:
        """Hold the lock while nobody decodes."""
        with self._turn:
            while self._decoding:
                self._wait_as_guest()
            yield

    def _wait_as_guest(self, timeout: float | None = None) -> None:
        """Wait for the end of a decode; who leads the next one lets go of the lock before it."""
        self._guests += 1
        try:
            self._turn.wait(timeout)
        finally:
            self._guests -= 1

    def _do(self, work: DecodeWork) -> DecodeWork:
        with self._turn:
            self._waiting.append(work)
            self._turn.notify_all()
            try:
                self._see_to(work)
            finally:
                while self._decoding and not work.over:  # an interrupt must not leave a batch
                    self._turn.wait()
                if work in self._waiting:
                    self._waiting.remove(work)
        if work.failed:
            raise ModelError(work.failed, hint="the model may need more memory than there is")
        return work

    @property
    def _choosing(self) -> int:
        """Number of calls that wait neither for a decode nor for a slot: they sample a token."""
        return self._calls - len(self._waiting) - len(self._line)

    def _see_to(self, work: DecodeWork) -> None:
        """Lead or follow until ``work`` is over. Holds the lock."""
        until = time.monotonic() + self._patience
        while not work.over:
            left = until - time.monotonic()
            if self._decoding:
                self._turn.wait()
                until = time.monotonic() + self._patience
            elif self._guests:
                self._turn.wait(_LEAST_PATIENCE_S)
            elif self._choosing > 0 and left > 0:
                self._turn.wait(left)
            else:
                self._step()

    def _step(self) -> None:
        """Decode once for everyone who waits. Holds the lock, but not while decoding."""
        for work in self._waiting:
            work.over = work.evaluated > 0 and work.stop is not None and work.stop.is_set()
        works = [work for work in self._waiting if not work.over]
        wanted, others = [work.left for work in works], self._choosing > 0
        counts = divide_batch(wanted, self.context.batch_size, others=others)
        batch = [(one, one.next(count)) for one, count in zip(works, counts, strict=True) if count]
        if batch:
            self._seats.roll_back([work for work, _ in batch])
            code, rows = self._decode(batch)
            for work, parts in batch:
                self._book(work, parts, code, rows[: len(parts)])
                rows = rows[len(parts) :]
        self._waiting = [work for work in self._waiting if not work.over]
        self._turn.notify_all()

    def _decode(
        self, batch: Sequence[tuple[DecodeWork, Sequence[BatchPart]]]
    ) -> tuple[int, list[Logits | None]]:
        """Decode with the lock let go, twice if the cache has to make room first."""
        parts = [part for _, mine in batch for part in mine]
        # Where several share a decode, it is not broken off: work of the others would be lost.
        stop = batch[0][0].stop if self._interruptible and len(batch) == 1 else None
        self._decoding = True
        self._turn.release()
        try:
            began = time.monotonic()
            code, rows = self.context.decode(parts, abort=stop.is_set if stop else None)
            took = time.monotonic() - began
        finally:
            self._turn.acquire()
            self._decoding = False
            self._turn.notify_all()
        self.counts.seconds += took
        self._patience = max(_LEAST_PATIENCE_S, took)
        if code == NO_ROOM and self._seats.make_room():  # cells in pieces, or not shared
            return self._decode(batch)
        self.counts.steps += 1
        self.counts.shared_steps += len(batch) > 1
        if self.on_step is not None:
            self.on_step([sum(len(one.tokens) for one in parts) for _, parts in batch])
        return code, rows

    def _book(
        self, work: DecodeWork, parts: Sequence[BatchPart], code: int, rows: Sequence[Logits | None]
    ) -> None:
        count = sum(len(part.tokens) for part in parts)
        if code == DECODED:
            if work.sequence is not None:
                for part in parts:
                    self._seats.extend(work.sequence, part.tokens)
            work.evaluated += count
            self.counts.tokens += count
            work.rows += [row for row in rows if row is not None]
            work.over = work.left == 0
        else:
            work.over = True
            if self.context.whole and work.sequence is not None:
                self._seats.forget(work.sequence)
            if code != ABORTED:
                work.failed = f"llama.cpp could not evaluate {count} tokens (code {code})"

    def _sit(self, tokens: list[int], reserve: int, stop: Stop | None, head: int) -> Slot | None:
        ticket = object()
        with self._turn:
            self._line.append(ticket)
            try:
                while stop is None or not stop.is_set():
                    if not self._decoding and self._line[0] is ticket:
                        seat = self._seats.take(tokens, reserve, head)
                        if seat is not None:
                            return seat
                        self._turn.wait(_POLL_S)
                    elif self._line[0] is ticket:
                        self._wait_as_guest(_POLL_S)
                    else:
                        self._turn.wait(_POLL_S)
                return None
            finally:
                self._line.remove(ticket)
                self._turn.notify_all()

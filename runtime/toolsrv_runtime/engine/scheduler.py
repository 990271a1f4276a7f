"""One KV cache for all calls: a seat for each, and one decode for everyone who waits.

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

from toolsrv_runtime.engine.context import ABORTED, DECODED, NO_ROOM, Context, Part
from toolsrv_runtime.engine.drawing import Logits
from toolsrv_runtime.engine.seats import Seat, Seats
from toolsrv_runtime.engine.shares import shares
from toolsrv_runtime.engine.work import Counts, Work
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.stop import Stop

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
        self._seats = Seats(context, cells=cells, resident=sequences)
        self._interruptible = interruptible
        self._turn = threading.Condition()
        self._decoding = False
        self._calls = 0
        self._waiting: list[Work] = []
        self._line: list[object] = []
        self._guests = 0
        self._patience = _LEAST_PATIENCE_S
        self.counts = Counts()
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
    ) -> Iterator[Seat | None]:
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

    def restore(self, seat: Seat, tokens: Sequence[int], state: bytes) -> bool:
        """Let a seat begin with ``tokens``, from the state that ``save`` gave of them."""
        with self._still():
            return self._seats.restore(seat, tokens, state)

    def save(self, seat: Seat, length: int) -> bytes:
        """Return the state of a seat's first ``length`` tokens."""
        with self._still():
            return self._seats.save(seat, length)

    @contextlib.contextmanager
    def fork(self, seat: Seat, count: int) -> Iterator[list[int]]:
        """Lend up to ``count`` sequences, at least one, that begin as the seat does."""
        with self._turn:
            while self._decoding or not (lent := self._seats.fork(seat, count)):
                self._turn.wait()
        try:
            yield lent
        finally:
            with self._still():
                self._seats.join(lent)
                self._turn.notify_all()

    def evaluate(
        self, seat: Seat, tokens: Sequence[int], stop: Stop | None, ahead: Sequence[int] = ()
    ) -> Work:
        """Evaluate ``tokens`` behind the seat's; returns when all are done or Stop is set.

        ``ahead`` comes behind them, with logits for each.

        Raises:
            ModelError: llama.cpp failed.
        """
        work = self._do(seat.work(tokens, ahead, stop))
        seat.keep += work.evaluated
        return work

    def evaluate_branches(self, parts: Sequence[Part]) -> Work:
        """Evaluate parts of sequences that ``fork`` lent, as ``evaluate`` does."""
        return self._do(Work(parts, None, None))

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

    def _do(self, work: Work) -> Work:
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
        counts = shares(wanted, self.context.batch_size, others=others)
        batch = [(one, one.next(count)) for one, count in zip(works, counts, strict=True) if count]
        if batch:
            self._seats.step_back([work for work, _ in batch])
            code, rows = self._decode(batch)
            for work, parts in batch:
                self._book(work, parts, code, rows[: len(parts)])
                rows = rows[len(parts) :]
        self._waiting = [work for work in self._waiting if not work.over]
        self._turn.notify_all()

    def _decode(
        self, batch: Sequence[tuple[Work, Sequence[Part]]]
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
        self, work: Work, parts: Sequence[Part], code: int, rows: Sequence[Logits | None]
    ) -> None:
        count = sum(len(part.tokens) for part in parts)
        if code == DECODED:
            if work.sequence is not None:
                for part in parts:
                    self._seats.grown(work.sequence, part.tokens)
            work.evaluated += count
            self.counts.tokens += count
            work.rows += [row for row in rows if row is not None]
            work.over = work.left == 0
        else:
            work.over = True
            if self.context.whole and work.sequence is not None:
                self._seats.lost(work.sequence)
            if code != ABORTED:
                work.failed = f"llama.cpp could not evaluate {count} tokens (code {code})"

    def _sit(self, tokens: list[int], reserve: int, stop: Stop | None, head: int) -> Seat | None:
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

"""Who works on which sequence of the context. Knows no threads: the scheduler holds a lock.

Beside the sequences that stay resident there are a few for branches that are looked at once, and
one for saving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolsrv_runtime.engine.cache import Plan, SequenceCache, common_prefix
from toolsrv_runtime.engine.context import Context, Part
from toolsrv_runtime.engine.work import Work
from toolsrv_runtime.stop import Stop

BRANCHES = 32
"""Sequences for branches, of all calls together."""

SPARE = 1
"""Sequences for saving."""

_WORTH_WAITING = 32
"""A prompt waits for another one that is evaluating at least so many of the same tokens."""


@dataclass(slots=True)
class Seat:
    """A sequence that a call works on; the first ``keep`` of its tokens were there already.

    ``back`` tokens at its end turned out to be wrong. ``missed`` counts the tokens that were
    evaluated on a guess and not written.
    """

    sequence: int
    keep: int
    tokens: list[int] = field(default_factory=list)
    back: int = 0
    missed: int = 0

    def work(self, tokens: Sequence[int], ahead: Sequence[int], stop: Stop | None) -> Work:
        """Return the work on ``tokens`` and, with logits for each, on ``ahead`` behind them."""
        back, self.back = self.back, 0
        self.keep -= back
        parts = [Part((self.sequence,), tokens, self.keep, logits=True)]
        parts += [
            Part((self.sequence,), (token,), position, logits=True)
            for position, token in enumerate(ahead, self.keep + len(tokens))
        ]
        return Work(parts, stop, self.sequence, back)


class Seats:
    """The sequences of a context with ``cells`` cells: ``resident`` ones, a spare one, branches."""

    def __init__(self, context: Context, *, cells: int, resident: int) -> None:
        self._context = context
        self._cache = SequenceCache(
            slots=resident, cells=cells, carried=context.carried, whole=context.whole
        )
        self._spare = resident
        self._branches = list(range(resident + SPARE, context.sequences))
        self._seats: list[Seat] = []

    def take(self, tokens: list[int], reserve: int, head: int = 0) -> Seat | None:
        """Return a seat that holds as much of ``tokens`` as is known; None when it has to wait.

        It has to while there is no room for ``reserve`` more tokens, and while another seat is
        about to hold what both begin with.
        """
        known = self._cache.longest(tokens)
        for seat in () if self._context.whole else self._seats:
            if common_prefix(seat.tokens, tokens) >= known + _WORTH_WAITING:
                return None
        plan = self._cache.plan(tokens, reserve=reserve, head=head)
        return self._carry_out(plan, tokens, reserve) if plan is not None else None

    def leave(self, seat: Seat) -> None:
        """End the work on a seat; its tokens stay resident while there is room."""
        self._seats.remove(seat)
        self._cache.release(seat.sequence)

    def known(self, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` are resident."""
        return self._cache.longest(tokens)

    def known_state(self, tokens: Sequence[int]) -> tuple[int, bytes]:
        """Return how many leading ``tokens`` are resident, and the state of these."""
        sequence, length = self._cache.holder(tokens)
        return length, self._context.save(sequence, length, self._spare) if length else b""

    def grown(self, sequence: int, tokens: Sequence[int]) -> None:
        """Record tokens that were evaluated behind a resident sequence."""
        self._cache.extend(sequence, tokens)

    def lost(self, sequence: int) -> None:
        """Forget a resident sequence whose state is not what its tokens say."""
        self._context.cut(sequence, -1)
        self._cache.replace(sequence, ())

    def step_back(self, works: Sequence[Work]) -> None:
        """Forget the tokens that works want forgotten before their first decode."""
        for work in works:
            if work.sequence is not None and work.back:
                self._context.cut(work.sequence, self._cache.shorten(work.sequence, work.back))
                work.back = 0

    def restore(self, seat: Seat, tokens: Sequence[int], state: bytes) -> bool:
        """Let a seat begin with ``tokens``, from the state that ``save`` gave of them."""
        self._context.cut(seat.sequence, -1)
        loaded = self._context.load(seat.sequence, state)
        seat.keep = len(tokens) if loaded else 0
        self._cache.replace(seat.sequence, tokens if loaded else ())
        return loaded

    def save(self, seat: Seat, length: int) -> bytes:
        """Return the state of a seat's first ``length`` tokens."""
        return self._context.save(seat.sequence, length, self._spare)

    def make_room(self) -> bool:
        """Drop every sequence that no call works on; False when there is none."""
        idle = self._cache.idle()
        for sequence in idle:
            self._context.cut(sequence, -1)
            self._cache.forget(sequence)
        return bool(idle)

    def fork(self, seat: Seat, count: int) -> list[int]:
        """Return up to ``count`` sequences that begin as the seat does; none when all are lent."""
        lent, self._branches = self._branches[:count], self._branches[count:]
        for sequence in lent:
            self._context.copy(seat.sequence, sequence, seat.keep)
        return lent

    def join(self, lent: Sequence[int]) -> None:
        """Take back what ``fork`` lent, and forget its tokens."""
        for sequence in lent:
            self._context.cut(sequence, -1)
        self._branches += lent

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

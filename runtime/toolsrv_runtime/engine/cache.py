"""Which token sequences the KV cache holds: the bookkeeping behind prefix reuse.

Pure data: it decides what to keep, copy and drop; the engine carries it out. Knows no threads:
whoever uses it from several holds a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_BLOCK = 1 << 40
"""More numbers than one sequence will ever have cells."""


@dataclass(slots=True)
class Resident:
    """One sequence in the KV cache: its id, its tokens, when it was last used.

    ``spans`` number its cells as half-open ranges; sequences that share cells have the same
    numbers. ``pinned`` while a call works on it, with ``room`` cells still promised to that call.
    ``age`` is how many tokens had been evaluated when it was last used.
    """

    id: int
    tokens: list[int] = field(default_factory=list)
    used: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    pinned: bool = False
    room: int = 0
    age: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How to make a prompt resident: drop, then copy ``keep`` tokens of ``source``, then evaluate.

    ``source`` -1 means an empty start. ``source == target`` means: cut the target back to
    ``keep`` tokens and go on there.
    """

    drop: tuple[int, ...]
    source: int
    target: int
    keep: int


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many leading tokens two sequences of the same type share.

    Compares slices and halves the part that differs, so that the work is done by C.
    """
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


class SequenceCache:
    """Resident sequences under a limit of ``slots`` sequences and ``cells`` KV cells.

    Sequences that were copied from each other share the cells of their common prefix (unified
    KV); the number of cells in use is exact.
    """

    def __init__(
        self, *, slots: int, cells: int, carried: int | None = None, whole: bool = False
    ) -> None:
        """``carried``: how many evaluated tokens a sequence that nobody uses is carried along for.

        None where its cells make no decode slower. ``whole``: a sequence is gone on with only
        where it ends, because its state cannot be cut back.
        """
        self._whole = whole
        self._slots = slots
        self._cells = cells
        self._carried = carried
        self._evaluated = 0
        self._clock = 0
        self._next_cell = 0
        self._residents: dict[int, Resident] = {}

    def __len__(self) -> int:
        return len(self._residents)

    @property
    def used(self) -> int:
        """Cells that hold a token or are promised to a call."""
        return self._used(())

    def longest(self, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` some sequence holds."""
        return self.holder(tokens)[1]

    def holder(self, tokens: Sequence[int]) -> tuple[int, int]:
        """Return the sequence that holds most leading ``tokens``, and how many; (-1, 0): none."""
        held = [(self._held(one, tokens), one.id) for one in self._residents.values()]
        length, holder = max(held, default=(0, -1))
        return holder, length

    def plan(self, tokens: Sequence[int], *, reserve: int, head: int = 0) -> Plan | None:
        """Choose source and target for ``tokens``, leaving room for ``reserve`` more.

        The last prompt token is always evaluated again, because its logits are needed. Pinned
        sequences are read, never dropped or cut; None when they leave no room. The first ``head``
        tokens repeat from task to task (0: not known): what shares more is of the same tree, whose
        search has left that path. Before as many new tokens as idle sequences are carried for they
        go, and the source is cut back.
        """
        best, keep = self._best(tokens)
        need = len(tokens) - keep + reserve
        long = self._carried is not None and len(tokens) - keep >= self._carried
        left = self._carried is not None and 0 < head < keep
        cut_back = long or left or (best is not None and keep >= len(best.tokens) - 1)
        cut_back = cut_back and not self._whole  # it stays, where it ends a branch may begin
        extend = best is not None and not best.pinned and cut_back
        protected = {best.id} if best is not None else set()
        drop = self._evict(need, slot=not extend, protected=protected, long=long)
        free = self._free(drop)
        fits = self._used(drop) + need <= self._cells
        if best is not None and extend and fits:
            return Plan(drop, best.id, best.id, keep)
        if not extend and free >= 0 and fits:
            return Plan(drop, best.id if best is not None else -1, free, keep)
        if best is not None and not best.pinned:
            cut = len(best.tokens) - keep  # no room for a branch of its own
            if self._used(drop) - cut + need <= self._cells or not self._pinned():
                return Plan(drop, best.id, best.id, keep)
        if self._pinned():
            return None
        return Plan(drop, -1, max(free, 0), 0)

    def commit(self, plan: Plan, tokens: Sequence[int]) -> None:
        """Record that ``plan`` was carried out and ``tokens`` are resident in its target."""
        source = self._residents.get(plan.source)
        spans = list(_head(source.spans, len(tokens))) if source is not None else []
        for dropped in plan.drop:
            self._residents.pop(dropped, None)
        self._clock += 1
        self._next_cell += _BLOCK
        spans.append((self._next_cell, self._next_cell))
        self._residents[plan.target] = Resident(
            plan.target, list(tokens), self._clock, spans, age=self._evaluated
        )

    def extend(self, target: int, tokens: Sequence[int]) -> None:
        """Record tokens that were evaluated behind a resident sequence."""
        resident = self._residents[target]
        resident.tokens.extend(tokens)
        self._evaluated += len(tokens)
        start, end = resident.spans[-1]
        resident.spans[-1] = (start, end + len(tokens))
        resident.room = max(0, resident.room - len(tokens))

    def shorten(self, target: int, count: int) -> int:
        """Record that the last ``count`` tokens of ``extend`` were forgotten; return what is left."""
        resident = self._residents[target]
        del resident.tokens[-count:]
        start, end = resident.spans[-1]
        resident.spans[-1] = (start, end - count)
        resident.room += count
        return len(resident.tokens)

    def replace(self, target: int, tokens: Sequence[int]) -> None:
        """Record that a pinned sequence now holds ``tokens`` in cells of its own."""
        resident = self._residents[target]
        self._next_cell += _BLOCK
        resident.spans = [(self._next_cell, self._next_cell + len(tokens))]
        resident.room = max(0, resident.room - (len(tokens) - len(resident.tokens)))
        resident.tokens = list(tokens)

    def pin(self, target: int, *, room: int) -> None:
        """Keep a sequence until ``release``, and ``room`` cells free for it."""
        resident = self._residents[target]
        resident.pinned, resident.room = True, room

    def release(self, target: int) -> None:
        """Allow a sequence to be dropped again; it may be gone already."""
        if resident := self._residents.get(target):
            resident.pinned, resident.room, resident.age = False, 0, self._evaluated

    def idle(self) -> tuple[int, ...]:
        """Return the ids of the sequences that no call works on."""
        return tuple(one.id for one in self._residents.values() if not one.pinned)

    def forget(self, target: int) -> None:
        """Record that a sequence was removed."""
        self._residents.pop(target, None)

    def _best(self, tokens: Sequence[int]) -> tuple[Resident | None, int]:
        best, keep = None, 0
        for resident in self._residents.values():
            shared = min(self._held(resident, tokens), len(tokens) - 1)
            if self._whole and shared < len(resident.tokens):
                continue
            if shared > keep or (shared == keep and best is not None and best.pinned):
                best, keep = resident, shared
        return best, keep

    def _held(self, resident: Resident, tokens: Sequence[int]) -> int:
        """Return how many leading ``tokens`` can be gone on with from a sequence."""
        shared = common_prefix(resident.tokens, tokens)
        return 0 if self._whole and shared < len(resident.tokens) else shared

    def _pinned(self) -> bool:
        return any(resident.pinned for resident in self._residents.values())

    def _used(self, without: Sequence[int]) -> int:
        kept = [one for one in self._residents.values() if one.id not in without]
        total, reached = sum(one.room for one in kept), -1
        for start, end in sorted(span for one in kept for span in one.spans):
            if end > reached:
                total += end - max(start, reached)
                reached = end
        return total

    def _evict(self, need: int, *, slot: bool, protected: set[int], long: bool) -> tuple[int, ...]:
        drop = [
            one.id for one in self._residents.values() if self._stale(one, protected, long=long)
        ]
        oldest = sorted(
            (
                one
                for one in self._residents.values()
                if one.id not in protected and one.id not in drop and not one.pinned
            ),
            key=lambda r: r.used,
        )
        for resident in oldest:
            full = slot and len(self._residents) - len(drop) >= self._slots
            if not full and self._used(drop) + need <= self._cells:
                break
            drop.append(resident.id)
        return tuple(drop)

    def _stale(self, one: Resident, protected: set[int], *, long: bool) -> bool:
        """Whether carrying a sequence has cost more, or will, than evaluating it again would.

        It will where a ``long`` text is to be read.
        """
        if self._carried is None or one.pinned or one.id in protected:
            return False
        return long or self._evaluated - one.age > self._carried

    def _free(self, drop: Sequence[int]) -> int:
        taken = self._residents.keys() - set(drop)
        return next((index for index in range(self._slots) if index not in taken), -1)


def _head(spans: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the first ``length`` cells."""
    for start, end in spans:
        if length <= 0:
            return
        yield start, min(end, start + length)
        length -= end - start

"""Which token sequences the KV cache holds: the bookkeeping behind prefix reuse.

Pure data: it decides what to keep, copy and drop; the engine carries it out. A prompt is matched
against every resident sequence, O(sequences x common prefix).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Resident:
    """One sequence in the KV cache: its id, its tokens, when it was last used."""

    id: int
    tokens: list[int] = field(default_factory=list)
    used: int = 0


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
    """Return how many leading tokens two sequences share."""
    limit = min(len(left), len(right))
    for index in range(limit):
        if left[index] != right[index]:
            return index
    return limit


class SequenceCache:
    """Resident sequences under a limit of ``slots`` sequences and ``cells`` KV cells.

    Sequences that share a prefix share its cells (unified KV), so the sum of distinct tokens is
    what counts; it is bounded from above by the sum of the parts that no sequence shares.
    """

    def __init__(self, *, slots: int, cells: int) -> None:
        self._slots = slots
        self._cells = cells
        self._clock = 0
        self._residents: dict[int, Resident] = {}

    def __len__(self) -> int:
        return len(self._residents)

    def plan(self, tokens: Sequence[int], *, reserve: int) -> Plan:
        """Choose source and target for ``tokens``, leaving room for ``reserve`` more.

        The last prompt token is always evaluated again, because its logits are needed.
        """
        best, keep = None, 0
        for resident in self._residents.values():
            shared = min(common_prefix(resident.tokens, tokens), len(tokens) - 1)
            if shared > keep:
                best, keep = resident, shared
        need = len(tokens) - keep + reserve
        extend = best is not None and keep >= len(best.tokens) - 1
        protected = {best.id} if best is not None else set()
        drop = self._evict(need, slot=not extend, protected=protected)
        if best is None:
            return Plan(drop, -1, self._free(drop), 0)
        if extend:
            return Plan(drop, best.id, best.id, keep)
        free = self._free(drop)
        if free < 0 or self._used(drop) + need > self._cells:
            return Plan(drop, best.id, best.id, keep)  # no room for a branch of its own
        return Plan(drop, best.id, free, keep)

    def commit(self, plan: Plan, tokens: Sequence[int]) -> None:
        """Record that ``plan`` was carried out and ``tokens`` are resident in its target."""
        for dropped in plan.drop:
            self._residents.pop(dropped, None)
        self._clock += 1
        self._residents[plan.target] = Resident(plan.target, list(tokens), self._clock)

    def extend(self, target: int, tokens: Sequence[int]) -> None:
        """Record tokens that were evaluated behind a resident sequence."""
        self._residents[target].tokens.extend(tokens)

    def others(self, target: int) -> tuple[int, ...]:
        """Return the ids of all resident sequences but ``target``."""
        return tuple(id_ for id_ in self._residents if id_ != target)

    def forget(self, target: int) -> None:
        """Record that a sequence was removed."""
        self._residents.pop(target, None)

    def _used(self, without: Sequence[int]) -> int:
        kept = [r.tokens for r in self._residents.values() if r.id not in without]
        total, seen = 0, list[list[int]]()
        for tokens in kept:
            shared = max((common_prefix(tokens, other) for other in seen), default=0)
            total += len(tokens) - shared
            seen.append(tokens)
        return total

    def _evict(self, need: int, *, slot: bool, protected: set[int]) -> tuple[int, ...]:
        drop: list[int] = []
        oldest = sorted(
            (r for r in self._residents.values() if r.id not in protected), key=lambda r: r.used
        )
        for resident in oldest:
            full = slot and len(self._residents) - len(drop) >= self._slots
            if not full and self._used(drop) + need <= self._cells:
                break
            drop.append(resident.id)
        return tuple(drop)

    def _free(self, drop: Sequence[int]) -> int:
        taken = self._residents.keys() - set(drop)
        return next((index for index in range(self._slots) if index not in taken), -1)

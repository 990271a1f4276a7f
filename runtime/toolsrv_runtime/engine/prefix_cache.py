"""Prefix cache: token sequences resident in the KV cache, and evaluated prefixes on disk.

``SequenceCache`` is pure bookkeeping: it decides what to keep, copy and drop, and the engine
carries it out. ``StateStore`` keeps llama.cpp's state of one sequence per file, named by a hash of
the tokens and of everything that the state depends on: the model's files, the context's parameters,
llama.cpp's version. Not thread-safe. Knows no engine.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
class PrefixPlan:
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

    def plan(self, tokens: Sequence[int], *, reserve: int, head: int = 0) -> PrefixPlan | None:
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
            return PrefixPlan(drop, best.id, best.id, keep)
        if not extend and free >= 0 and fits:
            return PrefixPlan(drop, best.id if best is not None else -1, free, keep)
        if best is not None and not best.pinned:
            cut = len(best.tokens) - keep  # no room for a branch of its own
            if self._used(drop) - cut + need <= self._cells or not self._pinned():
                return PrefixPlan(drop, best.id, best.id, keep)
        if self._pinned():
            return None
        return PrefixPlan(drop, -1, max(free, 0), 0)

    def commit(self, plan: PrefixPlan, tokens: Sequence[int]) -> None:
        """Record that ``plan`` was carried out and ``tokens`` are resident in its target."""
        source = self._residents.get(plan.source)
        spans = list(_leading_ranges(source.spans, len(tokens))) if source is not None else []
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
        """Record that the last ``count`` tokens of ``extend`` were removed; return what is left."""
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


def _leading_ranges(spans: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the first ``length`` cells."""
    for start, end in spans:
        if length <= 0:
            return
        yield start, min(end, start + length)
        length -= end - start


_MAGIC = b"toolsrv-state-1\n"
_SAMPLE = 1 << 20

_BEGUN = ".state-"
"""How the name of a file begins that is being written."""

_LEFT_OVER_S = 600.0
"""A file still being written after so long belongs to a process that was killed over it."""


def model_fingerprint(files: Sequence[Path], *about: object) -> str:
    """Return what names a model and the parameters it is run with; reads 2 MiB of each file.

    ``files`` are all that the model lies in: any part of a split one may be exchanged.
    """
    found = hashlib.sha256(repr(about).encode())
    for one in files:
        stat = one.stat()
        # The second time is when it was last changed in any way: nobody can set it back.
        found.update(repr((stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)).encode())
        with one.open("rb") as file:
            found.update(file.read(_SAMPLE))
            file.seek(max(0, stat.st_size - _SAMPLE))
            found.update(file.read(_SAMPLE))
    return found.hexdigest()


class StateStore:
    """States below ``folder``, the least recently used dropped beyond ``limit`` bytes in all.

    A store that cannot be read or written behaves like an empty one: it only ever saves time.
    """

    def __init__(self, folder: Path, *, limit: int) -> None:
        self._folder = folder
        self._limit = limit

    def get(self, owner: str, tokens: Sequence[int]) -> bytes | None:
        """Return the state behind ``tokens``; a damaged file is deleted and counts as none."""
        path = self._path(owner, tokens)
        try:
            data = path.read_bytes()
            head, payload = data[: len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
            if head == _MAGIC + hashlib.sha256(payload).digest():
                os.utime(path)
                return payload
            path.unlink()
        except OSError:
            pass
        return None

    def put(self, owner: str, tokens: Sequence[int], state: bytes) -> bool:
        """Keep a state; False when it is larger than the limit or cannot be written."""
        if len(state) > self._limit:
            return False
        path = self._path(owner, tokens)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, fresh = tempfile.mkstemp(prefix=_BEGUN, dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(state).digest())
                    file.write(state)
                    file.flush()
                    os.fsync(file.fileno())
                Path(fresh).replace(path)
            except OSError:
                Path(fresh).unlink(missing_ok=True)
                raise
            self._evict()
        except OSError:
            return False
        return True

    def _path(self, owner: str, tokens: Sequence[int]) -> Path:
        digest = hashlib.sha256(owner.encode() + array("q", tokens).tobytes()).hexdigest()
        return self._folder / f"{digest}.state"

    def _evict(self) -> None:
        """Drop what is beyond the limit; what others are writing counts, and is left alone."""
        found = [(one.stat().st_mtime_ns, one.stat().st_size, one) for one in self._files()]
        total = self._being_written() + sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._limit:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _being_written(self) -> int:
        """Return the bytes of files that are not complete; those left over are deleted."""
        total, now = 0, time.time()
        for path in self._folder.glob(f"{_BEGUN}*"):
            try:
                stat = path.stat()
            except FileNotFoundError:  # complete by now
                continue
            if now - stat.st_mtime > _LEFT_OVER_S:
                path.unlink(missing_ok=True)
            else:
                total += stat.st_size
        return total

    def _files(self) -> list[Path]:
        return list(self._folder.glob("*.state"))

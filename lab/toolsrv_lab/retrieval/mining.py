"""Training pairs in batches whose other members are hard negatives.

With in-batch negatives every document of a batch is a negative for every other query. So a batch is
dealt in small families: a pair, and pairs whose documents are near neighbours of its document in
the index of the untrained encoder. That gives each query hard negatives without encoding a text
more. A document that a query of the batch needs, or that says almost the same, never becomes its
negative. Seeded.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

_NEIGHBOURS = 40
# Documents nearer than this are one API to a reader: no negatives.
_SAME = 0.93
_FAMILY = 4
_TRIED = 12
_BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A query, the place of one document it needs, and the places of all that it needs."""

    query: str
    positive: int
    relevant: frozenset[int]


def neighbours(vectors: Vectors) -> list[list[int]]:
    """Return for each unit vector its nearest others, nearest first, without its equals.

    O(n²·d) in blocks: 16,463 documents take half a minute on two cores.
    """
    found: list[list[int]] = []
    wanted = min(_NEIGHBOURS + 20, len(vectors) - 1)
    for start in range(0, len(vectors), _BLOCK):
        scores = vectors[start : start + _BLOCK] @ vectors.T
        nearest = np.argpartition(-scores, wanted, axis=1)[:, :wanted]
        for row, some in enumerate(nearest):
            ordered = some[np.argsort(-scores[row, some], kind="stable")]
            near = [int(j) for j in ordered if j != start + row and scores[row, j] < _SAME]
            found.append(near[:_NEIGHBOURS])
    return found


def batches(
    pairs: Sequence[Pair], near: Sequence[Sequence[int]], size: int, rng: random.Random
) -> Iterator[list[Pair]]:
    """Yield batches of ``size`` pairs, each pair at most once, until too few are left."""
    rows = list(pairs)
    rng.shuffle(rows)
    by_document: dict[int, list[int]] = defaultdict(list)
    for at, pair in enumerate(rows):
        by_document[pair.positive].append(at)
    used = bytearray(len(rows))
    at = 0
    while True:
        batch = _Batch(size)
        while not batch.full and at < len(rows):
            if used[at]:
                at += 1
                continue
            family = [at]
            around = near[rows[at].positive]
            for place in rng.sample(around, min(_TRIED, len(around))):
                free = [k for k in by_document[place] if not used[k]]
                if free and len(family) < _FAMILY:
                    family.append(rng.choice(free))
            at += 1
            for k in family:
                if batch.add(rows[k]):
                    used[k] = 1
        if not batch.full:
            return
        yield batch.pairs


class _Batch:
    """Pairs none of which needs another's document."""

    def __init__(self, size: int) -> None:
        self.pairs: list[Pair] = []
        self._size = size
        self._documents: set[int] = set()
        self._needed: set[int] = set()
        self._queries: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self.pairs) >= self._size

    def add(self, pair: Pair) -> bool:
        clash = pair.relevant & self._documents or pair.positive in self._needed
        if self.full or clash or pair.query in self._queries:
            return False
        self.pairs.append(pair)
        self._documents.add(pair.positive)
        self._needed |= pair.relevant
        self._queries.add(pair.query)
        return True

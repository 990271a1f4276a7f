"""Batches of pairs with mined negatives, drawn from seed and step alone.

Every second batch is dealt by lot; the others gather pairs whose documents are near each other, so
that the documents of a batch are hard negatives for each other's texts. Knows nothing about torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .options import Options
from .pairs import Ids, Pairs, Places

_FAMILY = 32
"""Pairs of one neighbourhood."""
_CHUNKS = 4
"""Parts of a batch's texts that are encoded one after the other."""


@dataclass(frozen=True, slots=True)
class Mined:
    """For each text hard negatives, -1 where there are fewer; for each document its neighbours."""

    negatives: Ids
    near: Ids


@dataclass(frozen=True, slots=True)
class Batch:
    """Places of texts and their documents, both by length.

    ``columns`` say where in ``documents`` each text's own stands. The first ``filled`` documents are
    there for the shape alone.
    """

    texts: Places
    positives: Places
    documents: Places
    columns: Places
    filled: int


def chunk_rows(options: Options) -> int:
    """Return how many rows are encoded at a time: always so many, to have few shapes."""
    return max(1, options.batch_size // _CHUNKS)


class Sampler:
    """Deals each pair at most once an epoch; a restart needs only the ``position``."""

    def __init__(self, pairs: Pairs, options: Options) -> None:
        self._pairs = pairs
        self._options = options
        self.restore((0, 0))

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and how many of its pairs are dealt."""
        return self._epoch, self._at

    def restore(self, position: tuple[int, int]) -> None:
        """Go on from a ``position``."""
        epoch, at = position
        rng = np.random.default_rng((self._options.seed, 0, epoch))
        wholes = self._pairs.wholes
        whole = wholes[rng.random(len(wholes)) < self._options.whole]
        self._epoch, self._at = epoch, at
        self._dealt = np.concatenate([self._pairs.needs, whole]).astype(np.int64)
        self._order = rng.permutation(len(self._dealt))
        self._by_document = np.argsort(self._dealt[:, 1], kind="stable")
        ordered = self._dealt[self._by_document, 1]
        self._starts = np.searchsorted(ordered, np.arange(len(self._pairs.documents) + 1))

    def draw(self, step: int, mined: Mined) -> Batch:
        """Return the batch of a step."""
        rng = np.random.default_rng((self._options.seed, 1, step))
        size = self._options.batch_size
        chosen = self._neighbourhoods(mined.near, rng) if step % 2 else self._take(size)
        if len(chosen) < size:
            chosen = np.concatenate([chosen, self._take(size - len(chosen))])
        lengths = self._pairs.texts.lengths[chosen[:, 0]]
        chosen = chosen[np.argsort(lengths, kind="stable")]
        return self._batch(chosen[:, 0], chosen[:, 1], self._negatives(chosen, mined, rng))

    def _take(self, count: int) -> Places:
        """Return the next pairs of the epoch, or the first of another."""
        if self._at + count > len(self._order):
            self.restore((self._epoch + 1, 0))
        taken = self._order[self._at : self._at + count]
        self._at += count
        return self._dealt[taken]

    def _neighbourhoods(self, near: Ids, rng: np.random.Generator) -> Places:
        """Return some pairs, and for each others of documents near its own."""
        size = self._options.batch_size
        seeds = self._take(max(1, size // _FAMILY))
        around = near[seeds[:, 1]]
        lot = np.argsort(rng.random(around.shape), axis=1)[:, : size // len(seeds) - 1]
        documents = np.take_along_axis(around, lot, 1).ravel()
        starts = self._starts[documents]
        counts = self._starts[documents + 1] - starts
        found = counts > 0
        picked = starts[found] + (rng.random(found.sum()) * counts[found]).astype(np.int64)
        return np.concatenate([seeds, self._dealt[self._by_document[picked]]])

    def _negatives(self, chosen: Places, mined: Mined, rng: np.random.Generator) -> Places:
        """Return some hard negatives of each text, harder ones a little more often."""
        known = mined.negatives[chosen[:, 0]]
        lot = rng.random(known.shape) + 0.01 * np.arange(known.shape[1]) + 9 * (known < 0)
        first = np.argsort(lot, axis=1)[:, : self._options.negatives]
        found = np.take_along_axis(known, first, 1).ravel()
        return found[found >= 0].astype(np.int64)

    def _batch(self, texts: Places, positives: Places, negatives: Places) -> Batch:
        distinct, at = np.unique(np.concatenate([positives, negatives]), return_inverse=True)
        order = np.argsort(self._pairs.documents.lengths[distinct], kind="stable")
        place = np.empty(len(distinct), np.int64)
        place[order] = np.arange(len(distinct))
        filled = -len(distinct) % chunk_rows(self._options)
        documents = distinct[order]
        return Batch(
            texts=texts,
            positives=positives,
            documents=np.concatenate([np.full(filled, documents[0]), documents]),
            columns=place[at.reshape(-1)[: len(positives)]] + filled,
            filled=filled,
        )

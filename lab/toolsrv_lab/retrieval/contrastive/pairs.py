"""What is learnt from: texts, documents and which belong together, as arrays of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

MOST_RELEVANT = 16
"""Documents that one text may need."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Token ids of texts, one row each, filled up with 0, and how many tokens each has."""

    ids: Ids
    lengths: Ids

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Texts:
        """Return texts from their token ids."""
        lengths = np.asarray([len(row) for row in rows], np.int32)
        ids = np.zeros((len(rows), int(lengths.max(initial=0))), np.int32)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
        return cls(ids, lengths)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Texts and the documents that serve them; ``needs`` and ``wholes`` are (pairs, 2) of places.

    ``needs`` bring the words of one need to its document, ``wholes`` a text of several needs to each
    of its documents. ``relevant`` (texts, at most ``MOST_RELEVANT``) are all that a text needs, -1 where
    there are fewer: never negatives. ``groups`` number the service of each document.
    """

    documents: Texts
    texts: Texts
    groups: Ids
    needs: Ids
    wholes: Ids
    relevant: Ids

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return name -> array, from which ``of`` makes the same again."""
        return {
            "document_ids": self.documents.ids,
            "document_lengths": self.documents.lengths,
            "text_ids": self.texts.ids,
            "text_lengths": self.texts.lengths,
            **{one.name: getattr(self, one.name) for one in fields(self)[2:]},
        }

    @classmethod
    def of(cls, arrays: dict[str, npt.NDArray[Any]]) -> Pairs:
        """Return pairs from ``arrays``; raises KeyError where one is missing."""
        given = {name: np.asarray(arrays[name], np.int32) for name in (
            "document_ids", "document_lengths", "text_ids", "text_lengths",
            "groups", "needs", "wholes", "relevant",
        )}  # fmt: skip
        documents = Texts(given.pop("document_ids"), given.pop("document_lengths"))
        texts = Texts(given.pop("text_ids"), given.pop("text_lengths"))
        return cls(documents, texts, **given)

    def digest(self) -> str:
        """Return a SHA-256 that tells other data apart."""
        found = hashlib.sha256()
        for name, array in self.arrays().items():
            found.update(f"{name} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def counts(self) -> dict[str, int]:
        """Return how much there is, for ``training.json``."""
        return {
            "documents": len(self.documents),
            "texts": len(self.texts),
            "needs": len(self.needs),
            "wholes": len(self.wholes),
        }

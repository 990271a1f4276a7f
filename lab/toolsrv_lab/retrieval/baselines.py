"""Retrieval baselines over texts: BM25, and a sentence encoder as it comes (zero-shot)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Encoder, Vectors
from toolsrv_registry.index.lexicon import Entry, make_lexicon
from toolsrv_registry.words import words

Scores = Callable[[str], npt.NDArray[np.float32]]
"""Returns how well each of the texts fits a query, in their order."""


def bm25(texts: Sequence[str]) -> Scores:
    """Return BM25 over texts, each one field of words."""
    lexicon = make_lexicon(
        Entry(str(at), "", "", "", "", ("", "", "", " ".join(words(text)), "", ""))
        for at, text in enumerate(texts)
    )
    return lambda query: lexicon.fit([query]).words[0]


def cosines(vectors: Vectors, encoder: Encoder) -> Scores:
    """Return the cosine with each text, whose vectors of length 1 are given."""
    return lambda query: vectors @ encoder.encode([query])[0]

"""Retrieval baselines over texts: BM25, and a sentence encoder as it comes (zero-shot)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Encoder, Progress
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.array_files import read_arrays, write_arrays
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


def zero_shot(
    texts: Sequence[str], encoder: Encoder, kept: Path, *, progress: Progress | None = None
) -> Scores:
    """Return the cosine with each text; the texts' vectors are kept in the file ``kept``.

    Raises:
        UsageError: the encoder's library is not installed.
        DataError: the encoder cannot be used, or the vectors cannot be kept.
    """
    digest = hashlib.sha256("\0".join([encoder.digest, *texts]).encode("utf-8", "replace"))
    key = np.frombuffer(digest.digest(), np.uint8)
    try:
        known = read_arrays(kept)
    except (FileNotFoundError, ValueError):
        known = {}
    if not np.array_equal(known.get("key", ()), key):
        known = {"key": key, "vectors": encoder.encode(texts, progress=progress)}
        try:
            write_arrays(kept, known)
        except OSError as error:
            raise DataError(
                f"cannot write {kept}: {error.strerror or error}", hint="free some space"
            ) from error
    vectors = known["vectors"]

    def scores(query: str) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = vectors @ encoder.encode([query])[0]
        return found

    return scores

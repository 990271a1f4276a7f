"""Retrieval baselines over texts: BM25, and a sentence encoder as it comes (zero-shot)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Encoder, Progress, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.array_files import read_arrays, write_arrays
from toolsrv_registry.index.lexicon import Entry, make_lexicon
from toolsrv_registry.words import words

_KEPT_AT_ONCE = 2_048
"""Vectors between two writes of the file."""

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
    """Return the cosine with each text.

    The texts' vectors are kept in the file ``kept`` as they come, so that a killed run goes on there.

    Raises:
        UsageError: the encoder's library is not installed.
        DataError: the encoder cannot be used, or the vectors cannot be kept.
    """
    digest = hashlib.sha256("\0".join([encoder.digest, *texts]).encode("utf-8", "replace"))
    key = np.frombuffer(digest.digest(), np.uint8)
    vectors = _kept_vectors(kept, key)
    if vectors is None:
        vectors = np.zeros((0, encoder.dimensions), np.float32)
    order = np.argsort([len(one) for one in texts], kind="stable")  # batches of alike length
    for start in range(len(vectors), len(texts), _KEPT_AT_ONCE):
        fresh = encoder.encode([texts[at] for at in order[start : start + _KEPT_AT_ONCE]])
        vectors = np.concatenate([vectors, fresh])
        try:
            write_arrays(kept, {"key": key, "vectors": vectors})
        except OSError as error:
            raise DataError(
                f"cannot write {kept}: {error.strerror or error}", hint="free some space"
            ) from error
        if progress is not None:
            progress(len(vectors), len(texts))
    whole = vectors

    def scores(query: str) -> npt.NDArray[np.float32]:
        found = np.zeros(len(texts), np.float32)
        found[order] = whole @ encoder.encode([query])[0]
        return found

    return scores


def _kept_vectors(kept: Path, key: npt.NDArray[np.uint8]) -> Vectors | None:
    """Return the vectors of a file that are of the same texts and encoder."""
    try:
        known = read_arrays(kept)
    except (FileNotFoundError, ValueError):
        return None
    if not np.array_equal(known.get("key", np.zeros(0)), key):
        return None
    found: Vectors = known["vectors"]
    return found

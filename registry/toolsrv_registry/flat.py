"""A flat copy of a collection's vectors in eight bits: all cosines by one product of matrices.

Chroma keeps the vectors and finds the nearest by a graph (HNSW), which pays for very many; for tens
of thousands a product with all of them takes an eighth of the time (16,623 vectors, four texts),
misses none of the nearest, and needs no Chroma in the process that searches. The copy is read from
Chroma and kept in one file beside the store: a cache, made anew when it is missing, damaged or of
another collection, done without where the folder cannot be written.

Time and memory are O(texts), 0.4 KB each; knows nothing of APIs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_registry.array_files import array_texts, read_arrays, text_array, write_arrays
from toolsrv_registry.encoder import Vectors
from toolsrv_registry.int8_product import Int8Product, quantised

_log = logging.getLogger(__name__)

MOST = 100_000
"""Of more texts no copy is made: 40 MB, and then the graph is as fast."""
_FORMAT = "1"

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Flat:
    """The texts of a collection by their hashes, with their vectors.

    ``integers`` (texts, dimensions) times ``scales`` (texts,) are the vectors.
    """

    collection: str
    hashes: tuple[str, ...]
    integers: npt.NDArray[np.int8]
    scales: Vectors

    def over(self, hashes: Sequence[str]) -> Cosines:
        """Return what tells the cosines with texts by their hashes, which may repeat."""
        known = {key: at for at, key in enumerate(self.hashes)}
        at = np.fromiter((known.get(key, -1) for key in hashes), np.int64, len(hashes))
        absent = np.flatnonzero(at < 0)
        if len(absent) == len(at):
            return Cosines(None, absent)
        return Cosines(Int8Product(self.integers[at], self.scales[at]), absent)


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines with texts in a fixed order; ``absent`` are the places of those that are unknown."""

    product: Int8Product | None
    absent: Places

    def __call__(self, vectors: Vectors) -> Vectors:
        """Return the cosines (n, texts) of unit vectors (n, d), -inf with an unknown text."""
        if self.product is None:
            return np.full((len(vectors), len(self.absent)), -np.inf, np.float32)
        found = self.product(vectors)
        found[:, self.absent] = -np.inf
        return found


class FlatFile:
    """The flat copy of one collection after the other, kept at ``path``. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._current: Flat | None = None

    def get(self, collection: str, read: Callable[[], Mapping[str, Vectors]]) -> Flat:
        """Return the copy of a collection; cheap while it is the one asked for last.

        ``read`` returns all its vectors by hash, and is asked where no file holds them; what it
        raises is passed on.
        """
        with self._lock:
            if self._current is None or self._current.collection != collection:
                self._current = self._load(collection) or self._make(collection, read())
            return self._current

    def _load(self, collection: str) -> Flat | None:
        try:
            arrays = read_arrays(self._path)
            if str(arrays["state"]) != f"{_FORMAT} {collection}":
                return None
            return _flat(collection, arrays)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            _log.warning("the vectors in %s are damaged (%s); reading them anew", self._path, error)
            return None

    def _make(self, collection: str, vectors: Mapping[str, Vectors]) -> Flat:
        hashes = tuple(sorted(vectors))
        rows = (
            np.stack([vectors[key] for key in hashes]) if hashes else np.zeros((0, 0), np.float32)
        )
        integers, scales = quantised(rows)
        arrays = {
            "state": np.asarray(f"{_FORMAT} {collection}"),
            "hashes": text_array(hashes),
            "integers": integers,
            "scales": scales,
        }
        try:
            write_arrays(self._path, arrays)
        except OSError as error:
            _log.warning("cannot keep the vectors in %s: %s", self._path, error.strerror)
        return Flat(collection, hashes, integers, scales)


def _flat(collection: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Flat:
    hashes, integers, scales = array_texts(arrays["hashes"]), arrays["integers"], arrays["scales"]
    if integers.dtype != np.int8 or integers.ndim != 2 or scales.dtype != np.float32:
        raise ValueError("it holds other numbers")
    if not len(hashes) == len(integers) == len(scales):
        raise ValueError("its parts do not belong together")
    return Flat(collection, hashes, integers, scales)

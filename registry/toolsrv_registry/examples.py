"""Vectors of requests that people make of known APIs, and how near a text is to one of them.

A document says what an API does in its provider's words; examples of requests say it in those of
the people who want it (document expansion, as in doc2query, but kept apart from the document: the
nearest request counts, not their mean). A file belongs to one encoder, and each API in it to the
text that its document had: of anything else it knows nothing. Knows no rankings.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Vectors
from toolsrv_registry.errors import DataError

SHIPPED_EXAMPLES = Path(__file__).parent / "models" / "examples.npz"
_SCALE = 127.0


class Examples:
    """The requests in a file; those of the catalog that ships by default. Thread-safe.

    The file is read when it is first needed. One that is missing or damaged raises DataError then.
    """

    def __init__(self, path: Path = SHIPPED_EXAMPLES) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._found: tuple[str, Mapping[str, npt.NDArray[np.int8]]] | None = None

    def nearest(self, vector: Vectors, document: str, encoder: str) -> float | None:
        """Return the cosine of a unit ``vector`` (dimensions,) with its nearest request.

        ``document`` is the hash of an API's document text, ``encoder`` the digest of the one that
        made the vector. None where there are no requests for both.
        """
        made_by, known = self._read()
        rows = known.get(document)
        if rows is None or made_by != encoder:
            return None
        return float((rows @ vector).max()) / _SCALE

    @cached_property
    def documents(self) -> frozenset[str]:
        """The hashes of the documents that there are requests for."""
        return frozenset(self._read()[1])

    def _read(self) -> tuple[str, Mapping[str, npt.NDArray[np.int8]]]:
        with self._lock:
            if self._found is None:
                self._found = _read(self._path)
            return self._found


def write_examples(
    path: Path, requests: Mapping[str, Vectors], about: Mapping[str, object], encoder: str
) -> None:
    """Write document hash -> unit vectors (n, dimensions): whole or not at all.

    ``about`` says what they were made of, for people. ``encoder`` is the encoder's digest.
    """
    documents = list(requests)
    rows = np.concatenate([np.rint(requests[one] * _SCALE) for one in documents]).astype(np.int8)
    counts = np.asarray([len(requests[one]) for one in documents], np.int32)
    told = json.dumps({**about, "encoder": encoder})
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        np.savez(file, rows=rows, counts=counts, documents=np.asarray(documents), about=told)
    fresh.replace(path)


def spread(vectors: Vectors, most: int) -> list[int]:
    """Return the places of up to ``most`` vectors that lie far apart, the first one first.

    Each next one is the farthest from those taken (Gonzalez 1985). O(most * n).
    """
    if len(vectors) <= most:
        return list(range(len(vectors)))
    taken = [0]
    near = vectors @ vectors[0]
    while len(taken) < most:
        taken.append(int(near.argmin()))
        near = np.maximum(near, vectors @ vectors[taken[-1]])
    return taken


def _read(path: Path) -> tuple[str, Mapping[str, npt.NDArray[np.int8]]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rows, counts = arrays["rows"], arrays["counts"]
            documents: Sequence[str] = arrays["documents"].tolist()
            encoder = str(json.loads(str(arrays["about"]))["encoder"])
        parts = np.split(rows.astype(np.int8), np.cumsum(counts)[:-1])
        return encoder, dict(zip(documents, parts, strict=True))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot read the example requests {path}: {error}",
            hint="reinstall toolsrv: pip install --force-reinstall toolsrv",
        ) from error

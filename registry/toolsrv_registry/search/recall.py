"""What each part of a text finds, by words and by meaning, and what speaks for every candidate.

Reads the lexicon and the vector index to a fixed depth, within a place (category, tool, catalog).
Where the vectors cannot be used it says why and the words stand alone. Builds or repairs the index
of a small catalog itself. Knows nothing about the order of the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Encoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.chroma import REBUILD
from toolsrv_registry.index.flat import Cosines, FlatIndex
from toolsrv_registry.index.lexicon import Lexicon, LexiconCache, is_name_length
from toolsrv_registry.index.vectors import Index
from toolsrv_registry.search.signals import (
    CandidateSignals,
    VectorHits,
    best,
    candidate_signals,
    word_candidates,
)
from toolsrv_registry.storage.store import Store

# How deep each ranking is read.
DEPTH = 64
# Up to this many APIs a search builds or repairs the index itself (a few seconds); beyond it says
# that words alone answered.
_BUILD_AT_ONCE = 2_000
# The index does not know catalogs. A catalog of at most so many texts is compared one by one, of a
# larger one so much deeper a ranking is read.
_COMPARED = 2_000
_DEEPER = 10

Row = list[tuple[str, float]]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Place:
    """Where to search: names as stored, or ids of APIs; None is everywhere."""

    category: str | None = None
    tool: str | None = None
    catalog: str | None = None
    among: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class RecalledApis:
    """The candidates of a search, in no order yet, as places in ``lexicon``.

    ``measured`` is False when the vectors could not be used; ``degraded`` then says why, or that
    they are out of date.
    """

    lexicon: Lexicon
    judged: CandidateSignals
    measured: bool
    degraded: str = ""


class Recall:
    """Reads both indexes of one store. Thread-safe."""

    def __init__(self, store: Store, index: Index, encoder: Encoder) -> None:
        self._store = store
        self._index = index
        self._encoder = encoder
        self._lexicons = LexiconCache(store)
        self._cosines: tuple[Lexicon, FlatIndex, Cosines] | None = None

    def read(self, parts: Sequence[str], place: Place, *, words_only: bool = False) -> RecalledApis:
        """Return what the parts find in a place, down to ``DEPTH`` each."""
        lexicon = self._lexicons.current()
        within = lexicon.within(place.category, place.tool, place.catalog, place.among)
        # Not beside the encoder, whose threads would wait for the interpreter's lock.
        weighed = word_candidates(lexicon.fit(parts), DEPTH, within)
        vectors, degraded = (None, "") if words_only else self._measured(parts)
        near, fault = self._searched(lexicon, vectors, place, within)
        judged = candidate_signals(lexicon, weighed, near, within)
        return RecalledApis(lexicon, judged, bool(near), fault or degraded)

    def named_ids(self, text: str, place: Place) -> list[str]:
        """Return the ids of the APIs in a place that a text names in full, tool and API."""
        if not is_name_length(text):
            return []
        lexicon = self._lexicons.current()
        found = lexicon.called(text)
        if not found:
            return []
        within = lexicon.within(place.category, place.tool, place.catalog, place.among)
        return [lexicon.ids[at] for at in found if within is None or within[at]]

    def lexicon(self) -> Lexicon:
        """Return the words of the visible APIs; cheap while nothing changed, else read now."""
        return self._lexicons.current()

    def _measured(self, parts: Sequence[str]) -> tuple[Vectors | None, str]:
        """Return the parts' vectors if there is an index for them, and what is wrong if anything.

        Builds a small index that is missing or out of date.
        """
        try:
            state = self._index.state()
            if state != "ready" and self._store.size() <= _BUILD_AT_ONCE:
                state = self._index.build().state
            if state == "missing":
                return None, f"there is no vector index yet: words only ({REBUILD})"
            vectors = self._encode(parts)
        except DataError as error:
            return None, _words_only(error)
        if state == "stale":
            return vectors, f"the vector index is out of date: new APIs by words only ({REBUILD})"
        return vectors, ""

    def _searched(
        self, lexicon: Lexicon, vectors: Vectors | None, place: Place, within: Mask | None
    ) -> tuple[list[VectorHits], str]:
        """Return per vector the nearest APIs in a place, and why there are none.

        Builds a small index that cannot be read a second time.
        """
        if vectors is None:
            return [], ""
        try:
            try:
                return self._nearest(lexicon, vectors, place, within), ""
            except DataError:
                if self._store.size() > _BUILD_AT_ONCE:
                    raise
                self._index.build()
                return self._nearest(lexicon, vectors, place, within), ""
        except DataError as error:
            return [], _words_only(error)

    def _encode(self, parts: Sequence[str]) -> Vectors:
        """Return a vector per part; that of a whole text is the mean of its clauses'.

        Weighted by length, it serves as well as the text's own vector (48.2 against 47.3 NDCG@5
        after ranking) at half the cost.
        """
        if len(parts) == 1:
            return self._encoder.encode(parts)
        clauses = self._encoder.encode(parts[1:])
        whole = np.asarray([len(part) for part in parts[1:]], np.float32) @ clauses
        whole /= max(float(np.linalg.norm(whole)), 1e-6)
        return np.vstack([whole, clauses])

    def _nearest(
        self, lexicon: Lexicon, vectors: Vectors, place: Place, within: Mask | None
    ) -> list[VectorHits]:
        """Return per vector the nearest APIs in a place, by the flat copy or by Chroma."""
        flat = self._index.flat()
        if flat is None:
            return [_near(lexicon, row) for row in self._asked(lexicon, vectors, place)]
        cosines = self._cosines_of(lexicon, flat)(vectors)
        if within is not None:
            cosines[:, ~within] = -np.inf
        return [
            VectorHits(found, row[found]) for row in cosines for found in [best(row, DEPTH, -1.5)]
        ]

    def _cosines_of(self, lexicon: Lexicon, flat: FlatIndex) -> Cosines:
        """Return what tells the cosines with the APIs, in their order."""
        known = self._cosines
        if known is None or known[0] is not lexicon or known[1] is not flat:
            self._cosines = known = (lexicon, flat, flat.over(lexicon.hashes))
        return known[2]

    def _asked(self, lexicon: Lexicon, vectors: Vectors, place: Place) -> list[Row]:
        """Return per vector the nearest (document hash, cosine) that Chroma has in a place."""
        members: frozenset[str] | None = None
        if place.among is not None:
            pairs = zip(lexicon.ids, lexicon.hashes, strict=True)
            members = frozenset(key for api_id, key in pairs if api_id in place.among)
        elif place.catalog is not None:
            members = self._store.labels.documents_of(place.catalog)
        if members is None:
            return self._index.query(vectors, DEPTH, category=place.category, tool=place.tool)
        if place.category or place.tool or len(members) > _COMPARED:
            deep = _DEEPER * DEPTH
            rows = self._index.query(vectors, deep, category=place.category, tool=place.tool)
            return [[near for near in row if near[0] in members][:DEPTH] for row in rows]
        known = self._index.vectors(sorted(members))
        if not known:
            return [[] for _ in vectors]
        keys, cosines = list(known), vectors @ np.stack(list(known.values())).T
        orders = np.argsort(-cosines, axis=1, kind="stable")[:, :DEPTH]
        return [
            [(keys[at], float(row[at])) for at in order]
            for row, order in zip(cosines, orders, strict=True)
        ]


def _words_only(error: DataError) -> str:
    return f"words only: {error.message} ({error.hint})"


def _near(lexicon: Lexicon, row: Row) -> VectorHits:
    """Return the APIs behind the nearest documents; several APIs may share a text."""
    known = lexicon.places
    found = [(at, cosine) for key, cosine in row for at in known.get(key, ())]
    places, cosines = zip(*found, strict=True) if found else ((), ())
    return VectorHits(np.asarray(places, np.int64), np.asarray(cosines, np.float32))

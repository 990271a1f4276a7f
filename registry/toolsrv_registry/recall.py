"""What each part of a text finds, by words and by meaning: the rankings that a search starts from.

Reads the store's word index and the vector index to a fixed depth, within a place (category,
tool, catalog). Where the vectors cannot be used it says why and the words stand alone. Builds or repairs
the index of a small catalog itself. Knows nothing about how the rankings are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from toolsrv_registry.chroma import REBUILD
from toolsrv_registry.encoder import Encoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.store import Store
from toolsrv_registry.vectors import Index
from toolsrv_registry.words import content_words

# How deep each ranking is read.
DEPTH = 100
# Up to this many APIs a search builds or repairs the index itself (a few seconds); beyond it says
# that words alone answered.
_BUILD_AT_ONCE = 2_000
# The index does not know catalogs. A catalog of at most so many texts is compared one by one, of a
# larger one so much deeper a ranking is read.
_COMPARED = 2_000
_DEEPER = 10

Near = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where to search: names as stored; None is everywhere."""

    category: str | None = None
    tool: str | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """Per part the API ids by words, best first, and (id, cosine) by meaning, nearest first.

    ``dense`` is empty when the vectors could not be used; ``degraded`` then says why.
    """

    lexical: list[list[str]]
    dense: list[Near] = field(default_factory=list)
    degraded: str = ""


class Recall:
    """Reads both indexes of one store. Thread-safe."""

    def __init__(self, store: Store, index: Index, encoder: Encoder) -> None:
        self._store = store
        self._index = index
        self._encoder = encoder

    def read(self, parts: Sequence[str], place: Place) -> Recalled:
        """Return what each part finds in a place, down to ``DEPTH``."""
        lexical = [self._lexical(part, place) for part in parts]
        dense, degraded = self._dense(parts, place)
        return Recalled(lexical, dense, degraded)

    def _lexical(self, part: str, place: Place) -> list[str]:
        found = self._store.match(
            content_words(part),
            DEPTH,
            category=place.category,
            tool=place.tool,
            catalog=place.catalog,
        )
        return [match.api_id for match in found]

    def _dense(self, parts: Sequence[str], place: Place) -> tuple[list[Near], str]:
        """Return per part the nearest (API id, cosine), and what is wrong with them if anything."""
        degraded = ""
        small = self._store.size() <= _BUILD_AT_ONCE
        try:
            state = self._index.state()
            if state != "ready" and small:
                state = self._index.build().state
            if state == "missing":
                return [], f"there is no vector index yet: words only ({REBUILD})"
            if state == "stale":
                degraded = f"the vector index is out of date: new APIs by words only ({REBUILD})"
            vectors = self._encoder.encode(parts)
            try:
                nearest = self._nearest(vectors, place)
            except DataError:
                if not small:
                    raise
                self._index.build()
                nearest = self._nearest(vectors, place)
        except DataError as error:
            return [], f"words only: {error.message} ({error.hint})"
        ids = self._store.ids_of_documents([key for row in nearest for key, _ in row])
        found = [[(i, cosine) for key, cosine in row for i in ids.get(key, ())] for row in nearest]
        return found, degraded

    def _nearest(self, vectors: Vectors, place: Place) -> list[Near]:
        """Return per vector the nearest (document hash, cosine) in a place."""
        if place.catalog is None:
            return self._index.query(vectors, DEPTH, category=place.category, tool=place.tool)
        members = self._store.shelf.documents_of(place.catalog)
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

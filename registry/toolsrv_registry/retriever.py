"""From a task to the APIs that fit it, with the reason for each.

Words (FTS5, BM25) and meaning (vectors, cosine) each rank the APIs for the whole text and for
every clause of it. Per part the two rankings are fused (``fusion``); an API's score is its best
over the parts, so every need of a task brings its API to the front. Without a usable vector
index the words alone answer, and the result says why.

Knows nothing about models, calls or conversation formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.affinity import Affinity
from toolsrv_registry.api import Api
from toolsrv_registry.clauses import TEXT_LIMIT, clauses
from toolsrv_registry.encoder import Encoder
from toolsrv_registry.errors import UsageError
from toolsrv_registry.fusion import Candidate, fuse
from toolsrv_registry.recall import DEPTH, Place, Recall, Recalled
from toolsrv_registry.store import Store
from toolsrv_registry.vectors import Index

_CATEGORIES = 5
# A hit is related from this cosine, or from this share of its clause's words. On 30 requests that
# the offline catalog cannot serve and 44 that it can, 23 and none fall below both.
_RELATED = 0.30
_COVERED = 0.33
# Words alone are a weak witness: only a nearly complete miss counts.
_COVERED_ALONE = 0.15


class Hit(BaseModel):
    """One API that fits, best first in a result.

    ``score`` in [0, 1] orders the hits of one result and means little across results. ``lexical_rank`` and ``dense_rank`` count from 1 within
    ``clause``, the part of the text this API fits best; None when it was not among the best
    hundred. ``similarity`` is the cosine with that part (0.0 when unknown). ``matched_words`` are
    the words of that part that occur in the API's texts.
    """

    model_config = ConfigDict(frozen=True)

    api: Api
    score: float
    lexical_rank: int | None
    dense_rank: int | None
    similarity: float
    matched_words: tuple[str, ...]
    clause: str


class SearchResult(BaseModel):
    """Hits for a text, best first.

    ``nothing_fits``: even the best hit is likely unrelated. ``nearest_categories`` are where the
    closest APIs lie, most of them first. ``degraded`` says why the vectors were not used, or not
    up to date; empty when all is well. ``query`` is the text that was searched (cut at 4,000
    characters).
    """

    model_config = ConfigDict(frozen=True)

    query: str
    hits: tuple[Hit, ...]
    nothing_fits: bool
    nearest_categories: tuple[str, ...]
    degraded: str = ""


class Retriever:
    """Searches a store and its vector index. Thread-safe."""

    def __init__(self, store: Store, index: Index, encoder: Encoder) -> None:
        self._store = store
        self._recall = Recall(store, index, encoder)
        self._affinity = Affinity(store, encoder)

    def search(
        self,
        text: str,
        limit: int = 5,
        *,
        category: str | None = None,
        tool: str | None = None,
    ) -> SearchResult:
        """Return the APIs that fit a task or a question, best first.

        Any language and any characters are fine; the first 4,000 characters count. Names of a
        category or tool are taken in any form.

        Raises UsageError for an empty text or a limit below 1, NotFoundError (with near matches)
        for an unknown category or tool.
        """
        if limit < 1:
            raise UsageError(f"a search for {limit} APIs finds nothing", hint="ask for 1 or more")
        query = _query(text)
        ranked, recalled = self._ranked(_parts(query), self._place(category, tool))
        apis = self._store.get_many([candidate.api_id for candidate in ranked[: 4 * limit]])
        ranked = [candidate for candidate in ranked if candidate.api_id in apis]
        hits = tuple(self._hit(candidate, apis[candidate.api_id]) for candidate in ranked[:limit])
        return SearchResult(
            query=query,
            hits=hits,
            nothing_fits=self._nothing_fits(hits, measured=bool(recalled.dense)),
            nearest_categories=_categories([apis[candidate.api_id] for candidate in ranked]),
            degraded=recalled.degraded,
        )

    def rank(
        self,
        text: str,
        depth: int = DEPTH,
        *,
        category: str | None = None,
        tool: str | None = None,
    ) -> list[tuple[str, float]]:
        """Return up to ``depth`` (API id, score), best first: the bare ranking, nothing arranged.

        What ``search`` starts from; for evaluation. Raises as ``search`` does.
        """
        query = _query(text)
        ranked, _ = self._ranked(_parts(query), self._place(category, tool))
        return [(candidate.api_id, candidate.score) for candidate in ranked[:depth]]

    def affinity(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return for each API in [0, 1] how well it fits a short clause.

        Cosine similarity and idf-weighted word overlap, half each; the overlap alone where the
        encoder cannot be used. Cheap for APIs seen before: their vectors are kept.
        """
        return self._affinity.measure(text, apis)

    def _place(self, category: str | None, tool: str | None) -> Place:
        if category is not None:
            category = self._store.resolve_category(category)
        if tool is not None:
            tool = self._store.resolve_tool(tool, category=category)
        return Place(category, tool)

    def _ranked(self, parts: Sequence[str], place: Place) -> tuple[list[Candidate], Recalled]:
        """Return all that the parts find, best first, each with the part that it fits best."""
        recalled = self._recall.read(parts, place)
        return fuse(parts, recalled.lexical, recalled.dense), recalled

    def _hit(self, candidate: Candidate, api: Api) -> Hit:
        return Hit(
            api=api,
            score=candidate.score,
            lexical_rank=candidate.lexical_rank,
            dense_rank=candidate.dense_rank,
            similarity=candidate.similarity,
            matched_words=self._affinity.overlap(candidate.part, api).words,
            clause=candidate.part,
        )

    def _nothing_fits(self, hits: Sequence[Hit], *, measured: bool) -> bool:
        """Judge whether even the best hits are unrelated to their parts of the text."""
        if measured and any(hit.similarity >= _RELATED for hit in hits):
            return False
        least = _COVERED if measured else _COVERED_ALONE
        return all(self._affinity.overlap(hit.clause, hit.api).coverage < least for hit in hits)


def _query(text: str) -> str:
    query = text[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8").strip()
    if not query:
        raise UsageError("there is no text to search for", hint="describe the task in words")
    return query


def _parts(query: str) -> list[str]:
    """Return the whole text, then its clauses when there are several."""
    found = clauses(query)
    return [query, *found] if len(found) > 1 else [query]


def _categories(apis: Sequence[Api]) -> tuple[str, ...]:
    counted: dict[str, int] = {}
    for api in apis[:20]:
        counted[api.category] = counted.get(api.category, 0) + 1
    return tuple(sorted(counted, key=lambda name: -counted[name])[:_CATEGORIES])

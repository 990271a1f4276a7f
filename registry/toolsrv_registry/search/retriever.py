"""From a task to the APIs that fit it, with the reason for each.

A text is normalized (``query``), each part of it recalls APIs by words and by meaning (``recall``),
they are ranked by their ``signals``, and the ranking is arranged (``arrangement``): every subtask
with its API near the top, near-duplicates folded, dead APIs left out. Without a usable vector index
the words alone answer, and the result says why.

Knows nothing about models, calls or conversation formats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from toolsrv_registry.api import Api
from toolsrv_registry.encoder import Encoder
from toolsrv_registry.errors import (
    DataError,
    NotFoundError,
    UsageError,
    list_names,
    nearest_names,
    shorten,
)
from toolsrv_registry.index.vectors import Index
from toolsrv_registry.matcher import Match, Matcher, MatchRequest
from toolsrv_registry.ranker import Ranker
from toolsrv_registry.search.arrangement import (
    COVERED_HEAD,
    ArrangedApi,
    DuplicateFolder,
    cover_parts,
    cover_subtasks,
    listed_subtasks,
    named_first,
    word_shares,
)
from toolsrv_registry.search.clauses import TEXT_LIMIT, with_clauses
from toolsrv_registry.search.query import QueryReader, SearchQuery
from toolsrv_registry.search.recall import DEPTH, Place, Recall, RecalledApis
from toolsrv_registry.search.signals import PLAIN, Candidate, Floats, nan_to_zero
from toolsrv_registry.similarity import ApiScorer
from toolsrv_registry.storage.store import Store

# So many candidates are ranked by the ranker.
_RANKED = 96
# The nearest categories are those of so many of the best.
_NEAREST, _CATEGORIES = 20, 5
# At least so many APIs are read for a page, for the twins of its hits.
_LEAST_READ = 10
# A hit is related when its cosine and so much of the share of its clause's words reach this. Of 50
# requests that the offline catalog cannot serve 37 stay below, of 288 that it can serve eight.
_WORDS, _RELATED = 0.3, 0.38
# The best of many is nearer than the best of few, whatever is asked: the cosine that a related hit
# needs grows with the logarithm of the catalogs' size, from one at 170 APIs to one at 16,463.
_FEW, _MANY = (170, 0.28), (16_463, 0.39)
# Words alone are a weak witness: only a nearly complete miss counts.
_COVERED_ALONE = 0.15
# The encoder reads English: of a text that could not be put into it most of the words have to be met.
_COVERED_UNREAD = 0.5
# So many of the best are judged, however many are asked for.
_JUDGED = 5


class Hit(BaseModel):
    """One API that fits.

    ``rank`` is its place in the whole list, from 1. ``score`` in [0, 1] says how well it fits and
    means little across results. ``lexical_rank`` and ``dense_rank`` count from 1 within
    ``clause``, the part of the text (as it was searched) this API fits best; None when it was not
    among the best hundred. ``similarity`` is the cosine with that part (0.0 when unknown).
    ``matched_words`` are the words of that part that occur in the API's texts. ``similar`` are the
    ids of near-duplicates, which do not stand in the list themselves. ``changed``: a newer text
    waits to be accepted. ``dead`` says why the last check failed; empty for an API that is alive
    or was never checked.
    """

    model_config = ConfigDict(frozen=True)

    api: Api
    rank: int
    score: float
    lexical_rank: int | None
    dense_rank: int | None
    similarity: float
    matched_words: tuple[str, ...]
    clause: str
    similar: tuple[str, ...] = ()
    catalog: str = ""
    changed: bool = False
    dead: str = ""

    @property
    def tool_id(self) -> str:
        """The tool's part of the API's id: ``Category/tool``."""
        return self.api.id.rpartition("/")[0]


class SearchResult(BaseModel):
    """Hits for a text, best first, from place ``offset`` + 1 of the list on.

    ``next_offset`` leads to the next page; None when there is none, and then ``total`` is the
    length of the list. ``nothing_fits``: even the best hits of the list, whatever the page, are
    likely unrelated. ``nearest_categories`` are where the closest APIs lie, most of them first; when
    nothing fits in a category, tool or catalog, the closest anywhere. ``dead_left_out`` counts
    better APIs than the last hit that were left out because they failed their last check.
    ``named``: the text is the full name of APIs, which come first.
    ``hidden_behind`` counts APIs of the named catalog that are not found because another catalog
    has their ids, by that catalog. ``need_consent`` are ids of better APIs than the first hit that
    were left out because nobody can be asked whether they may be called, and ``need_keys`` of those
    that were because of their credentials: id -> what they need. ``degraded`` says why the vectors were not used, or not up to
    date; empty when all is well.

    ``query`` is the text that was given (cut at 4,000 characters). ``reading`` tells what was
    searched for it: misspelt words put right, another language put into English. ``longer`` are hits
    from the beginning of the list, where they were wanted beside the page.
    """

    model_config = ConfigDict(frozen=True)

    query: str
    hits: tuple[Hit, ...]
    nothing_fits: bool
    nearest_categories: tuple[str, ...]
    offset: int = 0
    next_offset: int | None = None
    total: int | None = None
    dead_left_out: int = 0
    hidden_behind: Mapping[str, int] = {}
    need_consent: tuple[str, ...] = ()
    need_keys: Mapping[str, str] = {}
    named: bool = False
    degraded: str = ""
    reading: SearchQuery = SearchQuery("")
    longer: tuple[Hit, ...] = Field(default=(), exclude=True, repr=False)

    @property
    def language(self) -> str:
        """English name of the query's language, "" for English and where too little tells."""
        return self.reading.language


class Retriever:
    """Searches a store and its vector index. Thread-safe."""

    def __init__(
        self,
        store: Store,
        index: Index,
        encoder: Encoder,
        ranker: Ranker | None = None,
        matcher: Matcher | None = None,
    ) -> None:
        self._store = store
        self._ranker = Ranker() if ranker is None else ranker
        self._recall = Recall(store, index, encoder)
        self._reader = QueryReader(store.labels, store.names.frequency)
        self._scorer = ApiScorer(self._recall.lexicon, encoder)
        self._matcher = Matcher() if matcher is None else matcher

    def search(
        self,
        text: str,
        limit: int = 5,
        *,
        offset: int = 0,
        category: str | None = None,
        tool: str | None = None,
        catalog: str | None = None,
        include_dead: bool = False,
        without_vectors: str = "",
        among: frozenset[str] | None = None,
        longer: int = 0,
    ) -> SearchResult:
        """Return the APIs that fit a task or a question, best first.

        Any language and any characters are fine; the first 4,000 characters count. Names of a
        category or tool are taken in any form, a catalog's as it is. ``offset`` leaves out the
        beginning of the list, which is the same whatever the page; it ends where the rankings
        do, after some hundred APIs per part of the text. ``without_vectors`` is a reason to search
        by words alone: neither index nor encoder is waited for, and it becomes ``degraded``. With
        ``among`` only those APIs are found. ``longer``: so many hits from the beginning beside the page.

        Raises UsageError for an empty text, a limit below 1, an offset below 0, a disabled catalog
        or when all are, NotFoundError (with near matches) for an unknown category, tool or catalog.
        """
        if limit < 1:
            raise UsageError(f"a search for {limit} APIs finds nothing", hint="ask for 1 or more")
        if offset < 0:
            raise UsageError(f"a list does not begin at {offset}", hint="begin at 0 or later")
        query = _query(text)
        with self._store.steady():
            place = replace(self._place(category, tool, catalog), among=among)
            named = self._recall.named_ids(query, place)
            # A full name is no text to put right or into English.
            reading = SearchQuery(query) if named else self._reader.read(query)
            parts = with_clauses(reading.text)
            ranked, recalled = self._ranked(parts, place, without_vectors)
            if not recalled.lexicon.ids:
                self._check_any_enabled()
            ranked = named_first(ranked, named, query)
            dead = self._store.dead()
            unwanted = frozenset[str]() if include_dead else frozenset(dead)
            alive = [c for c in ranked if c.api_id not in unwanted] if unwanted else ranked
            ordered = (
                alive
                if named
                else self._covered(alive, parts, place, recalled, unwanted, without_vectors)
            )
            kept, more = self._kept(ordered, reading.text, limit, offset)
            page = kept[offset : offset + limit]
            head = self._kept(ordered, reading.text, longer, 0)[0][:longer] if longer else []
            nothing_fits = not named and self._nothing_fits(kept[:_JUDGED], recalled, reading)
            wider = _wider(place) if nothing_fits else place
            nearby = ordered if wider == place else self._ranked(parts, wider, without_vectors)[0]
            return SearchResult(
                query=query,
                hits=self._hits(page, offset, dead),
                longer=self._hits(head, 0, dead) if head else (),
                nothing_fits=nothing_fits,
                nearest_categories=_categories(nearby),
                offset=offset,
                next_offset=offset + limit if more else None,
                total=None if more else len(kept),
                dead_left_out=0 if include_dead else _left_out(ranked, page, dead),
                hidden_behind={} if catalog is None else self._store.labels.hidden_behind(catalog),
                named=bool(named),
                degraded=recalled.degraded,
                reading=reading,
            )

    def rank(
        self,
        text: str,
        depth: int = DEPTH,
        *,
        category: str | None = None,
        tool: str | None = None,
        catalog: str | None = None,
        among: frozenset[str] | None = None,
    ) -> list[tuple[str, float]]:
        """Return up to ``depth`` (API id, score), best first: the bare ranking.

        What ``search`` starts from, for evaluation: nothing is moved, folded or left out. With
        ``among`` only those APIs are ranked. Raises as ``search`` does.
        """
        query = _query(text)
        with self._store.steady():
            reading = self._reader.read(query)
            place = replace(self._place(category, tool, catalog), among=among)
            ranked, _ = self._ranked(with_clauses(reading.text), place)
        return [(candidate.api_id, candidate.score) for candidate in ranked[:depth]]

    def load(self) -> None:
        """Read the word index, the words and the ranker now rather than with the first search.

        Raises DataError when one of them cannot be read; a search goes on without the ranker.
        """
        self._recall.lexicon()
        self._ranker.load()
        self._reader.load()

    def close(self) -> None:
        """Let go of the threads; no search after this."""
        self._matcher.close()

    def recall(self, text: str, *, words_only: bool = False) -> RecalledApis:
        """Return the candidates of a text with what speaks for each; for training the ranker."""
        parts = with_clauses(self._reader.read(_query(text)).text)
        return self._recall.read(parts, Place(), words_only=words_only)

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return for each API in [0, 1] how well it fits a short clause.

        Mostly cosine similarity, with some idf-weighted word overlap; the overlap alone where the
        encoder cannot be used. Cheap for APIs seen before: their vectors are kept.
        """
        return self._scorer.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return for each API how near a clause is to the nearest request made of it (cosine).

        An API without example requests gets what its score lets expect.
        """
        return self._scorer.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Return whether each API serves a clause of a text, and which words are its values.

        Some milliseconds an API, so for a few; what was matched before is kept. Empty where the
        matcher's files cannot be used.
        """
        try:
            return self._matcher.match(asked, apis)
        except DataError:
            return []

    def _place(self, category: str | None, tool: str | None, catalog: str | None) -> Place:
        if category is not None:
            category = self._store.names.resolve_category(category)
        if tool is not None:
            tool = self._store.names.resolve_tool(tool, category=category)
        if catalog is not None:
            self._check_enabled(catalog)
        return Place(category, tool, catalog)

    def _check_enabled(self, catalog: str) -> None:
        known = {entry.name: entry.enabled for entry in self._store.catalogs()}
        if catalog not in known:
            near = nearest_names(catalog, known)
            hint = (
                f"did you mean {list_names(near)}?"
                if near
                else f"there are {list_names(list(known))}"
            )
            raise NotFoundError(f"no catalog is called {shorten(catalog)!r}", hint=hint)
        if not known[catalog]:
            raise UsageError(
                f"the catalog {catalog!r} is disabled", hint=f"toolsrv catalog enable {catalog}"
            )

    def _check_any_enabled(self) -> None:
        known = self._store.catalogs()
        if known and not any(entry.enabled for entry in known):
            raise UsageError(
                "every catalog is disabled", hint=f"toolsrv catalog enable {known[0].name}"
            )

    def _ranked(
        self, parts: Sequence[str], place: Place, without_vectors: str = ""
    ) -> tuple[list[Candidate], RecalledApis]:
        """Return all that the parts find, best first, each with the part that it fits best."""
        recalled = self._recall.read(parts, place, words_only=bool(without_vectors))
        if without_vectors:
            recalled = replace(recalled, degraded=without_vectors)
        scores, degraded = self._scores(recalled.judged.signals)
        if degraded:
            recalled = replace(recalled, degraded=recalled.degraded or degraded)
        ids, judged = recalled.lexicon.ids, recalled.judged
        order = np.argsort(-scores, kind="stable")
        columns = zip(
            map(ids.__getitem__, judged.places[order].tolist()),
            scores[order].tolist(),
            [rank or None for rank in judged.word_ranks[order].tolist()],
            [rank or None for rank in judged.vector_ranks[order].tolist()],
            nan_to_zero(judged.cosines[order]).tolist(),
            map(parts.__getitem__, judged.parts[order].tolist()),
            strict=True,
        )
        ranked = list(map(Candidate._make, columns))
        return ranked, recalled

    def _covered(
        self,
        ranked: Sequence[Candidate],
        parts: Sequence[str],
        place: Place,
        recalled: RecalledApis,
        unwanted: AbstractSet[str],
        without_vectors: str,
    ) -> list[Candidate]:
        """Return the ranking with every need near the top that has an API which fits it."""
        found = cover_parts(ranked, parts)
        wanted = listed_subtasks(parts)
        if not wanted:
            return found

        def alone(need: str) -> list[Candidate]:
            own, _ = self._ranked([need], place, without_vectors)
            return [one for one in own if one.api_id not in unwanted]

        served = word_shares(
            recalled.lexicon, recalled.judged.places.tolist(), found[:COVERED_HEAD], wanted
        )
        return cover_subtasks(found, wanted, served, alone)

    def _scores(self, signals: Floats) -> tuple[Floats, str]:
        """Return a score per candidate, and why it is a plain one if it is.

        Only the best in a plain order are worth the ranker's time; the others follow behind.
        """
        scores = signals[:, PLAIN].copy()
        if len(scores) > _RANKED:
            best = np.argpartition(-scores, _RANKED)[:_RANKED]
        else:
            best = np.arange(len(scores))
        try:
            ranked = self._ranker.score(signals[best])
        except DataError as error:
            return scores, f"a plain order: {error.message} ({error.hint})"
        if len(best) < len(scores):
            scores *= float(ranked.min()) / max(float(scores.max()), 1e-6)
        scores[best] = ranked
        return scores, ""

    def _kept(
        self, ordered: Sequence[Candidate], text: str, limit: int, offset: int
    ) -> tuple[list[ArrangedApi], bool]:
        """Return the list as far as the page and the verdict need it, and whether it goes on."""
        folder = DuplicateFolder(text)
        step = max(_LEAST_READ, 2 * limit)
        for at in range(0, len(ordered), step):
            part = ordered[at : at + step]
            apis = self._store.get_many([candidate.api_id for candidate in part])
            for candidate in part:
                if candidate.api_id in apis:
                    folder.add(candidate, apis[candidate.api_id])
            if len(folder) > max(offset + limit, _JUDGED):
                break
        return folder.kept(), len(folder) > offset + limit

    def _hits(
        self, page: Sequence[ArrangedApi], offset: int, dead: Mapping[str, str]
    ) -> tuple[Hit, ...]:
        labels = self._store.labels.labels([one.candidate.api_id for one in page])
        return tuple(
            Hit(
                api=one.api,
                rank=rank,
                score=one.candidate.score,
                lexical_rank=one.candidate.lexical_rank,
                dense_rank=one.candidate.dense_rank,
                similarity=one.candidate.similarity,
                matched_words=self._scorer.met(one.candidate.part, one.api),
                clause=one.candidate.part,
                similar=one.similar,
                catalog=labels[one.api.id].catalog if one.api.id in labels else "",
                changed=one.api.id in labels and labels[one.api.id].changed,
                dead=dead.get(one.api.id, ""),
            )
            for rank, one in enumerate(page, start=offset + 1)
        )

    def _nothing_fits(
        self, best: Sequence[ArrangedApi], recalled: RecalledApis, reading: SearchQuery
    ) -> bool:
        """Judge whether even the best hits are unrelated to their parts of the text."""
        nearest = _least_cosine(len(recalled.lexicon.ids))
        for one in best:
            coverage = self._scorer.overlap(one.candidate.part, one.api).coverage
            if reading.unread:
                related = coverage >= _COVERED_UNREAD
            elif recalled.measured:
                cosine = one.candidate.similarity
                related = cosine >= nearest and cosine + _WORDS * coverage >= _RELATED
            else:
                related = coverage >= _COVERED_ALONE
            if related:
                return False
        return True


def _least_cosine(apis: int) -> float:
    """Return the cosine below which the best of so many APIs is likely unrelated."""
    (few, low), (many, high) = _FEW, _MANY
    share = math.log(max(apis, 1) / few) / math.log(many / few)
    return low + (high - low) * min(max(share, 0.0), 1.0)


def _query(text: str) -> str:
    query = text[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8").strip()
    if not query:
        raise UsageError("there is no text to search for", hint="describe the task in words")
    return query


def _categories(ordered: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the categories of the best candidates, those of most of them first."""
    counted = Counter(one.api_id.partition("/")[0] for one in ordered[:_NEAREST])
    return tuple(name for name, _ in counted.most_common(_CATEGORIES))


def _wider(place: Place) -> Place:
    """Return where to look for categories when nothing in a place fits."""
    return Place(catalog=place.catalog) if place.category or place.tool else Place()


def _left_out(
    ranked: Sequence[Candidate], page: Sequence[ArrangedApi], dead: Mapping[str, str]
) -> int:
    """Count the dead APIs that are better than the last of a page; all where it is empty."""
    least = min((one.candidate.score for one in page), default=0.0)
    return sum(one.api_id in dead and one.score >= least for one in ranked) if dead else 0

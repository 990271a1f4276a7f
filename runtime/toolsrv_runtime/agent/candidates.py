"""Candidate APIs of one solve: the retriever port, reranking, and repeated searches.

A solve begins with the best APIs for its task; of the retriever's hits the matcher, which reads
each beside the whole task, ranks those first that the task needs. When all candidates failed, or a
path gave up, it may search again for the uncovered parts, without what was available before.
Working APIs stay, new ones replace the others. Every search is kept for the outcome. Blocks while
it searches; knows no models, calls or trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_registry.search.clauses import clauses
from toolsrv_runtime.contract.hints import NO_HINTS, TaskHints
from toolsrv_runtime.options import EarlierRun
from toolsrv_runtime.outcome import Searched
from toolsrv_runtime.profiles import MAX_CANDIDATES

MOST_RERANKED = 20
"""Hits of a first search that the matcher reads: some milliseconds each."""

NEEDED_LOG_ODDS = 0.0
"""The matcher's log-odds from which on an API comes before those that are merely like the task."""

RETRIEVER_WEIGHT, MATCHER_WEIGHT, OFFSET = 0.6, 0.35, -1.0
"""Logistic regression of "needed" on both log-odds, over the first 20 hits of 546 texts.

Tasks over the catalog that ships, as it is and in other words, ToolBench's development queries and
everyday requests to 16 services, each set weighed alike. NDCG@5 is flat from half this ratio to
twice (docs/evaluation.md).
"""

LEAST_SCORE = 1e-6


class RetrievedApi(Protocol):
    """One search hit."""

    @property
    def api(self) -> Api:
        """What was found."""

    @property
    def score(self) -> float:
        """How well it fits; higher is better."""

    @property
    def clause(self) -> str:
        """The part of the text that it fits best."""


MatchFunction = Callable[[MatchRequest, Sequence[Api]], Sequence[Match]]
FoundT = TypeVar("FoundT", bound=RetrievedApi)


@dataclass(frozen=True, slots=True)
class Ranked(Generic[FoundT]):
    """A hit with the probability that it is needed, in [0, 1]."""

    hit: FoundT
    score: float


class RetrievedApis(Protocol):
    """What a search gives."""

    @property
    def hits(self) -> Sequence[RetrievedApi]:
        """The hits, best first."""

    @property
    def nothing_fits(self) -> bool:
        """Whether even the best hit is likely unrelated."""

    @property
    def nearest_categories(self) -> Sequence[str]:
        """Where the closest APIs lie."""

    @property
    def dead_left_out(self) -> int:
        """How many APIs were left out because they failed when last checked."""

    @property
    def need_consent(self) -> Sequence[str]:
        """Ids of better APIs than the first hit that nobody can be asked about."""

    @property
    def language(self) -> str:
        """English name of the text's language, "" for English and where too little tells."""


@runtime_checkable
class KeyAware(Protocol):
    """What a search gives that knows which APIs fit and lack nothing but credentials."""

    @property
    def need_keys(self) -> Mapping[str, str]:
        """Ids of such APIs, best first -> what each needs (``credentials.missing_credentials``)."""


class ApiRetriever(Protocol):
    """The retriever as a solve uses it."""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """Return the APIs that fit ``text``, best first."""

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values.

        Empty where the matcher cannot be used.
        """


def rerank(hits: Sequence[FoundT], text: str, match: MatchFunction) -> list[Ranked[FoundT]]:
    """Return the hits of a search for a text by the probability that they are needed, best first.

    The retriever's and the matcher's log-odds are added. The matcher reads the first
    ``MOST_RERANKED``; what is behind them stays there, so that a longer list begins with the
    shorter one. A solve and a search by hand both order their hits with it. Where the matcher
    cannot be used all stays as it is.
    """
    matches = match(MatchRequest(text), [hit.api for hit in hits[:MOST_RERANKED]])
    if len(matches) < len(hits[:MOST_RERANKED]):
        return [Ranked(hit, hit.score) for hit in hits]
    read = [
        Ranked(hit, _probability(hit.score, one.serves))
        for hit, one in zip(hits, matches, strict=False)
    ]
    rest = [Ranked(hit, hit.score) for hit in hits[MOST_RERANKED:]]
    return [*sorted(read, key=lambda one: -one.score), *rest]


def _probability(score: float, serves: float) -> float:
    bounded = min(max(score, LEAST_SCORE), 1 - LEAST_SCORE)
    log_odds = math.log(bounded / (1 - bounded))
    return 1 / (1 + math.exp(-(RETRIEVER_WEIGHT * log_odds + MATCHER_WEIGHT * serves + OFFSET)))


def rerank_by_matcher(hits: Sequence[FoundT], text: str, match: MatchFunction) -> list[FoundT]:
    """Return hits in the matcher's order alone: first those that it finds a text to need, best first.

    The others keep their order, and so do all where the matcher cannot be used.
    """
    matches = match(MatchRequest(text), [hit.api for hit in hits])
    needed = {
        hit.api.id: one.serves
        for hit, one in zip(hits, matches, strict=False)
        if one.serves >= NEEDED_LOG_ODDS
    }
    first = [hit for hit in hits if hit.api.id in needed]
    rest = [hit for hit in hits if hit.api.id not in needed]
    return [*sorted(first, key=lambda hit: -needed[hit.api.id]), *rest]


MOST_SEARCHES = 3
"""Searches of one solve, the first included: each one more may lead a hopeless task on."""

MOST_NEW = 3
"""APIs that a search for one subtask adds to the candidates."""


SUBTASK_REASON = "a subtask of the plan"
"""Why a subtask's candidates are searched for."""


class Candidates:
    """The functions of one solve. ``begin`` comes first."""

    def __init__(
        self,
        finder: ApiRetriever,
        task: str,
        limit: int,
        category: str | None,
        *,
        most: int = MAX_CANDIDATES,
        again: bool = True,
        wider: bool = True,
        hints: TaskHints = NO_HINTS,
        earlier: Sequence[EarlierRun] = (),
    ) -> None:
        """Take the task and the retriever; ``again`` False makes the first search the only one.

        ``limit`` APIs are available first, and never more than ``most`` at once (``limited_to`` is
        ``most`` where ``limit`` is more, else 0). ``wider`` False keeps the hits of the retriever
        in its order. The APIs that ``earlier`` runs called are candidates too, last.
        """
        self._earlier = earlier
        self._finder = finder
        self._task = task
        self._hints = hints
        self._query = hints.query(task)
        self._limit = min(limit, most)
        self._room = most
        self.limited_to = most if limit > most else 0
        self._category = category
        self._most = MOST_SEARCHES if again else 1
        self._wider = wider
        self._parts: dict[str, str] = {}
        self._all = FunctionList([])
        self._shown: tuple[str, ...] = ()
        self.searches: list[Searched] = []
        self.fits = True
        self.nearest: tuple[str, ...] = ()
        self.dead_left_out = 0
        self.need_consent: tuple[str, ...] = ()
        self.need_keys: dict[str, str] = {}
        self.language = ""

    @property
    def all(self) -> FunctionList:
        """Every function that was ever available; a name keeps its API for the whole solve."""
        return self._all

    @property
    def available(self) -> tuple[Function, ...]:
        """The functions that are available now."""
        by_id = {function.api.id: function for function in self._all}
        return tuple(by_id[api_id] for api_id in self._shown)

    def begin(self) -> Searched:
        """Search for the whole task.

        Raises:
            NotFoundError: the category is unknown.
        """
        wide = max(MOST_RERANKED, self._limit) if self._wider else self._limit
        extra = self._hints.extra_queries(self._task) if self._wider else ()
        text = ". ".join((self._query, *self._hints.expansion(self._task), *extra))
        found = self._finder.search(text, wide, category=self._category)
        self.fits = bool(found.hits) and not found.nothing_fits
        self.nearest = tuple(found.nearest_categories[:3])
        self.dead_left_out = found.dead_left_out
        self.need_consent = tuple(found.need_consent)
        self.need_keys = dict(found.need_keys) if isinstance(found, KeyAware) else {}
        self.language = found.language
        hits = self._ordered(found.hits, self._task)
        for question in extra:
            first = rerank_by_matcher(found.hits, question, self._finder.match)[:1]
            hits = [*first, *(hit for hit in hits if hit not in first)]
        again = self._called_before({hit.api.id for hit in hits[: self._limit]})
        kept = hits[: max(0, min(self._limit, self._room - len(again)))]
        return self._take(self._query, [*kept, *again], "")

    def _ordered(self, hits: Sequence[RetrievedApi], text: str) -> list[RetrievedApi]:
        if not self._wider:
            return list(hits)
        return [one.hit for one in rerank(hits, text, self._finder.match)]

    def _called_before(self, offered: Collection[str]) -> list[RetrievedApi]:
        """Return hits for APIs that earlier runs called and ``offered`` lacks, the last run's first."""
        found: dict[str, RetrievedApi] = {}
        for run in reversed(self._earlier):
            called = {call.api_id for call in run.calls}
            text = self._hints.query(run.task)
            wide = max(MOST_RERANKED, self._limit)
            for hit in self._finder.search(text, wide, category=self._category).hits:
                if hit.api.id in called and hit.api.id not in offered:
                    found.setdefault(hit.api.id, hit)
        return list(found.values())[: self._room // 2]

    def may_search(self) -> bool:
        """Whether another search is left, and the catalog had anything for the task at all."""
        made = sum(one.reason != SUBTASK_REASON for one in self.searches)
        return self.fits and made < self._most

    def all_failed(self, failed: Collection[str]) -> bool:
        """Whether all available APIs have failed (API ids)."""
        return bool(self._shown) and all(api_id in failed for api_id in self._shown)

    def again(self, worked: Collection[str], failed: Collection[str], reason: str) -> bool:
        """Search for the rest of the task and add the hits; return whether there are any.

        ``worked`` and ``failed`` are ids of called APIs; what failed goes, what worked stays, and
        what was not called stays where there is room.
        """
        if not self.may_search():
            return False
        known = {function.api.id for function in self._all}
        text = self._left(worked)
        found = self._finder.search(text, self._limit + len(known), category=self._category)
        fresh = [hit.api.id for hit in found.hits if hit.api.id not in known]
        stays = [api_id for api_id in self._shown if api_id in worked]
        if found.nothing_fits or not fresh:
            self.searches.append(Searched(query=text, reason=reason, api_ids=(), scores=()))
            return False
        room = min(max(self._limit, len(stays) + 1), self._room) - len(stays)
        self._take(text, [hit for hit in found.hits if hit.api.id not in known][:room], reason)
        idle = [i for i in self._shown if i not in worked and i not in failed]
        self._shown = tuple([*stays, *fresh[:room], *idle][: len(stays) + room])
        return True

    def search_for(self, part: str, stays: Collection[str], reason: str) -> bool:
        """Search for what no available function does; return whether that helped.

        What is found takes the last places but those of the ids in ``stays``, so that every other
        function keeps its number. ``reason`` is kept with the search.
        """
        if not self.may_search():
            return False
        known = {function.api.id for function in self._all}
        wide = max(MOST_RERANKED, MOST_NEW + len(known)) if self._wider else MOST_NEW + len(known)
        found = self._finder.search(self._hints.query(part), wide, category=self._category)
        hits = [hit for hit in found.hits if hit.api.id not in known]
        hits = self._ordered(hits, part)[:MOST_NEW]
        fresh = [hit.api.id for hit in hits]
        if found.nothing_fits or not fresh:
            self.searches.append(Searched(query=part, reason=reason, api_ids=(), scores=()))
            return False
        self._take(part, hits, reason)
        places: list[str] = [*self._shown, *[""] * (self._room - len(self._shown))]
        free = [at for at, api_id in enumerate(places) if api_id not in stays]
        for at, api_id in zip(sorted(free[-len(fresh) :]), fresh, strict=False):
            places[at] = api_id
        self._shown = tuple(api_id for api_id in places if api_id)
        return True

    def for_part(self, part: str) -> tuple[Function, ...]:
        """Search for a subtask; return its candidates, or the available ones without a hit."""
        wide = max(MOST_RERANKED, self._limit) if self._wider else self._limit
        found = self._finder.search(self._hints.query(part), wide, category=self._category)
        hits = self._ordered(found.hits, part)[: self._limit]
        if found.nothing_fits or not hits:
            self.searches.append(Searched(query=part, reason=SUBTASK_REASON, api_ids=(), scores=()))
            return self.available
        self._take(part, hits, SUBTASK_REASON)
        by_id = {function.api.id: function for function in self._all}
        return tuple(by_id[hit.api.id] for hit in hits)

    def keep(self, api_ids: Collection[str]) -> None:
        """Put the candidates of subtasks first, then those that are available now."""
        known = {function.api.id for function in self._all}
        first = [one for one in dict.fromkeys(api_ids) if one in known]
        self._shown = tuple(dict.fromkeys([*first, *self._shown]))[: self._room]

    def _take(self, text: str, hits: Sequence[RetrievedApi], reason: str) -> Searched:
        """Put new hits on the list and keep the search."""
        self._parts.update((hit.api.id, hit.clause) for hit in hits)
        if not self.searches:
            self._shown = tuple(hit.api.id for hit in hits)
        known = {function.api.id for function in self._all}
        fresh = [hit.api for hit in hits if hit.api.id not in known]
        self._all = FunctionList([*(f.api for f in self._all), *fresh])
        searched = Searched(
            query=text,
            reason=reason,
            api_ids=tuple(hit.api.id for hit in hits),
            scores=tuple(round(float(hit.score), 4) for hit in hits),
        )
        self.searches.append(searched)
        return searched

    def _left(self, worked: Collection[str]) -> str:
        """Return the parts of the task that no working API was found for; all where none is."""
        served = {self._parts.get(api_id, "") for api_id in worked}
        left = [part for part in clauses(self._query) if part not in served]
        return "; ".join(left) or self._query

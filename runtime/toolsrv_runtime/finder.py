"""The retriever as a solve uses it, and the order in which its hits are offered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Asked, Match

READ = 20
"""Hits of a first search that the matcher reads: some milliseconds each."""

NEEDED = 0.0
"""The matcher's log-odds from which on an API comes before those that are merely like the task."""

RETRIEVER_WEIGHT, MATCHER_WEIGHT, OFFSET = 0.6, 0.35, -1.0
"""Logistic regression of "needed" on both log-odds, over the first 20 hits of 546 texts.

Tasks over the catalog that ships, as it is and in other words, ToolBench's development queries and
everyday requests to 16 services, each set weighed alike. NDCG@5 is flat from half this ratio to
twice (docs/evaluation.md).
"""

LEAST_SCORE = 1e-6


class Found(Protocol):
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


Matching = Callable[[Asked, Sequence[Api]], Sequence[Match]]
FoundT = TypeVar("FoundT", bound=Found)


@dataclass(frozen=True, slots=True)
class Ranked(Generic[FoundT]):
    """A hit with the probability that it is needed, in [0, 1]."""

    hit: FoundT
    score: float


class FoundList(Protocol):
    """What a search gives."""

    @property
    def hits(self) -> Sequence[Found]:
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
        """Ids of such APIs, best first -> what each needs (``calls.auth.lacking``)."""


class Finder(Protocol):
    """The retriever as a solve uses it."""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> FoundList:
        """Return the APIs that fit ``text``, best first."""

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def likeness(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values.

        Empty where the matcher cannot be used.
        """


def reranked(hits: Sequence[FoundT], text: str, match: Matching) -> list[Ranked[FoundT]]:
    """Return the hits of a search for a text by the probability that they are needed, best first.

    The retriever's and the matcher's log-odds are added. The matcher reads the first ``READ``; what is
    behind them stays there, so that a longer list begins with the shorter one. A solve and a search
    by hand both order their hits with it. Where the matcher cannot be used all stays as it is.
    """
    matches = match(Asked(text), [hit.api for hit in hits[:READ]])
    if len(matches) < len(hits[:READ]):
        return [Ranked(hit, hit.score) for hit in hits]
    read = [
        Ranked(hit, _probability(hit.score, one.serves))
        for hit, one in zip(hits, matches, strict=False)
    ]
    rest = [Ranked(hit, hit.score) for hit in hits[READ:]]
    return [*sorted(read, key=lambda one: -one.score), *rest]


def _probability(score: float, serves: float) -> float:
    bounded = min(max(score, LEAST_SCORE), 1 - LEAST_SCORE)
    log_odds = math.log(bounded / (1 - bounded))
    return 1 / (1 + math.exp(-(RETRIEVER_WEIGHT * log_odds + MATCHER_WEIGHT * serves + OFFSET)))


def needed_first(hits: Sequence[FoundT], text: str, match: Matching) -> list[FoundT]:
    """Return hits in the matcher's order alone: first those that it finds a text to need, best first.

    The others keep their order, and so do all where the matcher cannot be used.
    """
    matches = match(Asked(text), [hit.api for hit in hits])
    needed = {
        hit.api.id: one.serves
        for hit, one in zip(hits, matches, strict=False)
        if one.serves >= NEEDED
    }
    first = [hit for hit in hits if hit.api.id in needed]
    rest = [hit for hit in hits if hit.api.id not in needed]
    return [*sorted(first, key=lambda hit: -needed[hit.api.id]), *rest]

"""Candidates of a solve: APIs that can be called.

An API that is going to be refused, or whose key is missing, would cost a place and a step for
nothing. What is left out may still be searched, described and called by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from toolsrv_catalogs.offline import OFFLINE_CATALOG
from toolsrv_registry.matcher import MatchRequest
from toolsrv_runtime.agent.candidates import MOST_RERANKED, NEEDED_LOG_ODDS

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_registry.matcher import Match
    from toolsrv_registry.registry import Registry
    from toolsrv_registry.search.retriever import Hit, SearchResult

NAMED = 3
"""APIs without credentials that are named."""

WIDER = 4
"""So many times as many APIs are looked at as are wanted, when there are other catalogs."""


class CallableRetriever:
    """The registry's retriever, kept to what can be called where there are several catalogs.

    Without ``can_call`` that is the catalog that ships. ``on_a_yes`` says what could be called if a
    person were asked: what fits best of that and is left out is named. So is what fits and lacks
    credentials, which ``lacks`` tells. ``as_called`` returns an API without the parameters that are
    fixed for its catalog. ``equals`` puts hits that fit equally well in order.
    """

    def __init__(
        self,
        registry: Registry,
        can_call: Callable[[Api], bool] | None = None,
        on_a_yes: Callable[[Api], bool] | None = None,
        lacks: Callable[[Api], str] | None = None,
        as_called: Callable[[Api], Api] = lambda api: api,
        equals: Callable[[Sequence[Hit]], list[Hit]] | None = None,
    ) -> None:
        self._registry = registry
        self._can_call = can_call
        self._on_a_yes = on_a_yes
        self._lacks = lacks
        self._as_called = as_called
        self._equals = equals or list

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> SearchResult:
        """Return the callable APIs that fit ``text``, best first."""
        found = self._search(text, limit, category)
        apis = [self._as_called(hit.api) for hit in found.hits]
        hits = [
            hit if hit.api is api else hit.model_copy(update={"api": api})
            for hit, api in zip(found.hits, apis, strict=True)
        ]
        return found.model_copy(update={"hits": tuple(hits)})

    def _search(self, text: str, limit: int, category: str | None) -> SearchResult:
        find = self._registry.retriever.search
        enabled = {one.name for one in self._registry.store.catalogs() if one.enabled}
        if OFFLINE_CATALOG not in enabled or len(enabled) < 2:
            alone = find(text, limit, category=category)
            if enabled == {OFFLINE_CATALOG}:
                return alone
            return alone.model_copy(
                update={
                    "hits": tuple(self._equals(alone.hits)),
                    "need_keys": self._need_keys(alone, text),
                }
            )
        if self._can_call is None:
            return find(text, limit, category=category, catalog=OFFLINE_CATALOG)
        wide = find(text, limit * WIDER, category=category)
        found = [(hit, self._can_call(hit.api)) for hit in wide.hits]
        better = [hit for hit, _ in takewhile(lambda one: not one[1], found)]
        consent = self._on_a_yes or (lambda _: False)
        asked = tuple(hit.api.id for hit in better if consent(hit.api))
        keys = self._need_keys(wide, text)
        hits = self._equals([hit for hit, can in found if can][:limit])
        if len(hits) < limit:
            own = find(text, limit, category=category, catalog=OFFLINE_CATALOG)
            if not hits:
                return own.model_copy(update={"need_consent": asked, "need_keys": keys})
            known = {hit.api.id for hit in hits}
            hits += [hit for hit in own.hits if hit.api.id not in known][: limit - len(hits)]
        return wide.model_copy(
            update={
                "hits": tuple(hits),
                "next_offset": None,
                "need_consent": asked,
                "need_keys": keys,
            }
        )

    def _need_keys(self, found: SearchResult, text: str) -> dict[str, str]:
        """Return what fits and lacks credentials, at most ``NAMED``: id -> what it needs.

        That is what fits best of all, and what the matcher finds needed.
        """
        can_call, lacks = self._can_call, self._lacks
        if can_call is None or lacks is None or found.nothing_fits:
            return {}
        hits = found.hits[:MOST_RERANKED]
        needs = {hit.api.id: "" if can_call(hit.api) else lacks(hit.api) for hit in hits}
        if not any(needs.values()):
            return {}
        first = {hit.api.id for hit in hits[:1] if not can_call(hit.api)}
        matches = self.match(MatchRequest(text), [hit.api for hit in hits])
        fits = first | {
            hit.api.id
            for hit, match in zip(hits, matches, strict=False)
            if match.serves >= NEEDED_LOG_ODDS
        }
        named = [(one, lack) for one, lack in needs.items() if lack and one in fits]
        return dict(named[:NAMED])

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._registry.retriever.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self._registry.retriever.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Return whether each API serves a clause of a text, and which words are its values."""
        return self._registry.retriever.match(asked, apis)

"""What is offered in one task: what the retriever finds, with the APIs that the task needs.

ToolLLM's annotator was given lists that hold the relevant APIs; so the first search of a task finds
those of its assignment, between what the retriever finds, or its file's candidates. Later searches
are the retriever's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Asked, Match
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApi, RetrievedApis

_MORE = 4  # so many times more is asked for where hits of other catalogs are left out


@dataclass(frozen=True, slots=True)
class Listed:
    """One hit."""

    api: Api
    score: float
    clause: str


@dataclass(frozen=True, slots=True)
class Lists:
    """A list of hits."""

    hits: Sequence[RetrievedApi]
    nothing_fits: bool
    nearest_categories: Sequence[str] = ()
    dead_left_out: int = 0
    need_consent: Sequence[str] = ()
    language: str = ""


class CatalogSearch(Protocol):
    """The retriever as it is used here."""

    def search(
        self, text: str, limit: int = 5, *, category: str | None = None, catalog: str | None = None
    ) -> RetrievedApis:
        """Return the APIs that fit ``text``, best first."""

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def likeness(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values."""


class CatalogFinder:
    """A retriever kept to some APIs (``ids``), all of ``catalog`` where that is one."""

    def __init__(
        self, retriever: CatalogSearch, ids: Collection[str], catalog: str | None = None
    ) -> None:
        self._retriever = retriever
        self._ids = ids
        self._catalog = catalog

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """Return the APIs that fit ``text``, best first."""
        wanted = limit if self._catalog else _MORE * limit
        found = self._retriever.search(text, wanted, category=category, catalog=self._catalog)
        hits = [hit for hit in found.hits if hit.api.id in self._ids][:limit]
        return Lists(hits, found.nothing_fits, found.nearest_categories, found.dead_left_out)

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._retriever.affinity(text, apis)

    def likeness(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self._retriever.likeness(text, apis)

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values."""
        return self._retriever.match(asked, apis)


class Listing:
    """A finder whose first search finds what it is told to.

    ``wanted`` are found; ``hidden`` ids are not; ``beside`` maps an API's id to one that stands
    after it; ``candidates`` take the place of what the retriever finds.
    """

    def __init__(
        self,
        finder: ApiRetriever,
        wanted: Sequence[Api],
        *,
        hidden: Collection[str] = (),
        beside: Mapping[str, Api] | None = None,
        candidates: Sequence[Api] = (),
    ) -> None:
        self._finder = finder
        self._wanted = [api for api in wanted if api.id not in hidden]
        self._hidden = hidden
        self._beside = beside or {}
        self._candidates = candidates
        self._begun = False

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """Return the APIs that fit ``text``, best first; the first time those of the task too."""
        if self._begun:
            return self._finder.search(text, limit, category=category)
        self._begun = True
        most = max(limit, len(self._wanted) + len(self._beside))
        found = self._finder.search(text, most + len(self._hidden), category=category)
        hits: list[RetrievedApi] = [hit for hit in found.hits if hit.api.id not in self._hidden]
        if self._candidates:
            hits = [
                Listed(api, 0.0, text) for api in self._candidates if api.id not in self._hidden
            ]
        nothing = found.nothing_fits and not self._wanted
        return Lists(self._with_wanted(hits, text, most), nothing, found.nearest_categories)

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._finder.affinity(text, apis)

    def likeness(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self._finder.likeness(text, apis)

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values."""
        return self._finder.match(asked, apis)

    def _with_wanted(
        self, hits: Sequence[RetrievedApi], text: str, most: int
    ) -> list[RetrievedApi]:
        """Return ``most`` hits: the wanted ones at their places, else in the places of the last."""
        wanted = {api.id for api in self._wanted}
        room = most - len(self._beside) - len(self._wanted)
        others = {hit.api.id for hit in [h for h in hits if h.api.id not in wanted][:room]}
        kept = [hit for hit in hits if hit.api.id in others | wanted]
        there = {hit.api.id for hit in kept}
        kept += [Listed(api, 0.0, text) for api in self._wanted if api.id not in there]
        found: list[RetrievedApi] = []
        for hit in kept:
            found.append(hit)
            if (twin := self._beside.get(hit.api.id)) is not None:
                found.append(Listed(twin, hit.score, hit.clause))
        return found

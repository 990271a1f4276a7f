"""Environment of one task: the APIs that are available, and results of their calls.

Real APIs answer for themselves; other responses are invented. Failures are scheduled.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolsrv_lab.given_apis import GivenApi, GivenApis
from toolsrv_lab.nano.world import Answer, World
from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApi, RetrievedApis
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.result import Consent, Spool
from toolsrv_runtime.errors import ArgumentError

_MORE = 4  # so many times more is asked for where hits of other catalogs are left out


class CatalogSearch(Protocol):
    """The retriever as it is used here."""

    def search(
        self, text: str, limit: int = 5, *, category: str | None = None, catalog: str | None = None
    ) -> RetrievedApis:
        """Return the APIs that fit ``text``, best first."""

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
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
        return GivenApis(hits, found.nothing_fits, found.nearest_categories, found.dead_left_out)

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._retriever.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self._retriever.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
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
                GivenApi(api, 0.0, text) for api in self._candidates if api.id not in self._hidden
            ]
        nothing = found.nothing_fits and not self._wanted
        return GivenApis(self._with_wanted(hits, text, most), nothing, found.nearest_categories)

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self._finder.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self._finder.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
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
        kept += [GivenApi(api, 0.0, text) for api in self._wanted if api.id not in there]
        found: list[RetrievedApi] = []
        for hit in kept:
            found.append(hit)
            if (twin := self._beside.get(hit.api.id)) is not None:
                found.append(GivenApi(twin, hit.score, hit.clause))
        return found


@dataclass(frozen=True, slots=True)
class Scene:
    """What is so in one task.

    ``down`` are ids of APIs that fail, ``twins`` maps a twin's id to the API it stands in for,
    ``fields`` an API's id to a field that a later step needs of it.
    """

    seed: str
    down: frozenset[str] = frozenset()
    twins: Mapping[str, Api] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)


class PlayedCaller(Caller):
    """Calls the APIs with the ids ``real`` through another caller, and plays the others."""

    def __init__(self, caller: Caller, real: Collection[str], world: World, scene: Scene) -> None:
        super().__init__(transports={})
        self._through = caller
        self._real = real
        self._world = world
        self._scene = scene

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call or play ``api``; see ``Caller.call``."""
        scene = self._scene
        try:
            bound = args.bind(api, arguments)
        except ArgumentError as error:
            return self._refused(api, dict(arguments), "bad_arguments", error)
        key = json.dumps([scene.seed, api.id, bound], sort_keys=True)
        rng = random.Random(key)
        if api.id in scene.down:
            return _result(api, bound, self._world.failure(rng))
        origin = scene.twins.get(api.id, api)
        if origin.id in self._real:
            result = await self._through.call(
                origin, arguments, tainted=tainted, consent=consent, spool=spool
            )
            return result.model_copy(update={"api_id": api.id})
        wanted = scene.fields.get(origin.id, "")
        return _result(api, bound, self._world.call(origin, {}, rng, with_field=wanted))


def _result(api: Api, bound: dict[str, Any], answer: Answer) -> CallResult:
    status = 200 if not answer.error else 404 if "404" in answer.error else 503
    return CallResult(
        api_id=api.id,
        arguments=bound,
        url=api.url,
        status=status,
        response=answer.response,
        error=answer.error,
        source="simulated",
        seconds=0.0,
    )

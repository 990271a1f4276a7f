"""Samples of requests: which API serves a clause, without where its values stand.

Requests say which words ask for which API and nothing of values. An API stands beside others of its
own service and the nearest ones of all; what says nearly the same in other words serves as well and
stands against nothing. Seeded.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from toolsrv_lab.matching.samples import Sample, blurred
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import Encoder

# Cosines: nearer than these two APIs serve the same, may serve the same, are surely two things.
_SAME, _MAY_SERVE, _OTHER = 0.9, 0.85, 0.78
_NEAREST = 60
_BLOCK = 1_000
_OTHERS = 6
_WHOLE = 0.3
"""Share of the clauses that come as a whole text too."""
_UNSERVED = 0.14
"""Share of the clauses that come again with nothing beside them that serves them."""


class Asked(NamedTuple):
    """A text, and API id -> the words of it that ask for that API."""

    text: str
    needs: Mapping[str, str]


class _Near(NamedTuple):
    """Of an API: others of its service, the nearest of all, those surely different, and its like."""

    own: list[int]
    far: list[int]
    different: list[int]
    alike: set[int]


class Choices:
    """APIs, what is near each, and samples of texts that ask for them.

    ``service`` names what an API is of; ``held`` says which APIs nothing is learnt of: what is
    held out stands beside its like alone, and so does the rest.
    """

    def __init__(
        self,
        apis: Sequence[Api],
        encoder: Encoder,
        *,
        service: Callable[[Api], Hashable],
        held: Callable[[Api], bool] = lambda _: False,
    ) -> None:
        self._apis = apis
        self._at = {api.id: at for at, api in enumerate(apis)}
        self._services = [service(api) for api in apis]
        self._held = np.array([held(api) for api in apis], bool)
        self._vectors = encoder.encode([document_text(api) for api in apis])
        self._members: dict[Hashable, list[int]] = defaultdict(list)
        for at, one in enumerate(self._services):
            self._members[one].append(at)
        self._near: dict[int, _Near] = {}

    def samples(self, asked: Sequence[Asked], seed: str) -> Iterator[tuple[bool, Sample]]:
        """Yield samples of texts, and with each whether it is held out."""
        self._find_near(sorted({self._at[one] for text in asked for one in text.needs}))
        rng = random.Random(seed)
        for one in asked:
            places = {self._at[api] for api in one.needs}
            held = bool(self._held[list(places)].any())
            for api, words in one.needs.items():
                begin, said = one.text.find(words), words.rstrip(" .?!")
                if begin < 0 or not said or (held and not self._held[self._at[api]]):
                    continue
                clause = begin, begin + len(said)
                for sample in self._of_clause(one, api, clause, held, rng):
                    yield held, sample

    def _of_clause(
        self, asked: Asked, api: str, clause: tuple[int, int], held: bool, rng: random.Random
    ) -> Iterator[Sample]:
        text = asked.text
        told = clause if held else blurred(text, clause, rng)
        rest = self._elsewhere(asked, api)
        rng.shuffle(rest)
        others = dict.fromkeys([*rest[:2], *self._others(asked, api, rng)])
        if others:
            yield Sample(text=text, clause=told, api=api, others=tuple(others))
        if held or rng.random() < _WHOLE:
            beside = tuple(self._others(asked, api, rng))
            if beside:
                yield Sample(text=text, clause=clause, api=api, others=beside, whole=True)
        if rng.random() < _UNSERVED:
            beside = tuple(self._wrong(asked, api, rng))
            whole = rng.random() < 0.5
            told = clause if whole or held else blurred(text, clause, rng)
            if beside:
                yield Sample(text=text, clause=told, api="", others=beside, whole=whole)

    def _elsewhere(self, asked: Asked, api: str) -> list[str]:
        """Return what other words of a text ask for: the hardest others of all."""
        words, alike = asked.needs[api], self._near[self._at[api]].alike
        return [
            one
            for one, said in asked.needs.items()
            if one != api and words not in said and said not in words and self._at[one] not in alike
        ]

    def _others(self, asked: Asked, api: str, rng: random.Random) -> list[str]:
        """Return APIs that serve nothing of a text, some of the same service among them."""
        near, serves = self._near[self._at[api]], self._serving(asked)
        rest = near.own[4:]
        own = [*near.own[:4], *rng.sample(rest, min(len(rest), _OTHERS))]
        far = near.far[: 2 * _OTHERS]
        rng.shuffle(own)
        rng.shuffle(far)
        taken = own[: _OTHERS - bool(far)]
        some = [*taken, *far][:_OTHERS]
        return [self._apis[at].id for at in some if at not in serves]

    def _wrong(self, asked: Asked, api: str, rng: random.Random) -> list[str]:
        """Return two or three APIs that surely serve nothing of a text."""
        near, serves = self._near[self._at[api]], self._serving(asked)
        own = [at for at in near.own[:8] if self._differs(at, asked)]
        far = [at for at in near.different[:15] if self._differs(at, asked)]
        rng.shuffle(own)
        rng.shuffle(far)
        some = [*own[:2], *far][: rng.choice((2, 3))]
        return [self._apis[at].id for at in some if at not in serves]

    def _serving(self, asked: Asked) -> set[int]:
        """Return all that serves a text: what it asks for, and what says the same."""
        places = {self._at[one] for one in asked.needs}
        return places.union(*(self._near[at].alike for at in places))

    def _differs(self, at: int, asked: Asked) -> bool:
        needed = [self._at[one] for one in asked.needs]
        return bool((self._vectors[needed] @ self._vectors[at] < _MAY_SERVE).all())

    def _find_near(self, places: Sequence[int]) -> None:
        """Find what is near some APIs, a block at a time."""
        for begin in range(0, len(places), _BLOCK):
            some = places[begin : begin + _BLOCK]
            scores = self._vectors[some] @ self._vectors.T
            for at, row in zip(some, scores, strict=True):
                self._near[at] = self._near_one(at, row.tolist(), row)

    def _near_one(self, at: int, told: Sequence[float], scores: np.ndarray) -> _Near:
        def fits(other: int, most: float) -> bool:
            same = does_the_same(self._apis[at], self._apis[other])
            return other != at and told[other] < most and not same

        service = self._services[at]
        own = [one for one in self._members[service] if fits(one, _SAME)]
        own.sort(key=lambda one: -told[one])
        wanted = min(_NEAREST, len(told))
        top: Collection[int] = np.argpartition(-scores, wanted - 1)[:wanted].tolist()
        far = [
            one
            for one in sorted(top, key=lambda one: -told[one])
            if self._services[one] != service
            and self._held[one] == self._held[at]
            and fits(one, _MAY_SERVE)
        ]
        alike = set(np.nonzero(scores >= _SAME)[0].tolist())
        return _Near(own, far, [one for one in far if told[one] < _OTHER], alike)

"""What the matcher says of one part of a task: which function serves it, where its values stand.

Pure but for the matcher. Where that cannot be used it says nothing: neither for nor against.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import cached_property

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Asked, Match, Slot, Span
from toolsrv_runtime.formats import cues
from toolsrv_runtime.formats.base import Prior
from toolsrv_runtime.formats.scene import Scene

SEEN = 24
"""Facts of earlier responses that the matcher sees."""

FAR_BEHIND = 5.0
"""Nats behind the likeliest words, or behind having no value, from which words are no value."""

RIVAL = 6.0
"""Nats that words lose as the value of a parameter where another one of the call takes them."""

WIDTH, CHOICES = 24, 5
"""How many choices of words for a whole call are followed, and how many words for each slot."""

_EDGES = " ,;:.!?\"'“”()"


class Matched:
    """The matches of the functions on offer with one part; see the module."""

    def __init__(self, scene: Scene, part: str, prior: Prior | None) -> None:
        self._scene = scene
        self._prior = prior
        begin = scene.task.find(part) if part else -1
        clause = (begin, begin + len(part)) if begin >= 0 else (0, len(scene.task))
        self._asked = Asked(scene.task, clause, scene.seen[:SEEN])
        self._taken: dict[str, dict[str, Span | None]] = {}

    def serves(self, api: Api) -> float:
        """Return the log-odds that an API serves the part, 0.0 where nothing is known."""
        match = self._matches.get(api.id)
        return match.serves if match else 0.0

    def given(self, api: Api, parameter: Parameter) -> float | None:
        """Return the log-odds that a parameter's value is stated, None where nothing is known."""
        slot = self._slot(api, parameter)
        if slot is None:
            return None
        best = self._ranked(api, parameter)
        return best[0].score - slot.none if best else -math.inf

    def values(self, api: Api, parameter: Parameter) -> list[str]:
        """Return the words that are likeliest a parameter's value, best first."""
        slot = self._slot(api, parameter)
        if slot is None:
            return []
        found = self._ranked(api, parameter)
        least = max(found[0].score if found else 0.0, slot.none) - FAR_BEHIND
        said = [self._words(span) for span in found if span.score >= least]
        return list(dict.fromkeys(one for one in said if one))

    def score(self, api: Api, parameter: Parameter, value: str) -> float:
        """Return the log-probability that ``value`` is the parameter's, -inf where it is unseen.

        Words that another parameter of the call is likelier to take lose by it.
        """
        slot = self._slot(api, parameter)
        if slot is None or not value:
            return -math.inf
        places = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
        spans = [
            Span(source, match.start(), match.end(), slot.score(source, match.start(), match.end()))
            for source, text in enumerate(self._texts)
            for match in places.finditer(text)
        ]
        return max((self._left(api, parameter, one).score for one in spans), default=-math.inf)

    def within(self, api: Api, parameter: Parameter, value: str) -> float:
        """Return the log-probability of the likeliest words that ``value`` holds, or is.

        For a value that is whole by its form: of "6 ft 2 in" the matcher may mean "6 ft".
        """
        held = [one.score for one in self._ranked(api, parameter) if self._words(one) in value]
        return max([self.score(api, parameter, value), *held])

    def is_told_by(self, api: Api) -> bool:
        """Whether the part itself states a value for a parameter of an API."""
        begin, end = self._asked.clause
        spans = [span for span in self._assigned(api).values() if span is not None]
        return any(one.source == 0 and begin <= one.begin and one.end <= end for one in spans)

    def listed(self, api: Api, parameter: Parameter, taken: Collection[str] = ()) -> str:
        """Return the allowed value that the likeliest words name, "" where they name none or two.

        ``taken`` are values of other parameters, passed over.
        """
        for words in self.values(api, parameter)[:2]:
            named = [value for value in parameter.enum if cues.mentions(words, value)]
            whole = [v for v in named if not any(v != other and v in other for other in named)]
            free = [value for value in whole if value not in taken]
            if len(free) == 1:
                return free[0]
        return ""

    @cached_property
    def _matches(self) -> dict[str, Match]:
        apis = [offer.function.api for offer in self._scene.offers]
        found = self._prior.match(self._asked, apis) if self._prior else ()
        return {api.id: match for api, match in zip(apis, found, strict=False)}

    @cached_property
    def _texts(self) -> list[str]:
        return [self._asked.text, *(value for _, value in self._asked.facts)]

    def _slot(self, api: Api, parameter: Parameter) -> Slot | None:
        match = self._matches.get(api.id)
        return match.parameters.get(parameter.name) if match else None

    def _ranked(self, api: Api, parameter: Parameter) -> list[Span]:
        """Return the likeliest words for a parameter beside what the others take, best first."""
        slot = self._slot(api, parameter)
        spans = [self._left(api, parameter, one) for one in slot.best()] if slot else []
        return sorted(spans, key=lambda one: -one.score)

    def _left(self, api: Api, parameter: Parameter, span: Span) -> Span:
        """Return the words with what they lose where they are another parameter's."""
        rivals = [one for name, one in self._assigned(api).items() if name != parameter.name]
        taken = any(one is not None and _overlap(one, span) for one in rivals)
        return span._replace(score=span.score - RIVAL) if taken else span

    def _assigned(self, api: Api) -> dict[str, Span | None]:
        """Return the likeliest words for all parameters together, no word for two of them."""
        if api.id not in self._taken:
            match = self._matches.get(api.id)
            self._taken[api.id] = _assign(match.parameters) if match else {}
        return self._taken[api.id]

    def _words(self, span: Span) -> str:
        return self._texts[span.source][span.begin : span.end].strip(_EDGES)


def _assign(slots: Mapping[str, Slot]) -> dict[str, Span | None]:
    """Return the likeliest choice of one run of words, or none, for each slot, none overlapping.

    A beam: O(slots * WIDTH * CHOICES).
    """
    beam: list[tuple[float, tuple[Span | None, ...]]] = [(0.0, ())]
    for slot in slots.values():
        grown = []
        for score, chosen in beam:
            grown.append((score + slot.none, (*chosen, None)))
            grown += [
                (score + span.score, (*chosen, span))
                for span in slot.best(CHOICES)
                if not any(one is not None and _overlap(one, span) for one in chosen)
            ]
        beam = sorted(grown, key=lambda one: -one[0])[:WIDTH]
    return dict(zip(slots, beam[0][1], strict=True))


def _overlap(one: Span, other: Span) -> bool:
    return one.source == other.source and one.begin < other.end and other.begin < one.end

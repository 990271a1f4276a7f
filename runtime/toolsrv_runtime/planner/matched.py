"""What the matcher says of one part of a task: which function serves it, where its values stand.

Pure but for the matcher. Where that cannot be used it says nothing: neither for nor against.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping
from functools import cached_property

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Match, MatchRequest, Slot, Span
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.planner.reading.measures import may_be
from toolsrv_runtime.planner.scene import Scene
from toolsrv_runtime.values import kinds

SEEN = 24
"""Facts of earlier responses that the matcher sees."""

FAR_BEHIND = 5.0
"""Nats behind the likeliest words, or behind having no value, from which words are no value."""

RIVAL = 6.0
"""Nats that words lose as the value of a parameter where another one of the call takes them."""

TWICE = 3.0
"""Nats that an allowed value loses as the value of a second parameter with the same list."""

WIDTH, CHOICES = 24, 5
"""How many choices of words for a whole call are followed, and how many words for each slot."""

_OPTIONS, _TOGETHER = 6, 3
"""Likeliest values of a list, and parameters that share it, that are weighed against each other."""

AS_LIKELY = 2.0
"""Nats behind words of an answer within which the whole name that they are part of is the value."""

_NAMED = frozenset({"name", "country", "zone", "language"})
_EDGES = " ,;:.!?\"'“”()"
_ENDS = re.compile(r"\s*(?:[(,;|]|$)")


class Matched:
    """The matches of the functions on offer with one part; see the module."""

    def __init__(self, scene: Scene, part: str, prior: Reranker | None) -> None:
        self._scene = scene
        self._prior = prior
        begin = scene.task.find(part) if part else -1
        self._clause = (begin, begin + len(part)) if begin >= 0 else (0, len(scene.task))
        self._asked = MatchRequest(scene.task, self._clause, scene.seen[:SEEN])
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
        if parameter.enum:
            told = slot.listed()
            return told[0][1] - slot.none if len(told) == len(parameter.enum) else None
        best = self._ranked(api, parameter)
        return best[0].score - slot.none if best else -math.inf

    def values(self, api: Api, parameter: Parameter) -> list[str]:
        """Return the words that are likeliest a parameter's value, best first."""
        slot = self._slot(api, parameter)
        if slot is None:
            return []
        found = self._ranked(api, parameter)
        least = max(found[0].score if found else 0.0, slot.none) - FAR_BEHIND
        likely = [span for span in found if span.score >= least]
        said = [self._words(one) for one in likely if not self._is_cut(one, likely)]
        return list(dict.fromkeys(one for one in said if one))

    def score(self, api: Api, parameter: Parameter, value: str) -> float:
        """Return the log-probability that ``value`` is the parameter's, -inf where it is unseen.

        Words that another parameter of the call is likelier to take lose by it.
        """
        slot = self._slot(api, parameter)
        if slot is None or not value:
            return -math.inf
        places = _whole(value)
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
        held = [one.score for one in self._ranked(api, parameter) if holds(value, self._words(one))]
        return max([self.score(api, parameter, value), *held])

    def is_told_by(self, api: Api) -> bool:
        """Whether the part itself states a value for a parameter of an API."""
        begin, end = self._clause
        spans = [span for span in self._assigned(api).values() if span is not None]
        return any(one.source == 0 and begin <= one.begin and one.end <= end for one in spans)

    def is_answered(self, api: Api, parameter: Parameter) -> bool:
        """Whether an earlier answer, rather than the task, states a value for a parameter.

        A number is no name of a place, and one of another unit no temperature.
        """
        slot = self._slot(api, parameter)
        best = self._ranked(api, parameter)[:1]
        if slot is None or not best or not best[0].source or best[0].score <= slot.none:
            return False
        said = self._words(best[0])
        names = [name for name, told in self._scene.seen if told == said]
        if names and not any(may_be(parameter, name) for name in names):
            return False
        named = kinds.value_kind(parameter, api) in _NAMED
        return not named or any(letter.isalpha() for letter in said)

    def listed(self, api: Api, parameter: Parameter, taken: Collection[str] = ()) -> str:
        """Return the likeliest of the allowed values, "" where they were not all read.

        ``taken`` are values of other parameters, passed over.
        """
        slot = self._slot(api, parameter)
        told = slot.listed() if slot else []
        if len(told) < len(parameter.enum):
            return ""
        meant = self._meant(api).get(parameter.name, "")
        return next(
            (v for v in (meant, *(parameter.enum[at] for at, _ in told)) if v and v not in taken),
            "",
        )

    def _meant(self, api: Api) -> dict[str, str]:
        """Return the likeliest allowed values of parameters that share a list, hardly one twice.

        "From celsius to celsius" is what nobody asks. O(values ** parameters), so of two or three.
        """
        shared: dict[tuple[str, ...], list[tuple[str, list[tuple[int, float]]]]] = {}
        for one in api.parameters:
            slot = self._slot(api, one)
            if one.enum and slot is not None:
                shared.setdefault(one.enum, []).append((one.name, slot.listed()[:_OPTIONS]))
        found: dict[str, str] = {}
        for enum, some in shared.items():
            if not 2 <= len(some) <= _TOGETHER:
                continue
            choices = itertools.product(*(options for _, options in some))
            best = max(choices, key=_joint, default=())
            found |= {name: enum[at] for (name, _), (at, _) in zip(some, best, strict=False)}
        return found

    def _is_cut(self, span: Span, others: Collection[Span]) -> bool:
        """Whether words of an answer are some of a name there that is about as likely.

        Of "Dar es Salaam (5,383,728), Mwanza (1,104,521)" neither "Dar" nor both cities.
        """
        text = self._texts[span.source]
        return bool(span.source) and any(
            one.source == span.source
            and one.begin <= span.begin
            and span.end < one.end
            and one.score >= span.score - AS_LIKELY
            and _ENDS.match(text, one.end)
            and not _ENDS.match(text, span.end)
            for one in others
        )

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
        taken = any(one is not None and one.touches(span) for one in rivals)
        return span._replace(score=span.score - RIVAL) if taken else span

    def _assigned(self, api: Api) -> dict[str, Span | None]:
        """Return the likeliest words for all parameters together, no word for two of them."""
        if api.id not in self._taken:
            match = self._matches.get(api.id)
            self._taken[api.id] = _assign(match.parameters) if match else {}
        return self._taken[api.id]

    def _words(self, span: Span) -> str:
        return self._texts[span.source][span.begin : span.end].strip(_EDGES)


def holds(whole: str, part: str) -> bool:
    """Whether a value holds another one as words of its own: "6 ft 2 in" does "6 ft", not "2 i"."""
    return bool(part) and _whole(part).search(whole) is not None


def _whole(words: str) -> re.Pattern[str]:
    """Return what finds words that are no part of another word or number."""
    return re.compile(rf"(?<!\w)(?<!\d[.,]){re.escape(words)}(?!\w|[.,]\d)", re.IGNORECASE)


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
                if not any(one is not None and one.touches(span) for one in chosen)
            ]
        beam = sorted(grown, key=lambda one: -one[0])[:WIDTH]
    return dict(zip(slots, beam[0][1], strict=True))


def _joint(options: tuple[tuple[int, float], ...]) -> float:
    """Return the log-probability of allowed values together, each one more of the same at a loss."""
    twice = len(options) - len({at for at, _ in options})
    return sum(score for _, score in options) - TWICE * twice

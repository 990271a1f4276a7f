"""One wish for several values: "the capitals of Peru, Chile and Bolivia" is three calls.

The matcher points at a parameter's value in the whole task. Where it finds several nearly as likely
and no more than "and", commas and the like between them, what was called for one is called for
each; values of several parameters told side by side ("15% of 80 and 20% of 45") stay together
(``parallel``). Pure but for the matcher.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolsrv_registry.functions import Function
from toolsrv_registry.languages import fold_accents
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner.ellipses import refills
from toolsrv_runtime.planner.parallel import Side, sides
from toolsrv_runtime.planner.pointing import unnamed
from toolsrv_runtime.planner.reading import spans
from toolsrv_runtime.planner.reading.measures import fits
from toolsrv_runtime.planner.reading.mentions import Mention, mentions
from toolsrv_runtime.planner.scene import Offer, Scene, news
from toolsrv_runtime.values.facts import words

BEHIND, BARE = 5.5, 2.5
"""Nats behind the likeliest words within which others are a value of their own.

The second where nothing but commas joins them: Oregon tells which Portland is meant.
"""

NAMED = 8.0
"""The same of allowed values, which the task has to name."""

_JOINED = re.compile(
    r"[\"'”’)]*\s*(?:[,;/&+]|\b(?:and|or|plus|as well as)\b|\s)+"
    r"(?:\b(?:also|both|then|in|of|for|at|on|to|into|from|with|over|by|the)\s+){0,3}[\"'“‘(]*",
    re.IGNORECASE,
)
_LEADS = re.compile(r"\s+(?:in|of|for|at|on|to|into|from)\s+(?:the\s+)?", re.IGNORECASE)
"""What joins no list: "220 Celsius in Fahrenheit", "Paris in France"."""

_COMPARED = re.compile(
    r"(?:[^.?!;\d]{0,60}\s)?(?:than|versus|vs\.?|compared (?:to|with|against))\s"
    r"(?:(?:in|on|at|of|for|that of|the|it is in)\s)*",
    re.IGNORECASE,
)
"""What stands between two values that are compared: "more holidays in Spain than in Italy"."""

_AGAIN = 80
"""Characters before a value in which a wish is put."""

_AGAIN_BEGINS = re.compile(r"[\"'”’)]*\s*(?:[.,;?!&]|and\b|then\b)", re.IGNORECASE)
_ALONE = re.compile(
    r"(?P<stop>[.?!]\s+|,\s+(?=(?:and|or)\b))(?:(?:and|or|then)\s+)?(?:(?:what|how) about\s+)?"
    r"(?:(?:for|in|of|to|from|on|at|over|with|by)\s+)?"
    r"(?:the\s+)?[\"'“‘(]?$",
    re.IGNORECASE,
)
_ENDS = re.compile(r"(?:\s?(?:[%€$£]|°\s?[CFK]?)|\s?[^\W\d]+)?[\"'”’)]?\s*(?:[.?!]|$)")
_STOPS = re.compile(r"[.?!]\s")
_WORD = re.compile(r"\s?(?:[%°€$£](?:\s?[CFK]\b)?|\w+)")
_QUESTION = re.compile(r"\s?[,;.?]? ?(?:and|or) (?:what|how)\b(?: \w+){0,4} ?", re.IGNORECASE)
_JOINING_WORD = re.compile(r"&|\b(?:and|or|plus|as well as)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Another:
    """A call like one before it with other values: the task's words for these, and arguments."""

    words: str
    offer: Offer
    arguments: dict[str, str]


class Several:
    """The calls of a scene that its task asks for again, with other values."""

    def __init__(self, scene: Scene, prior: Reranker) -> None:
        self._scene = scene
        self._prior = prior
        self._offers = {offer.function.name: offer for offer in scene.offers}
        apis = [offer.function.api for offer in scene.offers]
        found = prior.match(MatchRequest(scene.task), apis)
        self._matches: dict[str, Match] = {
            api.id: match for api, match in zip(apis, found, strict=False)
        }
        self._told: dict[str, list[Side]] = {}

    def next(self) -> Another | None:
        """Return the first that was not tried."""
        return next((one for one in self._wished if not self._tried(one)), None)

    def failed(self) -> list[str]:
        """Return the words of those that were tried and gave no answer."""
        return [one.words for one in self._wished if self._tried(one) and not self._answered(one)]

    def unanswered(self) -> list[str]:
        """Return the words of all that have no answer, tried or not."""
        return [one.words for one in self._wished if not self._answered(one)]

    def straightened(self, function: Function, arguments: dict[str, str]) -> dict[str, str]:
        """Return a call's arguments, those of one side where they are some of each.

        And answers of several calls of one function in the order of these calls: the matcher sees
        two capitals alike, "from A to B" was told in order.
        """
        arguments = self._in_order(arguments)
        told = self._sides(function)
        if not told or any(_takes(arguments, side) for side in told):
            return arguments
        mixed = all(any(side[key].read == arguments.get(key) for side in told) for key in told[0])
        offer = self._offers[function.name]
        calls = [Another("", offer, {**arguments, **_read(side)}) for side in told]
        left = [one.arguments for one in calls if not self._tried(one)]
        return left[0] if mixed and left else arguments

    def _in_order(self, arguments: dict[str, str]) -> dict[str, str]:
        """Return the arguments, those that like calls answered under one name in their order.

        Also where what such a call was made with stands for its answer: "between the capitals of
        Peru and Chile" is from Lima to Santiago, not from Peru to Lima.
        """
        answers: dict[tuple[str, str], dict[str, set[str]]] = {}
        for step in self._scene.path:
            for name, value in news(step) if step.ok else ():
                given = set(_texts(step.move.arguments).values())
                answers.setdefault((step.move.function, name), {})[value] = given
        for told in answers.values():
            order = list(told)
            keys = [key for key, value in arguments.items() if value in told]
            if 1 < len(keys) == len({arguments[key] for key in keys}):
                straight = sorted((arguments[key] for key in keys), key=order.index)
                return {**arguments, **dict(zip(keys, straight, strict=True))}
            made: set[str] = set().union(*told.values())
            both = [key for key, value in arguments.items() if value in told or value in made]
            alike = len({words(key).rpartition(" ")[2] for key in both}) == 1
            if keys and 1 < len(both) == len(told) and alike:
                return {**arguments, **dict(zip(both, told, strict=True))}
        return arguments

    def _tried(self, one: Another) -> bool:
        return any(_is_call(step, one) for step in self._scene.attempts)

    def _answered(self, one: Another) -> bool:
        return any(step.ok and _is_call(step, one) for step in self._scene.attempts)

    @cached_property
    def _wished(self) -> list[Another]:
        """The calls, in the order of the path and of the task; then what ellipses ask for."""
        listed = [
            one
            for step in self._scene.path
            if step.ok and (offer := self._offers.get(step.move.function))
            for one in self._like(offer, step)
        ]
        again = (
            Another(one.words, self._offers[one.function], one.arguments)
            for one in refills(self._scene, self._prior)
        )
        return [*listed, *again]

    def _like(self, offer: Offer, step: Step) -> Iterator[Another]:
        """Yield what is called as one call was, with other values for what its words name.

        "Sunset in the former" of Perth and Dublin is asked for one of them.
        """
        arguments = _texts(step.move.arguments)
        match = self._matches.get(offer.function.api.id)
        back = unnamed(step, self._scene)
        told = [] if back else self._sides(offer.function)
        if any(_takes(arguments, side) for side in told):
            for side in told:
                if not _takes(arguments, side):
                    yield Another(self._words(side), offer, {**arguments, **_read(side)})
        elif match is not None:
            for key in (one for one in arguments if arguments[one] not in back):
                for value in self._listed(offer.function, match, key, arguments):
                    yield Another(self._asked(value), offer, {**arguments, key: value.read})

    def _asked(self, value: Mention) -> str:
        """Return the words of a value, and with them those of a question that is left for it."""
        lead = _ALONE.search(self._scene.task[: value.begin])
        alone = lead and _ENDS.match(self._scene.task, value.end)
        begin = lead.end("stop") if lead and alone else value.begin
        return self._scene.task[begin : value.end]

    def _sides(self, function: Function) -> list[Side]:
        """Return the calls of a function that the task tells side by side."""
        match = self._matches.get(function.api.id)
        if function.name not in self._told:
            self._told[function.name] = sides(function, match, self._scene.task) if match else []
        return self._told[function.name]

    def _words(self, side: Side) -> str:
        """Return the task's words from a side's first value to its last."""
        begin, end = min(one.begin for one in side.values()), max(one.end for one in side.values())
        return self._scene.task[begin:end]

    def _listed(
        self, function: Function, match: Match, key: str, arguments: Mapping[str, str]
    ) -> list[Mention]:
        """Return the list of values that one of a call's is in, without that; none where it is not."""
        parameter = function.parameters.get(key)
        slot = match.parameters.get(parameter.name) if parameter else None
        if parameter is None or slot is None:
            return []
        others = [value for name, value in arguments.items() if name != key]
        behind = NAMED if parameter.enum else BEHIND
        told = mentions(parameter, function.api, slot, self._scene.task, behind=behind)
        told = [one for one in told if fits(parameter, self._scene.task, one.end)]
        taken = {fold_accents(one) for one in others}
        for group in self._groups(
            [one for one in told if fold_accents(one.read) not in taken], others
        ):
            between = self._scene.task[group[0].end : group[-1].begin]
            best = max(one.score for one in group)
            if not _JOINING_WORD.search(between) and any(one.score < best - BARE for one in group):
                continue
            if any(one.read == arguments[key] for one in group):
                return [one for one in group if one.read != arguments[key]]
        return []

    def _groups(self, values: Sequence[Mention], others: Sequence[str]) -> list[list[Mention]]:
        """Return runs of values with nothing but joints between them."""
        groups: list[list[Mention]] = []
        for one in values:
            if groups and self._joins(groups[-1][-1], one, others):
                groups[-1].append(one)
            else:
                groups.append([one])
        return groups

    def _joins(self, one: Mention, other: Mention, others: Sequence[str]) -> bool:
        """Whether two values stand in one list: "5 and 12 km", "5 km and 12 km"."""
        between, behind = self._scene.task[one.end : other.begin], self._scene.task[other.end :]
        for unit in sorted(others, key=len, reverse=True):
            told = re.compile(rf"\s*{re.escape(unit)}(?!\w)", re.IGNORECASE)
            if unit and (match := told.match(between)):
                return bool(told.match(behind) and _JOINED.fullmatch(between[match.end() :]))
        listed = _JOINED.fullmatch(between) and not _LEADS.fullmatch(between)
        return bool(
            listed
            or _COMPARED.fullmatch(between)
            or self._is_left_of_a_question(one, other)
            or self._says_again(one, other)
        )

    def _is_left_of_a_question(self, one: Mention, other: Mention) -> bool:
        """Whether a sentence is but the other value: "Was 2100 a leap year? And 2400?"."""
        between = self._scene.task[one.end : other.begin]
        lead = _ALONE.search(between)
        alone = lead and _ENDS.match(self._scene.task, other.end)
        return bool(lead and alone) and not _STOPS.search(between, 0, lead.start() if lead else 0)

    def _says_again(self, one: Mention, other: Mention) -> bool:
        """Whether the wish is only put again: "the capital of Peru, what is the capital of Chile".

        Or the question alone: "what would I pay over 5 years, and what over 7 years"; or nothing,
        and one word stands behind both: "in French words and also in German words".
        """
        between = self._scene.task[one.end : other.begin]
        unit = _WORD.match(between)
        if unit and re.compile(rf"{re.escape(unit[0])}(?!\w)").match(self._scene.task, other.end):
            between = between[unit.end() :]
            asked = _QUESTION.fullmatch(between) and not spans.content(between)
            if asked or _JOINED.fullmatch(between):
                return True
        before = spans.content(self._scene.task[max(0, one.begin - _AGAIN) : one.begin])
        again = spans.content(between)
        return bool(_AGAIN_BEGINS.match(between)) and bool(again) and again <= before


def _is_call(step: Step, one: Another) -> bool:
    same = step.move.function == one.offer.function.name
    return same and _texts(step.move.arguments) == one.arguments


def _takes(arguments: Mapping[str, str], side: Side) -> bool:
    return all(arguments.get(key) == one.read for key, one in side.items())


def _read(side: Side) -> dict[str, str]:
    return {key: one.read for key, one in side.items()}


def _texts(arguments: str) -> dict[str, str]:
    found: dict[str, Any] = json.loads(arguments)
    return {name: str(value) for name, value in found.items()}

"""Sentences that only put another value into the call before: "And if I stretched it to thirty?".

Their form tells that they ask for no function of their own. Pure but for the matcher, which says
what parameter the value is for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import MatchRequest, Slot
from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner.reading import cues, spelling
from toolsrv_runtime.planner.reading.mentions import spelled
from toolsrv_runtime.planner.reading.parts import Part, split
from toolsrv_runtime.planner.scene import Scene, about
from toolsrv_runtime.planner.stated import Stated
from toolsrv_runtime.values import kinds

APART = 5.0
"""Nats that a value is likelier for its parameter than for any other."""

SAME_UNIT = 10.0
"""Nats that a value gains for a parameter that had one in this unit before."""

NAMED = -3.0
"""The log-probability from which on words are a value that has no form of its own, as names."""

_WORDS, _GAP, _BACK = 5, 8, 60
"""Most words of a value, between "if" and a value, and before an ellipsis that are looked at."""

_PREPOSITION = r"(?:(?:at|by|for|from|in|into|of|on|over|to|using|with)\s+)"
_POLITE = r"(?:[\s,]*\b(?:please|pls|plz|thanks|thank you|then|though|too|as well|now|rather)\b)*"
_LOOSE = re.compile(
    r"(?:what\s+|how\s+about\s+)?(?:if|suppose|supposing|assuming)\s+"
    rf"|{_PREPOSITION}(?=.*\binstead\b)",
    re.IGNORECASE,
)
_OR = re.compile(r"or\s+(?:if\s+)?", re.IGNORECASE)
_BARE = re.compile(
    rf"(?:(?:what|how)\s+about\s+(?:the\s+same\s+)?{_PREPOSITION}?"
    rf"|(?:do\s+)?(?:the\s+)?same(?:\s+(?:again|question|thing))?,?\s+{_PREPOSITION})(?:(?:an?|the)\s+)?",
    re.IGNORECASE,
)
_TAIL = re.compile(rf"(?:\s+instead\b)?{_POLITE}\W*", re.IGNORECASE)
_ENDS = re.compile(rf"{_POLITE}[\"'”’)\s]*(?:[.?!]|$|\n)", re.IGNORECASE)
_TOKEN = re.compile(r"\d[\d.,:/-]*\d|\w[\w'’-]*")
_UNIT = re.compile(r"\s?([%°€$£]|[^\W\d_]+)")


class Refill(NamedTuple):
    """Words of the task that ask for a call again, that call's function, and the new arguments."""

    words: str
    function: str
    arguments: dict[str, str]


class _Value(NamedTuple):
    """What an ellipsis may say for a parameter: how likely, and whether it says nothing else."""

    score: float
    key: str
    read: str
    alone: bool


@dataclass(frozen=True, slots=True)
class _Ellipsis:
    """Words of the task, where they begin, and how many stand before the value, loosely or not."""

    words: str
    begin: int
    lead: int
    loose: bool

    @property
    def end(self) -> int:
        return self.begin + len(self.words)


def refills(scene: Scene, prior: Reranker) -> Iterator[Refill]:
    """Yield the calls that ellipses ask for, each that of the words before it with another value.

    Nothing where more is asked for in between, or where it is not sure what the value is.
    """
    functions = {offer.function.name: offer.function for offer in scene.offers}
    short = _ellipses(scene.task)
    for one in short:
        step = _before(one, scene, {other.words for other in short})
        function = functions.get(step.move.function) if step else None
        if step is None or function is None:
            continue
        told: dict[str, object] = json.loads(step.move.arguments)
        given = {key: str(value) for key, value in told.items()}
        value = _value(one, given, function, scene, prior)
        if value is not None and value.read != given[value.key]:
            yield Refill(one.words, function.name, {**given, value.key: value.read})


def _ellipses(task: str) -> list[_Ellipsis]:
    """Return what begins like an ellipsis and ends its sentence, or with another one; never first."""
    placed = _placed(task)
    leads: list[tuple[int, bool] | None] = [None]
    for part, _ in placed[1:]:
        loose, bare = _LOOSE.match(part.text), _BARE.match(part.text)
        if leads[-1] and not loose and not bare:
            loose = _OR.match(part.text)
        lead = loose or bare
        leads.append((lead.end(), lead is loose) if lead else None)
    found: list[_Ellipsis] = []
    ends = False
    for (part, begin), opening in reversed(list(zip(placed, leads, strict=False))):
        ends = opening is not None and (
            ends or _ENDS.match(task, begin + len(part.text)) is not None
        )
        if opening is not None and ends:
            found.append(_Ellipsis(part.text, begin, *opening))
    return found[::-1]


def _placed(task: str) -> list[tuple[Part, int]]:
    """Return the parts of a task and where they begin."""
    found: list[tuple[Part, int]] = []
    at = 0
    for part in split(task):
        at = task.find(part.text, at)
        found.append((part, at))
        at += len(part.text)
    return found


def _before(one: _Ellipsis, scene: Scene, short: set[str]) -> Step | None:
    """Return the last call for words before an ellipsis, None where more is asked for since."""
    calls = [
        (begin + len(about(step)), step)
        for step in scene.path
        if step.ok and about(step) not in short
        if 0 <= (begin := scene.task.find(about(step))) < one.begin
    ]
    end, step = max(calls, key=lambda call: call[0], default=(0, None))
    since = (part for part, at in _placed(scene.task) if end <= at < one.begin)
    return None if any(part.asks and part.text not in short for part in since) else step


def _value(
    one: _Ellipsis, given: Mapping[str, str], function: Function, scene: Scene, prior: Reranker
) -> _Value | None:
    """Return the value of an ellipsis for one of the arguments given before, None where unsure."""
    asked = MatchRequest(scene.task, (one.begin, one.end))
    matches = prior.match(asked, [function.api])
    found = []
    for key, parameter in function.parameters.items():
        slot = matches[0].parameters.get(parameter.name) if matches else None
        if slot is not None:
            values = _values(one, key, given.get(key, ""), function, slot, scene)
            found.append(max(values, default=_Value(-math.inf, key, "", alone=False)))
    found.sort(reverse=True)
    sure = len(found) == 1 or (found and found[0].score - found[1].score >= APART)
    return found[0] if sure and found[0].alone and found[0].key in given else None


def _values(
    one: _Ellipsis, key: str, before: str, function: Function, slot: Slot, scene: Scene
) -> Iterator[_Value]:
    """Yield what of an ellipsis may be a parameter's value, alone too in the unit of that ``before``."""
    parameter, task = function.parameters[key], scene.task
    kind = kinds.value_kind(parameter, function.api)
    if parameter.enum:
        for at, score in slot.listed():
            for match in spelled(parameter.enum[at]).finditer(one.words):
                alone = _stands_alone(one, match.start(), match.end())
                yield _Value(score, key, parameter.enum[at], alone)
        return
    likeliest: dict[str, tuple[float, int, int]] = {}  # of "7" and "7% tax" the first
    tokens = list(_TOKEN.finditer(task, one.begin + one.lead, one.end))
    for number, first in enumerate(tokens):
        for last in tokens[number : number + _WORDS]:
            said, score = task[first.start() : last.end()], slot.score(0, first.start(), last.end())
            if score >= NAMED if kind in kinds.LOOSE_KINDS else spelling.looks(kind, said, task):
                found = (score, first.start() - one.begin, last.end() - one.begin)
                value = spelling.read(kind, said, task)
                read = Stated(one.words, scene).meant(parameter, function.api, value)
                likeliest[read] = max(found, likeliest.get(read, found))
    unit = _unit(kind, before, task[: one.begin]) if likeliest else ""
    for read, (score, begin, end) in likeliest.items():
        behind = _UNIT.match(one.words, end)
        same = behind is not None and cues.stem(behind[1]) == unit
        alone = _stands_alone(one, begin, behind.end() if behind and same else end)
        yield _Value(score + SAME_UNIT * same, key, read, alone)


def _stands_alone(one: _Ellipsis, begin: int, end: int) -> bool:
    """Whether an ellipsis says no more than the value at this place of its words.

    Behind "if", or before "instead", a few words of any kind may lead up to it.
    """
    gap = len(one.words[one.lead : begin].split())
    return gap <= (_GAP if one.loose else 0) and _TAIL.fullmatch(one.words, end) is not None


def _unit(kind: str, value: str, text: str) -> str:
    """Return the stem of the word or the sign that stands behind a value in a text, "" for none."""
    tokens = list(_TOKEN.finditer(text))[-_BACK:]
    for number, first in enumerate(tokens if value and kind not in kinds.LOOSE_KINDS else ()):
        for last in tokens[number : number + 3]:
            behind = _UNIT.match(text, last.end())
            said = text[first.start() : last.end()]
            if behind and len(said) <= 32 and spelling.read(kind, said, text) == value:
                return cues.stem(behind[1])
    return ""

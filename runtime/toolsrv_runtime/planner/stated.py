"""What a part of a task says of a call's values in so many words, and where they come from. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner import clues, conversions, costs, predicted, then
from toolsrv_runtime.planner.matched import holds
from toolsrv_runtime.planner.reading import (
    ages,
    amounts,
    bases,
    below,
    cases,
    changes,
    chords,
    compounds,
    denied,
    dice,
    directions,
    edges,
    elapsed,
    ends,
    frequencies,
    grounding,
    initials,
    intervals,
    levels,
    measures,
    mileage,
    named,
    ordinals,
    paces,
    pairs,
    parties,
    periods,
    prices,
    races,
    ranked,
    rates,
    scales,
    seeds,
    spans,
    speakers,
    subnets,
    upcoming,
    year_of,
)
from toolsrv_runtime.planner.reading.extent import begun, ended
from toolsrv_runtime.planner.reading.labels import labelled
from toolsrv_runtime.planner.reading.mentions import spelled
from toolsrv_runtime.planner.reading.moments import dated
from toolsrv_runtime.planner.reading.shared import shared
from toolsrv_runtime.planner.reading.wish import Rule, Wish
from toolsrv_runtime.planner.scene import Scene, about, news
from toolsrv_runtime.values import arithmetic, dates, kinds
from toolsrv_runtime.values.facts import words

ANSWERED = 2.5
"""Nats that words of an answer are behind as likely ones of the task."""

STATED = 12.0
"""The same where the part names as many values of the kind as the call takes."""

RULES: Sequence[Rule] = (
    directions.told,
    bases.told,
    conversions.told,
    measures.lasting,
    measures.told,
    chords.told,
    compounds.told,
    dice.told,
    ages.told,
    amounts.told,
    changes.told,
    elapsed.told,
    intervals.told,
    periods.told,
    prices.told,
    rates.told,
    frequencies.told,
    scales.told,
    paces.told,
    races.pace,
    races.told,
    races.at_pace,
    subnets.told,
    mileage.told,
    parties.told,
    denied.told,
    ranked.told,
    speakers.told,
    seeds.told,
    ordinals.told,
    pairs.told,
    cases.told,
    levels.told,
    named.told,
    year_of.told,
)
"""The first that reads anything of a wish is right."""

_LABELLED = frozenset({"", "number", "name"})
_NAMED = frozenset({"currency", "language", "date", "zone", "formula"})
_ALIKE = frozenset({"colour", "country", "currency", "language", "note"})
_ANY_NUMBER = frozenset({"number", "value", "amount", "sum", "total", "figure"})
_STOP = re.compile(r"[.?!;]\s")
_ALSO = re.compile(r"\b(?:also|as well as|plus)\s+$", re.IGNORECASE)
_THEN = re.compile(r"\b(?:then|afterwards|after that)[\s,]+$|then\s?", re.IGNORECASE)
_RESULT = re.compile(
    r"\b(?:you (?:get|end up with)|comes? out|that (?:far|distance)|what(?:['’]?s| is) left(?: over)?|the (?:result\w*|outcome))\b",
    re.IGNORECASE,
)
_ITS_OWN = re.compile(r"\W?\d[^?.!]*\bwhat\b[^?.!]{0,30}\bit\b", re.IGNORECASE)
"""Words that begin with the number that "it" is: "100 at 4 % a year, what is it worth"."""

_POINTERS = ({"it", "its"}, {"they", "them", "their"}, {"he", "him", "his"}, {"she", "her", "hers"})
_POSSESSIVE = re.compile(r"(?:its|their|his|her)\b", re.IGNORECASE)


class Stated:
    """The rules for one part of a scene's task."""

    def __init__(self, part: str, scene: Scene) -> None:
        self._part = part
        self._scene = scene
        self._task = scene.task
        self._path = scene.path
        self._seen = scene.seen
        self._functions = {one.function.name: one.function for one in scene.offers}
        self._wish = Wish(part, scene.sources(part).context, scene.task)

    def meant(self, parameter: Parameter, api: Api, value: str) -> str:
        """Return a value with its direction, in the unit of its parameter, and a unit whole."""
        task = self._task
        value = spans.address_alone(value, task)
        value = named.whole(parameter, api, value, task)
        value = directions.turned(parameter, value, self._part, task)
        value = dated(parameter, value, self._part, task)
        value = ended(parameter, begun(parameter, value, task), task)
        value = below.below_zero(parameter, value, self._part, task)
        value = conversions.in_its_unit(parameter, value, self._path)
        value = measures.in_its_unit(parameter, value, self._part, task)
        value = prices.taken_off(parameter, api, value, task)
        value = prices.in_main_unit(parameter, value, self._part, task)
        return measures.whole_unit(parameter, value, task)

    def value(self, parameter: Parameter, api: Api) -> str:
        """Return what the part or the task states for a parameter in so many words, "" for none."""
        kind = kinds.value_kind(parameter, api)
        told = shared(parameter.name, self._task) if kind in {"number", "year", ""} else ""
        if told and (not parameter.enum or told in parameter.enum):
            return told
        if kind in _LABELLED and not parameter.enum:
            label = labelled(parameter, self._part)
            others = (one for one in api.parameters if one is not parameter)
            if label and all(labelled(one, self._part) != label for one in others):
                return label
        if product := costs.told(parameter, api, self._part, self._scene):
            return product
        if race := predicted.told(parameter, api, self._part, self._scene):
            return race
        if moment := then.told(parameter, api, self._part, self._scene):
            return moment
        if kind == "number" and (number := initials.told(self._part, self._seen)):
            return number
        if (
            kind == "date"
            and not ends.roles(api)
            and (day := edges.told(self._part, self._spans()))
        ):
            return day
        if (
            kind == "date"
            and parameter != ends.roles(api).get("start")
            and (day := upcoming.told(self._part, self._seen))
        ):
            return day
        found = (rule(parameter, api, self._wish) for rule in RULES)
        return next(filter(None, found), "") or self._relative(kind)

    def _spans(self) -> list[dict[str, str]]:
        """Return the first and last days that calls took."""
        made = [
            (function, json.loads(step.move.arguments))
            for step in self._path
            if step.ok and (function := self._functions.get(step.move.function))
        ]
        return [
            {
                role: str(given[key])
                for role, one in roles.items()
                for key, other in function.parameters.items()
                if other is one and key in given
            }
            for function, given in made
            if (roles := ends.roles(function.api))
        ]

    def away(self, said: str, parameter: Parameter, kind: str, api: Api) -> float:
        """Return what an answer's words lose where nothing in the part points back to an answer.

        "Its acronym, a slug, and the name in capitals": the slug is not the acronym's. More where
        the part names a value of its own: "the symbol for the Vietnamese dong", or where a call
        beside it took the task's: "its SHA-256, its Base64 form and its CRC32" are of one text.
        """
        if said in self._task or (kind != "text" and holds(self._task, said)):
            gone = measures.is_rate(said, self._task) or clues.is_part(said, self._task)
            zones = [one for one in api.parameters if kinds.value_kind(one, api) == "zone"]
            yardstick = kind == "zone" and directions.is_yardstick(said, self._part)
            gone = gone or (yardstick and len(zones) == 1)
            gone = gone or self._is_spent(said, parameter, kind)
            gone = gone or (kind == "number" and self._is_of_a_base(said))
            return STATED if gone else 0.0
        if self._is_overtaken(said, kind):
            return STATED
        alike = [one for one in api.required if kinds.value_kind(one, api) == kind]
        own = kinds.find_values(kind, self._part) if kind in _NAMED else []
        told = (own and len(own) >= len(alike)) or (kind == "number" and self._tells_all(api))
        if told or self.beside(parameter, kind) or self._names_no_answer(parameter, kind):
            return STATED
        return 0.0 if grounding.refers(self._part) else ANSWERED

    def _tells_all(self, api: Api) -> bool:
        """Whether the part has a number for each that a call takes, and points at no answer."""
        takes = [one for one in api.parameters if kinds.value_kind(one, api) == "number"]
        own = kinds.find_values("number", self._part)
        if arithmetic.find_arithmetic(self._part):
            return False  # "12 times 7 in Roman numerals" is about the product
        refers = grounding.refers(self._part) and not _ITS_OWN.match(self._part)
        return len(own) >= len(takes) and not refers

    def _names_no_answer(self, parameter: Parameter, kind: str) -> bool:
        """Whether the part says "that price", and no answer is called one."""
        name = words(parameter.name)
        if kind != "number" or name in _ANY_NUMBER:
            return False
        said = re.search(rf"\b(?:that|this) {re.escape(name)}\b", self._part, re.IGNORECASE)
        return bool(said) and not any(name in words(fact) for fact, _ in self._seen)

    def beside(self, parameter: Parameter, kind: str) -> str:
        """Return what of the task a call for a wish like this one took for such a parameter, or "".

        Both point back alike in one sentence ("its CRC32, and whether it is a good password"),
        begin with one possessive, or stand in one sentence and point back to nothing; or this one
        is wanted "also". So is what two calls took, that the sentence is about. For a text any
        quotation will do, whatever it was taken for.
        """
        mine = _POSSESSIVE.match(self._part)
        backward = grounding.refers(self._part)
        quotations = spans.quoted(self._task) if kind == "text" else ()
        taken: list[str] = []
        for step in self._path:
            value = self._taken_by(step, parameter, kind)
            if not value:
                continue
            theirs = _POSSESSIVE.match(about(step))
            near = self._in_sentence(about(step))
            same = _points(self._part) & _points(about(step)) or value in taken
            if (
                (near and backward and same and not self._is_behind(_THEN))
                or (near and quotations and mine and self._is_behind(_ALSO))
                or ((theirs and mine[0] == theirs[0]) if mine else (near and not backward))
            ):
                return value
            taken += [value] if near else []
        return ""

    def _is_spent(self, said: str, parameter: Parameter, kind: str) -> bool:
        """Whether the part means the answer to what was made of some words, not these words again.

        "Rot13 of 'attack at dawn', then reverse that", "the frequency of the note you get".
        """
        if said in self._part:
            return False
        goes_on = grounding.refers(self._part) and self._is_behind(_THEN)
        if not goes_on and not _RESULT.search(self._part):
            return False
        made = next((step for step in reversed(self._path) if step.ok), None)
        if made is None or self._taken_by(made, parameter, kind) != said:
            return False
        return any(value != said for _, value in news(made))

    def _is_overtaken(self, said: str, kind: str) -> bool:
        """Whether the last call made another text of an answer, and the part goes on with that.

        "Decode it, flip it back to front and then do that in big letters": of what was flipped.
        """
        made = next((step for step in reversed(self._path) if step.ok), None)
        if kind != "text" or made is None or not self._is_behind(_THEN):
            return False
        taken = map(str, json.loads(made.move.arguments).values())
        told = [value for _, value in news(made)]
        return grounding.refers(self._part) and said in taken and bool(told) and said not in told

    def _is_of_a_base(self, said: str) -> bool:
        """Whether a call took digits as those of another base: 101 was five, and is no hundred."""
        calls = (json.loads(step.move.arguments) for step in self._path if step.ok)
        return any(
            str(base) != bases.DECIMAL
            and any(str(one) == said for key, one in given.items() if "base" not in key)
            for given in calls
            for name, base in given.items()
            if bases.is_source(name)
        )

    def _taken_by(self, step: Step, parameter: Parameter, kind: str) -> str:
        """Return the words of the task that a call took for such a parameter, "" for none.

        For one of its name, or the only one of its kind; for a text also any quotation.
        """
        given: dict[str, object] = json.loads(step.move.arguments) if step.ok else {}
        value = str(given.get(parameter.name, ""))
        if not value and kind == "text":
            quotations = spans.quoted(self._task)
            value = next((str(one) for one in given.values() if one in quotations), "")
        if not value and kind in _ALIKE:
            function = self._functions.get(step.move.function)
            parameters = function.parameters if function else {}
            alike = [
                str(given[key])
                for key, one in parameters.items()
                if key in given and function and kinds.value_kind(one, function.api) == kind
            ]
            value = alike[0] if len(alike) == 1 else ""
        return value if value and holds(self._task, value) else ""

    def _is_behind(self, joint: re.Pattern[str]) -> bool:
        """Whether the task joins the part to what stands before it so."""
        begin = self._task.find(self._part)
        return bool(joint.search(self._task, 0, max(0, begin)) or joint.fullmatch(self._part[:5]))

    def _in_sentence(self, other: str) -> bool:
        """Whether other words of the task stand in the part's sentence."""
        at, to = self._task.find(other), self._task.find(self._part)
        begin, end = min(at + len(other), to + len(self._part)), max(at, to)
        return at >= 0 <= to and not _STOP.search(self._task, begin, end)

    def in_full(self, option: str, parameter: Parameter) -> str:
        """Return the allowed value that the part names and ``option`` is only some words of."""
        of = spelled(option)
        longer = [
            one
            for one in parameter.enum
            if len(one) > len(option)
            and of.search(" ".join(re.split(r"[\s_-]+", one)))
            and spelled(one).search(self._part)
        ]
        return max(longer, key=len, default=option)

    def _relative(self, kind: str) -> str:
        """Return the one day that is named by its distance from today, "" for none.

        By the part, or by what leads up to it: "I'm in Rome tomorrow: when does the sun set?"
        """
        texts = (self._part, self._wish.context) if kind == "date" else ()
        for text in texts:
            found = kinds.find_values(kind, text)
            if found:
                return found[0] if len(found) == 1 and dates.is_relative(found[0]) else ""
        return ""


def _points(words: str) -> set[int]:
    """Return which persons or things some words point back to, by number."""
    said = set(re.findall(r"[a-z]+", words.lower()))
    return {at for at, forms in enumerate(_POINTERS) if said & forms}

"""Times, speeds and spoons in other units, feet with inches: "how many minutes is 3.5 hours". Pure.

Documents of unit converters name lengths and weights; what they say of times is too little for a
small model, and a task that says so much needs none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner.reading.measures import converted, unit_of, unit_written
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.planner.scene import Offer, Scene, news
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.lexicon import TO_TWELVE, unit_pattern

CONVERTER = "convert an amount between units"
"""What a converter is looked for with."""

TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_UNITS = "milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?"
_NUMBER = (
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|\.\d+|an?|{TO_TWELVE}|half an?|a dozen|a hundred|"
    r"a thousand|a million"
)
_ELSEWHEN = r"(?! (?:ago|before|after|from|until|and)\b)"
_SPEEDS = (
    unit_pattern("kilometer_per_hour", "mile_per_hour", "meter_per_second", "knot")
    + r"|(?:feet|foot) (?:per|a) second"
)
_SPOONS = r"(?:tea|table)spoon(?:ful)?s?|tsps?|tbsps?|cups?"
_OF = r"(?! (?:of|per)\b)"
"""Two cups of flour are a weight."""


def _patterns(units: str, behind: str) -> Iterator[re.Pattern[str]]:
    amount = rf"(?P<amount>{_NUMBER})(?: |(?<=\d))(?P<unit>{units})"
    yield re.compile(
        rf"\bhow many (?P<to>{units})(?: (?:is|are|in|make(?: up)?|does|do|has|have|would|be|there|go into))+"
        rf" {amount}(?!\w){behind}",
        re.IGNORECASE,
    )
    yield re.compile(
        rf"(?<![\w.,-]){amount} (?:in|to|into|as) (?P<to>{units})(?!\w)", re.IGNORECASE
    )


_CONVERSIONS = (
    *_patterns(_UNITS, _ELSEWHEN),
    *_patterns(_SPEEDS, ""),
    *_patterns(_SPOONS, _OF),
)
_MORE = re.compile(
    rf"[\s,;?!.]*\b(?:and|or)\s+(?:(?:what|how) about\s+)?(?:how many (?:is|are|in)\s+)?"
    rf"(?P<words>(?:in|for|is)?\s*(?<![\w.])(?P<amount>{_NUMBER}) (?P<unit>{_UNITS}))\b"
    r"(?=\s*(?:[?.!,;]|$|and\b|or\b))",
    re.IGNORECASE,
)
"""What is left of the same question: "... in 3 weeks? And in 2.5 days?"."""

_FEET = r"(?P<feet>\d)\s?(?:['’′]|ft\.?|foot|feet)\s?(?P<inches>\d{1,2}(?:\.\d)?)\s?(?:\"|''|[”″]|in\b|inch(?:es)?\b)?"
_METRIC = r"cm|centimet(?:er|re)s?|m|met(?:er|re)s?"
_TALL = (
    re.compile(rf"(?<![\w.]){_FEET}\s+(?:in|to|into|as) (?P<to>{_METRIC})\b", re.IGNORECASE),
    re.compile(
        rf"\b(?:how (?:many|tall in)|what(?:'s| is) in) (?P<to>{_METRIC}) (?:is |are |in ){{1,2}}{_FEET}",
        re.IGNORECASE,
    ),
)


class Found(NamedTuple):
    """Words that ask for a conversion, where they begin, and the three values as they are said."""

    words: str
    begin: int
    amount: str
    unit: str
    wanted: str


@lru_cache(maxsize=256)
def find(text: str) -> tuple[Found, ...]:
    """Return the conversions of such units that a text asks for, in order."""
    text = text[:TEXT_LIMIT]
    found = [
        one
        for pattern in _CONVERSIONS
        for match in pattern.finditer(text)
        for one in (_found(match, 0, match["to"]), *_more(text, match))
        if one.unit.lower().rstrip("s") != one.wanted.lower().rstrip("s")
    ]
    found += [
        Found(match[0].strip(), match.start(), _inches(match), "inches", match["to"])
        for pattern in _TALL
        for match in pattern.finditer(text)
    ]
    return tuple(sorted(set(found), key=lambda one: one.begin))


def _found(match: re.Match[str], group: int | str, wanted: str) -> Found:
    words = match[group]
    return Found(words, match.start(group), match["amount"], match["unit"], wanted)


def _more(text: str, match: re.Match[str]) -> Iterator[Found]:
    """Yield what stands right behind a conversion and asks for another one to its unit."""
    more = _MORE.match(text, match.end())
    while more:
        yield _found(more, "words", match["to"])
        more = _MORE.match(text, more.end())


def _inches(match: re.Match[str]) -> str:
    return f"{int(match['feet']) * 12 + float(match['inches']):g}"


def converter(found: str, scene: Scene) -> Offer | None:
    """Return the unit converter on offer for words that ``find`` has found; None for others."""
    if not any(one.words == found for one in find(scene.task)):
        return None
    return next((one for one in scene.offers if len(_roles(one.function.api)) == len(_ROLES)), None)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return what is stated for a parameter of a converter by a part with one conversion, else ""."""
    found = [one for one in find(wish.task) if one.words == wish.part] or find(wish.part)
    if len(found) != 1:
        return ""
    roles = _roles(api)
    values = {"amount": kinds.normalise_value("number", found[0].amount)}
    values |= {"from": found[0].unit, "to": found[0].wanted}
    return next((values[role] for role, one in roles.items() if one == parameter), "")


def in_its_unit(parameter: Parameter, value: str, path: Iterable[Step]) -> str:
    """Return a converter's result in the unit of a parameter that takes it on, else as it is.

    "45 knots in mph, and what Beaufort force is that?": 51.79 are no km/h.
    """
    unit = unit_of(parameter)
    for step in path if unit else ():
        told = step.response if step.ok and isinstance(step.response, dict) else {}
        given = json.loads(step.move.arguments)
        units = {
            written
            for name, one in given.items()
            if _ROLES["to"].fullmatch(words(name)) and (written := unit_written(str(one)))
        }
        if len(units) == 1 and value in {str(one) for one in told.values()} - {
            str(one) for one in given.values()
        }:
            return converted(value, units.pop(), unit) or value
    return value


def is_idle(api: Api, arguments: Mapping[str, object]) -> bool:
    """Whether a converter is called to leave an amount in the unit that it has."""
    roles = _roles(api)
    if len(roles) < len(_ROLES):
        return False
    units = {str(arguments.get(roles[role].name, "")).lower() for role in ("from", "to")}
    return len({unit_written(one) or one.rstrip("s") for one in units}) == 1


def is_answered_so(arguments: Mapping[str, object], path: Iterable[Step]) -> bool:
    """Whether a converter would take an answer for what it is not, to the unit that it has.

    "It's 95 Fahrenheit there. How hot does that feel, in Celsius?": ``feels_like_c`` is Celsius.
    """
    units = {words(name): unit_written(str(one)) for name, one in arguments.items()}
    wanted = {unit for name, unit in units.items() if unit and name.startswith("to ")}
    given = {unit for name, unit in units.items() if unit and name.startswith("from ")}
    if len(wanted) != 1 or len(given) != 1 or wanted == given:
        return False
    amounts = {str(one) for one in arguments.values()}
    return any(
        value in amounts and unit_written(words(name).rpartition(" ")[2]) in wanted
        for step in path
        for name, value in (news(step) if step.ok else ())
    )


_ROLES = {
    "amount": re.compile(r"amount|value|quantity|number"),
    "from": re.compile(r"from unit|unit from|source unit|from"),
    "to": re.compile(r"to unit|unit to|target unit|to"),
}


def _roles(api: Api) -> dict[str, Parameter]:
    """Return the parameters of a converter of units by what they take; fewer of any other API."""
    if "unit" not in f"{words(api.name)} {api.description} {words(api.tool)}".lower():
        return {}
    return {
        role: one
        for one in api.required
        for role, name in _ROLES.items()
        if name.fullmatch(words(one.name)) and not one.enum
    }

"""A number in the unit that its parameter is told in: 40 knots as km/h, 98 Fahrenheit as Celsius.

Only where the parameter's name or document names one unit, and the text another one of its kind
right behind the number. Library: pint, loaded when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import Fact, words
from toolsrv_runtime.values.lexicon import UNITS, same_dimension

if TYPE_CHECKING:
    import pint

_SAID = "|".join(f"(?P<{unit}>{said})" for unit, said in UNITS.items())
_IS_UNIT = re.compile(_SAID, re.IGNORECASE)
_UNIT_BEHIND = re.compile(rf"[ -]?(?:{_SAID})(?![\w/])", re.IGNORECASE)
_SHARES = frozenset({"humidity", "percent", "percentage"})
_MEASURED_AMOUNT = re.compile(
    rf"(?<![\w.,:/])(?P<number>(?:(?<!\d)[-\u2212]|(?:(?<=^)|(?<![\d)%] ))(?:minus|negative) )?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?)[ -]?(?:{_SAID})(?![\w/²³])",
    re.IGNORECASE,
)
_BELOW = re.compile(r"\u2212|(?:minus|negative) ", re.IGNORECASE)
_SECONDS = {"hour": 3_600, "minute": 60, "second": 1}
_DOCUMENTED = re.compile(rf"\b(?:in|as)\s+(?:{_SAID})(?![\w/])", re.IGNORECASE)
_MEASURED = re.compile(r"\b(?:temp|temperature|weight|mass|height|length|distance|depth|volume)\b")
"""What one letter behind it is a unit of."""

_WRITTEN = {"kmh": "km/h", "kph": "km/h", "mph": "miles per hour", "mps": "m/s"}
"""What names have for units, as people write it."""

DECIMALS, SMALL = 2, 6
"""Decimals that a converted number keeps, and one below 1."""

_RATE = re.compile(r"\bper\b(?! hour)", re.IGNORECASE)
_LASTING = re.compile(
    r"(?<![\w.,:])(\d{1,3})\s?(?:h|hrs?|hours?)(?:,|\s|\sand\s|,\sand\s)?\s?(\d{1,2})\s?m(?:ins?|inutes?)?(?!\w)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"[\d.,]+\s?[^\W\d]+")
_FOR_EACH = re.compile(
    r"\s?(?:/|per\b|an? (?:hour|minute|second)\b|to (?:the|an?) (?:\w+ )?(?:gal(?:lon)?|lit(?:er|re))\b)",
    re.IGNORECASE,
)
_TO_EACH = re.compile(r"(?:\bper|/)\s*$", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_CALENDAR = frozenset({"year", "month", "week", "day", "hour", "minute", "second"})
"""Names of parameters that are no amount: the year of a holiday."""

_GENERIC = frozenset(
    {"result", "value", "number", "amount", "total", "sum", "answer", "scaled", "difference"}
)


def in_its_unit(parameter: Parameter, value: str, part: str, task: str) -> str:
    """Return a number as its parameter's unit has it, itself where nothing says another one.

    What the part says counts, else what the task does.
    """
    unit = unit_of(parameter) if _NUMBER.fullmatch(value) else ""
    if not unit:
        return value
    told = _behind(value, part) or _behind(value, task)
    if len(told) != 1 or unit in told:
        return value
    return converted(value, told.pop(), unit) or value


_SYSTEMS = frozenset({"metric", "imperial", "us", "british"})
_IN = re.compile(r"\b(?:in|into|to) ([a-z]{2,12})\b")


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the one amount of a part, or what leads up to it, that has a unit of a parameter's measure.

    In the parameter's unit: of "a 10 Ah battery, 500 mA load" 10,000 is a capacity in mAh. "" where
    another parameter measures the same.
    """
    unit = unit_of(parameter)
    if (
        not unit
        or parameter.name.lower() in _CALENDAR
        or parameter.enum
        or any(same_dimension(unit_of(one), unit) for one in api.parameters if one is not parameter)
    ):
        return ""
    for text in (wish.part, wish.context):
        found = {
            read
            for match in _MEASURED_AMOUNT.finditer(text)
            if not _FOR_EACH.match(text, match.end())
            and not _TO_EACH.search(text, 0, match.start())
            if (read := converted(_plain(match), match.lastgroup or "", unit))
        }
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _plain(match: re.Match[str]) -> str:
    """Return the number of an amount, below zero where a sign says so."""
    return _BELOW.sub("-", match["number"]).replace(",", "")


def lasting(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one time of hours and minutes that a part, or what leads up to it, tells, else "".

    In the parameter's unit: "42 km took 1 h 45 min" are 1.75 hours.
    """
    unit = unit_of(parameter)
    for text in (wish.part, wish.context, wish.task) if unit in _SECONDS else ():
        found = {match.groups() for match in _LASTING.finditer(text)}
        if len(found) == 1:
            hours, minutes = found.pop()
            seconds = int(hours) * _SECONDS["hour"] + int(minutes) * _SECONDS["minute"]
            return f"{seconds / _SECONDS[unit]:.6g}"
    return ""


def unit_of_answer(
    parameter: Parameter, written: Collection[str], seen: Iterable[Fact], task: str
) -> str:
    """Return the unit of an answer's number that a call converts, by that number's name; else "".

    ``distance_km`` is 2462: "I need it in nautical miles" converts from km.
    """
    name = words(parameter.name).split()
    if "unit" not in name or "to" in name:
        return ""
    numbers = {one for one in written if _NUMBER.fullmatch(one)}
    units = {
        words(fact).rpartition(" ")[2]
        for fact, value in seen
        if value in numbers and not re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.])", task)
    }
    told = {one for one in units if len(one) > 1 and _IS_UNIT.fullmatch(one)}
    return _WRITTEN.get(one := told.pop(), one) if len(units) == len(told) == 1 else ""


def whole_unit(parameter: Parameter, value: str, task: str) -> str:
    """Return a unit with all its words: "nautical miles" where "nautical" was taken of them.

    For what is no unit ("they don't do metric") the one that the task wants something in.
    """
    if "unit" in words(parameter.name).split():
        for match in re.finditer(rf"(?<!\w){re.escape(value)} \w+", task, re.IGNORECASE):
            if _IS_UNIT.fullmatch(match[0]):
                return match[0]
        if "to" in words(parameter.name).split() and value.lower() in _SYSTEMS:
            wanted = {one for one in _IN.findall(task) if _IS_UNIT.fullmatch(one)}
            return wanted.pop() if len(wanted) == 1 else value
    return value


def is_rate(said: str, task: str) -> bool:
    """Whether a number with its unit stands only within rates: "22 km" of 22 km/h, l per 100 km."""
    if not _AMOUNT.fullmatch(said):
        return False
    places = list(re.finditer(rf"(?<![\w.,]){re.escape(said)}(?!\w)", task, re.IGNORECASE))
    return bool(places) and all(
        _FOR_EACH.match(task, one.end()) or _TO_EACH.search(task, 0, one.start()) for one in places
    )


def origins(parameter: Parameter, value: str, task: str) -> set[str]:
    """Return the numbers of a task that are a value in another unit: 10 of "10 Ah" for 10,000 mAh."""
    unit = unit_of(parameter)
    return {
        match["number"]
        for match in (_MEASURED_AMOUNT.finditer(task) if unit else ())
        if converted(_plain(match), match.lastgroup or "", unit) == value
    }


def is_share(parameter: Parameter) -> bool:
    """Whether a parameter is a share of a hundred, by its name: humidity, a percentage."""
    return not _SHARES.isdisjoint(words(parameter.name).split())


def has_unit(said: str, task: str) -> bool:
    """Whether a number stands only with units of measurement behind it: 40 of "40kph"."""
    number = _NUMBER.search(said)
    if number is None:
        return False
    places = list(re.finditer(rf"(?<![\w.,]){re.escape(number[0])}(?![\d.,]\d?)", task))
    return bool(places) and all(_UNIT_BEHIND.match(task, one.end()) for one in places)


def is_of_another(parameter: Parameter, said: str, task: str) -> bool:
    """Whether a number of a task stands only with units of another measure: 450 of "450 km" as km/h."""
    if not unit_of(parameter) or not _NUMBER.fullmatch(said):
        return False
    places = list(re.finditer(rf"(?<![\w.,]){re.escape(said)}(?![\d.,]\d?)", task))
    return bool(places) and not any(fits(parameter, task, one.end()) for one in places)


def fits(parameter: Parameter, task: str, end: int) -> bool:
    """Whether no unit of another measure stands behind a number that ends there in a task."""
    unit, behind = unit_of(parameter), _UNIT_BEHIND.match(task, end)
    return not unit or behind is None or same_dimension(behind.lastgroup or "", unit)


def unit_of(parameter: Parameter) -> str:
    """Return the one unit that a parameter of numbers is told in, "" for none or several."""
    if parameter.type.upper() != "NUMBER":
        return ""
    return _unit_named(parameter.name, parameter.description)


@lru_cache(maxsize=1024)
def _unit_named(name: str, description: str) -> str:
    name = words(name)
    if _RATE.search(name):
        return ""
    # Alone it is the latter of two: a time is told in seconds.
    last = name.rpartition(" ")[2] if name != "second" else ""
    if (len(last) > 1 or _MEASURED.search(name)) and (named := _IS_UNIT.fullmatch(last)):
        return named.lastgroup or ""
    said = {match.lastgroup or "" for match in _DOCUMENTED.finditer(description)}
    return said.pop() if len(said) == 1 and not _RATE.search(description) else ""


def _behind(number: str, text: str) -> set[str]:
    """Return the units that stand right behind a number in a text."""
    digits = number.removeprefix("-")
    told = re.compile(rf"(?<![\w.,]){re.escape(digits)}\s?(?:{_SAID})(?![\w/])", re.IGNORECASE)
    return {match.lastgroup or "" for match in told.finditer(text)}


def may_be(parameter: Parameter, fact: str) -> bool:
    """Whether an answer's number of this name may be a value of a parameter.

    A parameter in a unit takes a number in one that measures the same, one of its own words, or one
    that tells no more than that it is a result: 8 Beaufort are no temperature.
    """
    unit = unit_of(parameter)
    name = words(fact).split()
    own = unit_written(name[-1]) if name and (len(name[-1]) > 1 or name[-1] in "cf") else ""
    if not unit or not name:
        return True
    if own:
        return same_dimension(own, unit)
    return not _GENERIC.isdisjoint(name) or not set(words(parameter.name).split()).isdisjoint(name)


def unit_written(said: str) -> str:
    """Return the name of the unit that is written so, "" for what is none."""
    match = _IS_UNIT.fullmatch(said)
    return (match.lastgroup or "") if match else ""


def converted(number: str, source: str, target: str) -> str:
    """Return a number of one unit in another, "" where they measure different things."""
    if source == target:
        return number
    if not same_dimension(source, target):
        return ""
    import pint  # noqa: PLC0415 - half a second, for few tasks

    try:
        found = _registry().Quantity(float(number), source).to(target).magnitude
    except (pint.PintError, ArithmeticError, ValueError):
        return ""
    return f"{round(float(found), DECIMALS if abs(found) >= 1 else SMALL):.10g}"


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry[float]:
    import pint  # noqa: PLC0415 - as above

    return pint.UnitRegistry(cache_folder=None, autoconvert_offset_to_baseunit=True)

"""Amounts told by words alone: "a cup", "half a pint", "a quarter of a mile", "a couple of pints". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.grounding import refers
from toolsrv_runtime.planner.reading.measures import in_its_unit, unit_of
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_METRE = r"met(?:er|re)s?"
_UNIT = (
    rf"(?:(?:square|cubic|nautical|fluid) )?(?:(?:kilo|centi|milli)?(?:{_METRE}|grams?)|inch(?:es)?|foot|"
    r"feet|yards?|miles?|kilos?|ounces?|pounds?|stones?|tons?|tonnes?|(?:milli|centi)?lit(?:er|re)s?|"
    r"pints?|quarts?|gallons?|cups?|tablespoons?|teaspoons?|eggs?|acres?|hectares?)"
)
"""What amounts are told of, in full: one letter stands behind digits."""

_SHARES = {"half": 1 / 2, "quarter": 1 / 4, "third": 1 / 3}
_COUNTS = {"half a dozen": 6, "a dozen": 12, "a couple of": 2, "a couple": 2, "a pair of": 2}
_TIMES = {"two": 2, "three": 3}
_AMOUNT = re.compile(
    r"(?<![\w-])(?<!th of )(?<!ths of )(?<!most of )(?<!part of )(?:"
    r"(?:(?P<times>an?|one|two|three)[ -])?(?P<share>half|quarter|third)s?(?: of an?| of| an?|(?P<bare>))"
    rf"|(?P<count>{'|'.join(_COUNTS)})|an?) (?P<unit>{_UNIT})(?P<more> and a half)?"
    r"(?![\w-]| (?:per|an?|each)\b)",
    re.IGNORECASE,
)
_TAKES_ONE = re.compile(r"\b(?:amount|quantity|value|number|volume|weight|mass|length|distance)\b")
_DECIMALS = 6


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the amount that a part, or what leads up to it, tells by words before a unit, else "".

    Only for the one number that a function requires, in its own unit where it has one, and where
    no other number is told. A part that points back to an answer is about that.
    """
    numbers = [one for one in api.required if kinds.value_kind(one, api) == "number"]
    takes_one = _TAKES_ONE.search(words(parameter.name)) or unit_of(parameter)
    if numbers != [parameter] or not takes_one or parameter.enum:
        return ""
    for text in (wish.part, wish.context):
        told = list(_AMOUNT.finditer(text))
        if told or refers(wish.part):
            found = {_read(parameter, one) for one in told}
            more = kinds.find_values("number", _AMOUNT.sub(" ", text)) or any(map(_goes_on, told))
            return found.pop() if len(found) == 1 and not more else ""
    return ""


def _goes_on(match: re.Match[str]) -> bool:
    """Whether a share is the end of a number: "one and a half cups"."""
    return match["bare"] is not None and match.string[: match.start()].lower().endswith(" and ")


def _read(parameter: Parameter, match: re.Match[str]) -> str:
    """Return what words say as a number in the unit of a parameter."""
    amount: float = _COUNTS.get((match["count"] or "").lower(), 1)
    if match["share"]:
        times = (match["times"] or "").lower()
        amount = _SHARES[match["share"].lower()] * _TIMES.get(times, 1)
    amount += 0.5 if match["more"] else 0
    number = f"{round(amount, _DECIMALS):.10g}"
    return in_its_unit(parameter, number, f"{number} {match['unit']}", "")

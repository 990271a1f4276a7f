"""An amount for each of a span: "15 minutes a day" as hours a day, "10 hours a week", "around the clock". Pure.

Only where a parameter is named so itself (``hours_per_day``).
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.measures import converted, unit_written
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import normalise_value
from toolsrv_runtime.values.lexicon import CURRENCY_MARKS, TO_TWELVE, UNITS

# A night or an evening is one of each day.
_DAYS = {"day": 1, "week": 7, "month": 365.25 / 12, "year": 365.25}
_ADVERBS = {
    "daily": "day",
    "nightly": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
}
_NAME = re.compile(rf"(?P<unit>[a-z]+) per (?P<span>{'|'.join(_DAYS)})")
_AMOUNT = re.compile(
    rf"(?<![\w.,:])(?P<amount>\d+(?:\.\d+)?|{TO_TWELVE}|half an?|an?)[ -]?"
    rf"(?P<unit>{'|'.join(UNITS.values())})(?P<half> and a half)?\s?"
    r"(?:(?:/|\b(?:per|an?|each|every|of (?:an?|every|each))\b)\s?"
    r"(?P<span>day|night|evening|morning|week|month|year)\b"
    rf"|(?P<adverb>{'|'.join(_ADVERBS)})\b)",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"\b(?:24/7|(?:a)?round the clock|(?:all )?day and (?:all )?night|non-?stop|all day(?: long)?,? every day"
    r"|24 hours)\b(?! (?:a|per|each|every) (?:week|month|year))",
    re.IGNORECASE,
)
_PAID = re.compile(r"(daily|weekly|monthly|yearly) (?!rate)\w+$")
_SPENT = re.compile(
    rf"(?<![\w.,])[€$£]?\s?(?P<amount>\d+(?:,\d{{3}})*(?:\.\d+)?)\s?{CURRENCY_MARKS}?"
    rf"(?:(?:\s?/\s?|\s(?:per|an?|each|every)\s)(?P<span>day|week|month|year)\b|\s(?P<adverb>{'|'.join(_ADVERBS)})\b)",
    re.IGNORECASE,
)
_HOURS = 24


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one amount for a span that a part, or else the task, tells, for such a parameter.

    In the parameter's own unit and span; "" for none or several.
    """
    if money := _paid(parameter, wish):
        return money
    named = _NAME.fullmatch(words(parameter.name))
    unit = unit_written(named["unit"]) if named else ""
    if named is None or not unit:
        return ""
    for text in (wish.part, wish.context, wish.task):
        found = {_read(match, unit, _DAYS[named["span"]]) for match in _AMOUNT.finditer(text)}
        if found:
            return found.pop() if len(found) == 1 else ""
    if unit == "hour" and named["span"] == "day" and _ALWAYS.search(wish.task):
        return str(_HOURS)
    return ""


def _paid(parameter: Parameter, wish: Wish) -> str:
    """Return the one amount of money for a span as a parameter has it: "50 a week" of ``monthly_saving``."""
    named = _PAID.match(words(parameter.name))
    if named is None or parameter.type.upper() != "NUMBER":
        return ""
    days = _DAYS[_ADVERBS[named[1]]]
    for text in (wish.part, wish.context, wish.task):
        found = {
            f"{round(float(match['amount'].replace(',', '')) * days / _DAYS.get(_span(match), 1), 2):.10g}"
            for match in _SPENT.finditer(text)
        }
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _span(match: re.Match[str]) -> str:
    return _ADVERBS.get((match["adverb"] or "").lower()) or match["span"].lower()


def _read(match: re.Match[str], unit: str, days: float) -> str:
    said = match["amount"].lower()
    half = said.startswith("half")
    amount = 0.5 if half else float(normalise_value("number", "1" if said in {"a", "an"} else said))
    amount += 0.5 if match["half"] else 0
    here = converted(f"{amount:.10g}", unit_written(match["unit"]), unit)
    return f"{round(float(here) * days / _DAYS.get(_span(match), 1), 6):.10g}" if here else ""

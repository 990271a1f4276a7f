"""Fractions of an amount: "1/3 of 450 g", "two thirds of 90 minutes". Pure.

One that is all a question asks for is a sum, which a calculator answers. One with more behind it,
"1/3 of 450 g in ounces", is that amount: 150 g.
"""

from __future__ import annotations

import re
from fractions import Fraction

from toolsrv_runtime.values.lexicon import (
    CURRENCY_MARKS,
    FRACTION_SIGN_PATTERN,
    FRACTION_SIGNS,
    UNITS,
)

_N = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9,
}  # fmt: skip
_PARTS = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6,
    "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "twelfth": 12, "hundredth": 100,
}  # fmt: skip
_UNIT = rf"(?:{'|'.join(UNITS.values())}|{CURRENCY_MARKS}|cups?|guests?|people)"
_FRACTION_OF = re.compile(
    r"(?<![\w.,/:$€£%+*^=-])(?<!on )(?<!by )(?<!at )(?<![+*/^=-] )(?:(?:the )?"
    rf"(?:(?P<over>[1-9]\d?)/(?P<under>[2-9]|[1-9]\d{{1,2}})(?:rds?|ths?)?|(?P<sign>{FRACTION_SIGN_PATTERN})"
    rf"|(?P<count>{'|'.join(_COUNTS)}|[1-9])[ -](?P<part>{'|'.join(_PARTS)})s?|half))"
    rf" of (?:the |my |our |a |an )?(?P<before>{CURRENCY_MARKS}\s?)?(?P<of>{_N})"
    rf"(?P<unit>\s?{_UNIT})?(?![\w/%]|[.,:]\d|\s?[-+*/^%×÷]|\s(?:percent|times|plus|minus)\b)",
    re.IGNORECASE,
)
_ALL = re.compile(r"(?: each| please| exactly)?\s*(?:[?.!;,]|$| (?:and|is|are)\b)", re.IGNORECASE)
"""What stands behind a fraction that is wanted itself."""

_IN_ANOTHER = re.compile(rf"\bhow many {_UNIT} (?:is|are|in|does|do|has)(?: in)? $", re.IGNORECASE)
"""What stands before one that is to be converted: "how many minutes is a quarter of 3 hours"."""

_NEAR = 60
"""Characters before a fraction in which that stands."""

_YEAR = re.compile(r"(?:19|20)\d\d")


def as_sums(text: str) -> str:
    """Return a text with fractions of amounts as sums or as amounts; O(length)."""
    return _FRACTION_OF.sub(_told, text)


def _told(match: re.Match[str]) -> str:
    fraction = _fraction(match)
    number = match["of"].replace(",", "")
    unit, before = match["unit"] or "", match["before"] or ""
    if not unit and not before and _YEAR.fullmatch(number) and fraction.denominator in {2, 4}:
        return match[0]  # of the year
    converted = _IN_ANOTHER.search(match.string, max(0, match.start() - _NEAR), match.start())
    if not converted and _ALL.match(match.string, match.end()):
        return f"{fraction.numerator} / {fraction.denominator} * {number}"
    value = float(fraction * Fraction(number))
    return f"{before}{round(value, 6):.10g}{unit}"


def _fraction(match: re.Match[str]) -> Fraction:
    if match["sign"]:
        return FRACTION_SIGNS[match["sign"]]
    if match["over"]:
        return Fraction(int(match["over"]), int(match["under"]))
    if not match["count"]:
        return Fraction(1, 2)
    count = match["count"].lower()
    return Fraction(_COUNTS.get(count) or int(count), _PARTS[match["part"].lower()])

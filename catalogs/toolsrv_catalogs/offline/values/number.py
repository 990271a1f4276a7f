"""Numbers and measures as people write them: ``1,200``, ``12%``, ``70 kg``, ``1h 30min``.

A measure without a unit is taken in the unit that its parameter names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_registry.errors import UsageError

_LIMIT = 1e15
_WIDTH = 60
_KNOWN_DIGITS = 15
"""Of a float."""
_NUMBER = re.compile(
    r"[$€£¥]?\s*([+-]?)\s*[$€£¥]?\s*"
    r"((?:[0-9]{1,3}(?:[,' \u00a0\u202f_][0-9]{3})+|[0-9]+)?)((?:[.,][0-9]+)?)([eE][+-]?[0-9]{1,2})?\s*%?"
)


def parse_number(text: str) -> float:
    """Return the number written in ``text``; a lone comma before other than 3 digits is a point.

    Raises:
        UsageError: not a number, or beyond 1e15.
    """
    match = _NUMBER.fullmatch(text.strip().replace("\u2212", "-")) if len(text) < _WIDTH else None
    if match is None or not (match[2] or match[3]):
        raise UsageError(f"{quoted(text)} is not a number; write it like 42, 3.5 or 1,200")
    whole = re.sub(r"[^0-9]", "", match[2]) or "0"
    value = float(f"{match[1]}{whole}{match[3].replace(',', '.')}{match[4] or ''}")
    if abs(value) > _LIMIT:
        raise UsageError(f"{quoted(text)} is beyond the largest number accepted, 1e15")
    return value


def between(low: float, high: float) -> Field:
    """Return a field for a number from ``low`` to ``high``, both included."""

    def parse(text: str) -> float:
        value = parse_number(text)
        if not low <= value <= high:
            raise UsageError(f"{quoted(text)} is outside {tidy(low)} to {tidy(high)}")
        return value

    return Field(parse)


def whole(low: int, high: int) -> Field:
    """Return a field for a whole number from ``low`` to ``high``, both included."""

    def parse(text: str) -> int:
        digits = re.sub(r"[,_' \u00a0\u202f]", "", text) if len(text) < _WIDTH else ""
        if re.fullmatch(r"[+-]?[0-9]{1,40}", digits):
            value = int(digits)
        else:
            number = parse_number(text)
            value = int(number)
            if value != number:
                raise UsageError(f"{quoted(text)} is not a whole number")
        if not low <= value <= high:
            raise UsageError(f"{quoted(text)} is outside {low} to {high}")
        return value

    return Field(parse)


def parse_numbers(text: str) -> list[float]:
    """Return the numbers of a list such as ``4, 8, 15`` or ``4 8 15`` (at most 500).

    A comma separates here, so thousands are written without one.
    """
    parts = [part for part in re.split(r"[,;\s]+|\band\b", text.strip("[]() ")) if part]
    if not parts or len(parts) > 500:
        raise UsageError("give 1 to 500 numbers with commas between them, like 4, 8, 15")
    return [parse_number(part) for part in parts]


def tidy(value: float, digits: int = 4) -> float | int:
    """Return ``value`` rounded to ``digits`` decimals, as an int where nothing is lost."""
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def significant(value: float, digits: int = 8) -> float | int:
    """Return ``value`` rounded to ``digits`` significant digits, as an int where possible.

    Digits before the point are all kept, as far as a float knows them: no zero stands for one.
    """
    before_point = len(str(int(abs(value)))) if math.isfinite(value) else 0
    kept = max(digits, min(before_point, _KNOWN_DIGITS))
    rounded = float(f"{value:.{kept}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


Number = Annotated[float, Field(parse_number)]
Positive = Annotated[float, between(1e-9, 1e12)]
NonNegative = Annotated[float, between(0, 1e12)]
Numbers = Annotated[list[float], Field(parse_numbers)]
Seed = Annotated[int, whole(0, 2**53)]


_PARTS = re.compile(r"([0-9][0-9.,]*)\s*([a-z'\"\u2032\u2033]*)\s*")

_KILOGRAMS = {
    "": 1.0, "kg": 1.0, "kgs": 1.0, "kilo": 1.0, "kilos": 1.0, "kilogram": 1.0, "kilograms": 1.0,
    "g": 0.001, "lb": 0.45359237, "lbs": 0.45359237, "pound": 0.45359237, "pounds": 0.45359237,
    "st": 6.35029318, "stone": 6.35029318,
}  # fmt: skip
_CENTIMETRES = {
    "": 1.0, "cm": 1.0, "centimeters": 1.0, "centimetres": 1.0, "m": 100.0, "meter": 100.0,
    "meters": 100.0, "metres": 100.0, "metre": 100.0, "ft": 30.48, "foot": 30.48, "feet": 30.48,
    "'": 30.48, "\u2032": 30.48, "in": 2.54, "inch": 2.54, "inches": 2.54, '"': 2.54,
    "\u2033": 2.54, "''": 2.54,
}  # fmt: skip
_KILOMETRES = {
    "": 1.0, "km": 1.0, "kms": 1.0, "kilometer": 1.0, "kilometers": 1.0, "kilometre": 1.0,
    "kilometres": 1.0, "k": 1.0, "m": 0.001, "meters": 0.001, "metres": 0.001,
    "mi": 1.609344, "mile": 1.609344, "miles": 1.609344,
}  # fmt: skip
_MARATHON = 42.195
_SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "m": 60.0, "min": 60.0,
    "mins": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hrs": 3600.0,
    "hour": 3600.0, "hours": 3600.0, "": 60.0,
}  # fmt: skip
_NEXT_SMALLER = {30.48: 2.54, 100.0: 1.0, 3600.0: 60.0, 60.0: 1.0, 6.35029318: 0.45359237}


def _total(text: str, units: Mapping[str, float]) -> float | None:
    plain = text.strip().lower().replace(" and ", " ")
    total, end, last = 0.0, 0, 0.0
    while end < len(plain):
        match = _PARTS.match(plain, end)
        if match is None or match[2] not in units:
            return None
        factor = units[match[2]]
        if end and not match[2]:  # the bare second part of 5'9, 1h30, 11 stone 4
            if last not in _NEXT_SMALLER:
                return None
            factor = _NEXT_SMALLER[last]
        total, end, last = total + parse_number(match[1]) * factor, match.end(), factor
    return total


def measured(units: Mapping[str, float], low: float, high: float, examples: str) -> Field:
    """Return a field for a sum of amounts with ``units`` (factor by unit; ``""`` = no unit)."""

    def parse(text: str) -> float:
        total = _total(text, units) if len(text) < 60 else None
        if total is None:
            raise UsageError(f"{quoted(text)} is not understood; write it like {examples}")
        if not low <= total <= high:
            raise UsageError(f"{quoted(text)} is out of range; write it like {examples}")
        return total

    return Field(parse)


def _clock(text: str) -> float:
    if match := re.fullmatch(r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2})(?:\.[0-9]+)?", text):
        total = int(match[1] or 0) * 3600 + int(match[2]) * 60 + int(match[3])
        if total:
            return float(total)
    seconds: float = measured(_SECONDS, 1, 3.6e6, "45 min, 1:30:00 or 1h 30min").parse(text)
    return seconds


def _height(text: str) -> float:
    plain = text.strip()
    if re.fullmatch(r"[012]?[.,][0-9]{1,3}", plain):  # 1.75 can only be metres
        plain += "m"
    height: float = measured(_CENTIMETRES, 40, 280, "175 cm, 1.75 m or 5'9\"").parse(plain)
    return height


def _distance(text: str) -> float:
    race = re.fullmatch(r"(?:an?\s+)?(half|full)?[\s-]*marathon", text.strip().lower())
    plain = f"{_MARATHON / (2 if race[1] == 'half' else 1)} km" if race else text
    distance: float = measured(_KILOMETRES, 1e-3, 1e6, "10 km or 6.2 miles").parse(plain)
    return distance


Weight = Annotated[float, measured(_KILOGRAMS, 1, 700, "70 kg or 154 lb")]
"""Kilograms; a bare number is kilograms."""
Height = Annotated[float, Field(_height)]
"""Centimetres; a bare number is centimetres, or metres where it is below 3 with a point."""
Distance = Annotated[float, Field(_distance)]
"""Kilometres; a bare number is kilometres, a marathon 42.195."""
Duration = Annotated[float, Field(_clock)]
"""Seconds; a bare number is minutes, ``45:30`` is minutes and seconds."""

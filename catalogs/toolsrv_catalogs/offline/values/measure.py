"""Weights, lengths and durations with or without their unit: ``70 kg``, ``5'9"``, ``1h 30min``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.number import parse_number
from toolsrv_registry.errors import UsageError

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

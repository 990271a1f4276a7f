"""Arguments of a call as the numbers of an expression: "387 km", "5:30", "8 percent". Pure.

Every reader returns an operand in the unit of its name, or "" for what is no such value. What is
not positive is none: what a share of less than nothing is meant to be only a provider knows.
"""

from __future__ import annotations

import re

_LONGEST_PREFIX = 30
LIST_LIMIT = 20
"""Numbers of a list that are still worked out."""

_DIGITS = r"[0-9]+(?:\.[0-9]+)?"
_NUMBER = rf"(?P<number>[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?|{_DIGITS})"
_MILE_KM, _POUND_KG, _INCH_M = "1.609344", "0.45359237", "0.0254"
_RACES = {"half marathon": "21.0975", "marathon": "42.195"}


def number(text: str) -> str:
    """Return a bare number."""
    return _read(text, "")


def percent(text: str) -> str:
    """Return a number that may be called percent."""
    return _read(text, r" ?(?:%|percent|per cent)?")


def kilometers(text: str) -> str:
    """Return a distance, also of a race by its name."""
    race = text.strip().lower().removeprefix("a ").replace("-", " ")
    if race in _RACES:
        return _RACES[race]
    miles = _read(text, r" ?(?:mi|miles?)")
    plain = _read(text, r" ?(?:km|kms|k|kilomet(?:er|re)s?)")
    return f"({miles} * {_MILE_KM})" if miles else plain


def kilograms(text: str) -> str:
    """Return a weight."""
    pounds = _read(text, r" ?(?:lbs?|pounds?)")
    return f"({pounds} * {_POUND_KG})" if pounds else _read(text, r" ?(?:kgs?|kilos?|kilograms?)")


def meters(text: str) -> str:
    """Return a height."""
    feet = re.fullmatch(
        r"([1-9]) ?(?:'|ft|feet|foot) ?([0-9]{1,2}) ?(?:\"|''|in|inch|inches)?", text
    )
    if feet:
        return f"({int(feet[1]) * 12 + int(feet[2])} * {_INCH_M})"
    centimeters = _read(text, r" ?(?:cm|centimet(?:er|re)s?)")
    if centimeters:
        return f"({centimeters} / 100)"
    return _read(text, r" ?(?:m|met(?:er|re)s?)")


def minutes(text: str) -> str:
    """Return a time on the watch, ``M:SS`` or ``H:MM:SS``, one in hours and minutes, or minutes."""
    clock = re.fullmatch(r"(?:([0-9]{1,2}):)?([0-9]{1,3}):([0-9]{2})(?: ?(?:min\w*)?/km)?", text)
    if clock:
        whole = int(clock[1] or 0) * 60 + int(clock[2])
        return f"({whole} + {int(clock[3])} / 60)" if int(clock[3]) else str(whole or "")
    spoken = re.fullmatch(
        r"(?:([0-9]{1,2}) ?(?:h|hrs?|hours?))?(?:,| and)? ?(?:([0-9]{1,3}) ?(?:m|mins?|minutes?))?",
        text,
    )
    whole = int(spoken[1] or 0) * 60 + int(spoken[2] or 0) if spoken else 0
    return str(whole or number(text))


def nothing(text: str) -> str:
    """Return 0 for what is none at all."""
    return "0" if re.fullmatch(r"0+(?:\.0+)?", text) else ""


def host_bits(text: str) -> str:
    """Return the bits of an IPv4 network's addresses that its prefix leaves to hosts, as a sum."""
    match = re.fullmatch(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}/([0-9]{1,2})", text)
    return f"32 - {match[1]}" if match and int(match[1]) <= _LONGEST_PREFIX else ""


def mean(text: str) -> str:
    """Return the mean of a list of numbers, as a sum and how many they are."""
    numbers = [number(one) for one in re.split(r"\s*(?:;|,\s|\s&\s|\band\b|\s)\s*", text) if one]
    if not 2 <= len(numbers) <= LIST_LIMIT or "" in numbers:
        numbers = [number(one) for one in re.split(r"\s*(?:,|\band\b)\s*", text) if one]
    if not 2 <= len(numbers) <= LIST_LIMIT or "" in numbers:
        return ""
    return f"({' + '.join(numbers)}) / {len(numbers)}"


def _read(text: str, unit: str) -> str:
    match = re.fullmatch(f"{_NUMBER}{unit}", text.strip(), re.IGNORECASE)
    plain = match["number"].replace(",", "") if match else ""
    return plain if plain and float(plain) > 0 else ""

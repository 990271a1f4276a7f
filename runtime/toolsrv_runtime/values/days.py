"""Days and years that are told by their distance from this one: tomorrow, next Friday, last year."""

from __future__ import annotations

import datetime as dt
import re

_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FAR = {"the day after tomorrow": 2, "the day before yesterday": -2}
_WEEKDAY = re.compile(rf"(?:on )?(this|next|coming|last) ({'|'.join(_NAMES)})", re.IGNORECASE)

NEAR = ("today", "tomorrow", "yesterday")
"""APIs take these as they are, or by a clock of their own."""

PATTERN = rf"{'|'.join(_FAR)}|{'|'.join(NEAR)}|(?:this|next|coming|last) (?:{'|'.join(_NAMES)})"
"""A regular expression of all of them, letter case aside."""

_YEARS = {"this": 0, "current": 0, "present": 0, "next": 1, "coming": 1, "last": -1, "past": -1}
YEARS = rf"(?:the )?(?:{'|'.join(_YEARS)}) year"
"""The same of years."""

_YEAR = re.compile(rf"(?:the )?({'|'.join(_YEARS)}) year", re.IGNORECASE)


def today() -> dt.date:
    """Return the day that it is here."""
    return dt.datetime.now().astimezone().date()


def read_year(said: str, day: dt.date) -> str:
    """Return a year that is told by its distance from that of ``day``; anything else as it is."""
    match = _YEAR.fullmatch(" ".join(said.split()))
    return str(day.year + _YEARS[match[1].lower()]) if match else said


def is_relative(said: str) -> bool:
    """Whether a text is such a day and nothing else."""
    plain = " ".join(said.lower().split())
    return plain in NEAR or plain in _FAR or _WEEKDAY.fullmatch(plain) is not None


def read(said: str, today: dt.date) -> str:
    """Return the day in ISO 8601, seen from ``today``; what no day is, and ``NEAR``, as it is.

    "Next Friday" is the first one behind today, "this Friday" may be today.
    """
    plain = " ".join(said.lower().split())
    if plain in _FAR:
        return (today + dt.timedelta(days=_FAR[plain])).isoformat()
    match = _WEEKDAY.fullmatch(plain)
    if match is None:
        return said
    ahead = (_NAMES.index(match[2]) - today.weekday()) % 7
    if match[1] == "last":
        ahead -= 7
    elif not ahead and match[1] == "next":
        ahead = 7
    return (today + dt.timedelta(days=ahead)).isoformat()

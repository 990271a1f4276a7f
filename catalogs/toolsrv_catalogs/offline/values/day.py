"""Dates and times of day as people write them.

``2026-03-05``, ``March 5, 2026``, ``5 March 2026``, ``today``; ``14:30``, ``2:30 pm``, ``noon``.
A purely numeric day/month order is refused because readers disagree about it. "Now" is the
machine's clock, read in one place (``now``).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_registry.errors import UsageError

_ISO = "write it like 2026-03-05T14:30:00+02:00"
ACCEPTED = "write it like 2026-03-05 or March 5, 2026"
YEARS = (1000, 2999)

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_RELATIVE = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
_NUMERIC = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ].*)?", re.DOTALL)
_AMBIGUOUS = re.compile(r"[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}")
_WEEKDAY = re.compile(
    r"^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+", re.IGNORECASE
)
_MONTH_FIRST = re.compile(r"([a-z]+)\.? +([0-9]{1,2})(?:st|nd|rd|th)?(?:,? +([0-9]{4}))?")
_DAY_FIRST = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?(?: +of)? +([a-z]+)\.?(?:,? +([0-9]{4}))?")
_TIME = re.compile(r"([0-9]{1,2})(?:[:.h]([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?)? *([ap]\.?m\.?)?")
_OFFSET = re.compile(r"(.*:[0-9]{2}(?:\.[0-9]+)?) ?([Zz]|[+-][0-9]{2}:?[0-9]{2})")
_YEAR = re.compile(r"[0-9]{4}")
_NAMED_TIMES = {"noon": time(12), "midday": time(12), "midnight": time(0)}


def now() -> datetime:
    """Return the present moment, in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Return the present day in UTC."""
    return now().date()


def parse_date(text: str) -> date:
    """Return the date written in ``text``; without a year the present one is meant.

    Raises:
        UsageError: not a date, or outside the years 1000 to 2999.
    """
    plain = _WEEKDAY.sub("", " ".join(text.split())).lower().removeprefix("the ")
    if plain in _RELATIVE:
        return today() + timedelta(days=_RELATIVE[plain])
    if len(plain) < 60:
        if match := _NUMERIC.fullmatch(plain.upper()):
            return _checked(text, int(match[1]), int(match[2]), int(match[3]))
        if match := _MONTH_FIRST.fullmatch(plain):
            return _checked(text, _year(match[3]), _month(text, match[1]), int(match[2]))
        if match := _DAY_FIRST.fullmatch(plain):
            return _checked(text, _year(match[3]), _month(text, match[2]), int(match[1]))
        if _AMBIGUOUS.fullmatch(plain):
            raise UsageError(f"{quoted(text)} could be two dates; {ACCEPTED}")
    raise UsageError(f"{quoted(text)} is not a date; {ACCEPTED}")


def _year(digits: str | None) -> int:
    return int(digits) if digits else today().year


def _month(text: str, word: str) -> int:
    for number, month in enumerate(_MONTHS, start=1):
        if word == month or (len(word) >= 3 and month.startswith(word)):
            return number
    raise UsageError(f"{quoted(text)} names no month; {ACCEPTED}")


def _checked(text: str, year: int, month: int, day: int) -> date:
    if not YEARS[0] <= year <= YEARS[1]:
        raise UsageError(f"{quoted(text)} is outside the years {YEARS[0]} to {YEARS[1]}")
    try:
        return date(year, month, day)
    except ValueError:
        raise UsageError(f"{quoted(text)} does not exist in the calendar; {ACCEPTED}") from None


def parse_time(text: str) -> time:
    """Return the time of day written in ``text``.

    Raises:
        UsageError: not a time of day.
    """
    plain = text.strip().lower().removeprefix("at ")
    if plain in _NAMED_TIMES:
        return _NAMED_TIMES[plain]
    match = _TIME.fullmatch(plain) if len(plain) < 30 else None
    if match is not None:
        hour, half = int(match[1]), match[4]
        if half and 1 <= hour <= 12:
            hour = hour % 12 + (12 if half.startswith("p") else 0)
        elif half:
            hour = 99
        minute, second = int(match[2] or 0), int(match[3] or 0)
        if hour < 24 and minute < 60 and second < 60:
            return time(hour, minute, second)
    raise UsageError(f"{quoted(text)} is not a time of day; write it like 14:30 or 2:30 pm")


def parse_moment(text: str) -> datetime:
    """Return the local date and time in ``text``; a time alone means today, a date midnight.

    The result carries a zone only where the text ends with an offset, as ISO 8601 writes it; else
    the API's own parameter says which one is meant.

    Raises:
        UsageError: no date or time, or one that does not exist.
    """
    plain = " ".join(text.split()).replace("\u2212", "-")
    match = _OFFSET.fullmatch(plain)
    if match and (match[2] in "Zz" or _YEAR.search(match[1])):  # 10:30-11:30 is no offset
        try:
            zone = datetime.strptime(match[2].upper(), "%z").tzinfo
        except ValueError:
            raise UsageError(f"{quoted(text)} has no offset from UTC; {_ISO}") from None
        return _local(match[1]).replace(tzinfo=zone)
    return _local(plain)


def _local(plain: str) -> datetime:
    if match := re.fullmatch(
        r"(.*[0-9]{4}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:T|,? at | |, )(.+)", plain
    ):
        return datetime.combine(parse_date(match[1]), parse_time(match[2]))
    try:
        return datetime.combine(today(), parse_time(plain))
    except UsageError:
        return datetime.combine(parse_date(plain), time(0))


Date = Annotated[date, Field(parse_date)]
Moment = Annotated[datetime, Field(parse_moment)]

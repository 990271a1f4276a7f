"""Months and years as their first and last day: "in December 2026", "next month", "this year". Pure.

But for those told by their distance from today, which the clock decides.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from typing import NamedTuple

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.ends import roles
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import dates, kinds

_MONTHS = tuple(name.lower() for name in calendar.month_name[1:])
_SHORT = tuple(name.lower() for name in calendar.month_abbr[1:])
_YEAR = r"(?:1[5-9]|2[0-9])\d{2}"
_PERIOD = re.compile(
    rf"(?<![\w.,/-])(?<!\d )(?:(?P<month>{'|'.join((*_MONTHS, *_SHORT))})\.?,? (?:of )?(?P<of>{_YEAR})"
    rf"|(?P<near>this|next|last|the current|the coming) (?P<unit>month|year)"
    rf"|(?:in|during|of|throughout|across|for)(?: all of| the whole of| the year)? (?P<year>{_YEAR}))(?![\w/-]|[.,]\d)",
    re.IGNORECASE,
)
_AHEAD = {"next": 1, "the coming": 1, "last": -1}


class Period(NamedTuple):
    """The first and the last day of a month or a year."""

    first: dt.date
    last: dt.date


def find(text: str, today: dt.date) -> list[Period]:
    """Return the months and years that a text names, each once, in order."""
    return list(dict.fromkeys(_read(match, today) for match in _PERIOD.finditer(text)))


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the first or the last day of the one period that a part names, else "".

    For a function that takes both, where neither the part nor what leads up to it names a day.
    """
    ends = roles(api)
    if parameter not in ends.values() or kinds.find_values("date", wish.context or wish.part):
        return ""
    found = find(wish.part, dates.today()) or find(wish.context, dates.today())
    if len(found) != 1:
        return ""
    return (found[0].first if parameter == ends["start"] else found[0].last).isoformat()


def _read(match: re.Match[str], today: dt.date) -> Period:
    ahead = _AHEAD.get((match["near"] or "").lower(), 0)
    if match["month"]:
        return _month(int(match["of"]), _SHORT.index(match["month"][:3].lower()))
    if match["unit"] and match["unit"].lower() == "month":
        return _month(today.year, today.month - 1 + ahead)
    year = int(match["year"] or today.year + ahead)
    return Period(dt.date(year, 1, 1), dt.date(year, 12, 31))


def _month(year: int, month: int) -> Period:
    """Return a month, counted from 0 and from that year on."""
    year, month = year + month // 12, month % 12 + 1
    return Period(
        dt.date(year, month, 1), dt.date(year, month, calendar.monthrange(year, month)[1])
    )

"""Days that are told apart from their year: "in 2027 on the 21st of June". Pure.

The year is put behind the day, where everything that reads a date looks for it.
"""

from __future__ import annotations

import datetime as dt
import re

from toolsrv_runtime.planner.reading.digits import QUOTED

_MONTH = (
    r"(?:(?-i:March|May)|january|february|april|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
"""May may be a word."""

_DAY_OF = (
    rf"(?:(?:the )?(?<![\w.,:/-])\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b"
    rf"|\b{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?![\w:/.-]\d|\w))"
)
_ANY_YEAR = r"(?:1[5-9]|2[01])\d\d"
_DAY = re.compile(rf"{_DAY_OF}(?!\.?,? (?:of |in )?[1-9]\d{{3}}\b)", re.IGNORECASE)
_BESIDE = re.compile(
    rf"(?:\b(?:in|of|for|during) |\b(?:day|eve|solstice|equinox|year),? )"
    rf"(?P<year>{_ANY_YEAR}),? (?:on )?(?:{_DAY_OF})",
    re.IGNORECASE,
)
"""A year right before its day."""

_BEHIND = re.compile(rf"({_DAY_OF}),? in (?:the year )?({_ANY_YEAR})(?!\w|[.,]\d)", re.IGNORECASE)
_AHEAD = re.compile(
    rf"\b(?:in|for|during|plan(?:ning)?|next year,|it is|it's) (?P<year>{_ANY_YEAR})\b(?![/-])",
    re.IGNORECASE,
)
"""A year that days told with it are of, if it is no past one: "since 1998" is another story."""

_NUMBERS = re.compile(r"(?<![\d.,])\d{4}(?!\d|[.,]\d)")


def with_year(text: str, today: dt.date) -> str:
    """Return a text whose days without a year have the one that the text tells for them.

    That is the year right before such a day, or the only one of the text, where it is not over.
    A day with another year beside it, and quotations, stay as they are. O(length).
    """
    bare = QUOTED.sub(lambda match: " " * len(match[0]), text)
    for match in reversed(list(_BEHIND.finditer(bare))):
        at, to = match.end(1), match.end()
        bare, text = (f"{one[:at]} {match[2]}{one[to:]}" for one in (bare, text))
    days = list(_DAY.finditer(bare))
    if not days:
        return text
    beside = {match.end(): match["year"] for match in _BESIDE.finditer(bare)}
    told = {match["year"] for match in _AHEAD.finditer(bare)}
    coming = told.pop() if len(told) == len(set(_NUMBERS.findall(bare))) == 1 else ""
    if int(coming or 0) < today.year:
        coming = ""
    pieces, at = [], 0
    for day in days:
        year = beside.get(day.end()) or coming
        pieces += [text[at : day.end()], f" {year}" if year else ""]
        at = day.end()
    return "".join([*pieces, text[at:]])

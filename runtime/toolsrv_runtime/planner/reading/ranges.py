"""Dates of a range, of which only one is told in full: from the 3rd to the 19th of May 2027."""

from __future__ import annotations

import re

from toolsrv_runtime.values import dates

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_TO = r"\s*(?:-|\u2013|\u2014|\s(?:up )?to\s|\s(?:and|until|till|through)\s)\s*(?:the\s+)?"
_FULL = rf"(?:{_DAY}\s+(?:of\s+)?(?:{_MONTH})|(?:{_MONTH})\.?\s+{_DAY}),?\s+[12]\d{{3}}(?!\d)"

_BEFORE_ONE = re.compile(rf"{_TO}({_FULL})", re.IGNORECASE)
_BEHIND_ONE = re.compile(rf"({_FULL}){_TO}$", re.IGNORECASE)
_BEGUN = re.compile(
    rf"((?:{_DAY}\s+(?:of\s+)?(?:{_MONTH})|(?:{_MONTH})\.?\s+{_DAY})){_TO}$", re.IGNORECASE
)
_DAYS = re.compile(rf"(?<!\w)(?:the\s+)?{_DAY}{_TO}{_DAY}(?!\w)", re.IGNORECASE)
_MONTH_ALONE = re.compile(rf"(?<!\w)(?<!\d\s)({_MONTH})\.?\s+([12]\d{{3}})(?!\d)", re.IGNORECASE)
_BARE_DAY = re.compile(r"(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?", re.IGNORECASE)
_NAMED = re.compile(rf"(?<!\w){_MONTH}(?!\w)", re.IGNORECASE)
_SAME_YEAR = re.compile(
    r",?\s+(?:of|in)\s+(?:the (?:very )?same|that(?: same)?) year\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")


def completed(said: str, text: str) -> str:
    """Return a day without month or year with those of the other end of its range in ``text``.

    Or with the one month that the text names beside days alone: "May 2027, from the 1st to the
    31st", or its one year where that is pointed at: "1 October of that year". Anything else as it
    is: a date without a year may well be this year's.
    """
    plain = said.strip()
    if _YEAR.search(plain) or not re.search(r"\d", plain):
        return said
    for place in re.finditer(rf"(?<!\w){re.escape(plain)}(?!\w)", text):
        after = _BEFORE_ONE.match(text, place.end())
        before = _BEHIND_ONE.search(text[: place.start()])
        if after or before:
            return _like(plain, (after or before)[1], later=after is None)  # type: ignore[index]
        if own := _NAMED.findall(plain):
            begun = _BEGUN.search(text[: place.start()])
            if begun and _number(_NAMED.findall(begun[1])[0]) > _number(own[0]):
                return f"{said} {dates.today().year + 1}"  # from 21 December to 8 January
        bare = _BARE_DAY.fullmatch(plain)
        months = _MONTH_ALONE.findall(text)
        pairs = (one.span() for one in _DAYS.finditer(text))
        inside = any(begin <= place.start() and place.end() <= end for begin, end in pairs)
        if bare and inside and len(months) == 1:
            return f"{bare[1]} {months[0][0]} {months[0][1]}"
        years = set(_YEAR.findall(text))
        if _SAME_YEAR.match(text, place.end()) and _NAMED.search(plain) and len(years) == 1:
            return f"{said} {years.pop()}"
    return said


def _like(said: str, other: str, *, later: bool) -> str:
    """Return a date with the year, and the month, of another one; it is the later of the two?"""
    month, year = _NAMED.findall(other)[0], int(_YEAR.findall(other)[0])
    bare = _BARE_DAY.fullmatch(said)
    if bare:
        return f"{bare[1]} {month} {year}"
    own = _NAMED.findall(said)
    if not own:
        return said
    apart = _number(own[0]) - _number(month)
    return f"{said} {year + (later and apart < 0) - (not later and apart > 0)}"


def _number(month: str) -> int:
    return _MONTHS.index(month[:3].lower())

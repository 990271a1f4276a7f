"""Days that have a name and the same date every year: Christmas 2031, New Year's Eve. Pure."""

from __future__ import annotations

import datetime as dt
import re

_DAYS = {
    r"christmas eve": (12, 24),
    r"christmas(?: day)?": (12, 25),
    r"boxing day": (12, 26),
    r"new year['’]?s eve": (12, 31),
    r"new year['’]?s day": (1, 1),
    r"valentine['’]?s(?: day)?": (2, 14),
    r"saint patrick['’]?s day|st\.? patrick['’]?s day": (3, 17),
    r"hallowe['’]?en": (10, 31),
    r"all saints['’]?(?: day)?": (11, 1),
    r"all souls['’]?(?: day)?": (11, 2),
    r"(?:epiphany|three kings['’]? day)": (1, 6),
    r"burns night": (1, 25),
    r"april fool(?:['’]?s|s['’])?(?: day)?": (4, 1),
    r"cinco de mayo": (5, 5),
    r"bastille day": (7, 14),
    r"(?:guy fawkes (?:night|day)|bonfire night)": (11, 5),
    r"(?:remembrance|armistice) day": (11, 11),
    r"(?:saint|st\.?) nicholas['’]?s?(?: day)?": (12, 6),
    r"(?:saint|st\.?) (?:lucy|lucia)['’]?s day": (12, 13),
    r"(?:saint|st\.?) stephen['’]?s day": (12, 26),
}
PATTERN = rf"(?:{'|'.join(_DAYS)})(?:,? (?:of |in )?[1-9]\d{{3}})"
"""A regular expression of one with its year, letter case aside."""

_SAID = [
    (re.compile(rf"(?:{name}),? (?:of |in )?([1-9]\d{{3}})", re.IGNORECASE), date)
    for name, date in _DAYS.items()
]


_NAMES = "|".join(_DAYS)
_THING = r"(?:dinner|party|cake|card|gift|present|tree|market|lunch|morning|song)s?"
_COMING = re.compile(
    rf"\b(?:(?P<lead>(?:un)?till?|to|before|by|on|for) (?P<feast>{_NAMES})"
    rf"(?![\w-]|,? (?:of |in )?[1-9]\d{{3}}| (?:this|next) year| {_THING}\b)"
    rf"|(?P<named>{_NAMES}) (?P<which>this|next) year\b)",
    re.IGNORECASE,
)
_IS_SOUGHT = re.compile(r"\b(?:when|holidays?|what date|which date|date of)\b", re.IGNORECASE)
_IN_TEXT = re.compile(rf"\b{PATTERN}(?!\w)", re.IGNORECASE)


def dated(text: str, today: dt.date) -> str:
    """Return a text with such days told by their dates, unless a date is what it asks for.

    One without a year is the next: "how many days until Christmas". What is asked for "on New Year's
    Eve" or before it is something else in any case: "when is sunset on New Year's Eve".
    """
    if _IS_SOUGHT.search(text):
        return _COMING.sub(
            lambda match: _coming(match, today) if _is_given(match) else match[0], text
        )
    text = _COMING.sub(lambda match: _coming(match, today), text)
    return _IN_TEXT.sub(lambda match: _spoken(match[0]), text)


def _is_given(match: re.Match[str]) -> bool:
    return (match["lead"] or "for").lower() != "for"


def _coming(match: re.Match[str], today: dt.date) -> str:
    """Return a day without a year with the one that is meant, and what leads up to it."""
    said, which = match["feast"] or match["named"], (match["which"] or "").lower()
    date = next(date for name, date in _DAYS.items() if re.fullmatch(name, said, re.IGNORECASE))
    day = dt.date(today.year, *date)
    if which == "next" or (not which and day < today):
        day = day.replace(year=today.year + 1)
    lead = f"{match['lead']} " if match["lead"] else ""
    return f"{lead}{day.day} {day:%B %Y}"


def _spoken(said: str) -> str:
    day = dt.date.fromisoformat(read(said))
    return f"{day.day} {day:%B %Y}"


def read(said: str) -> str:
    """Return such a day in ISO 8601; any other text as it is."""
    for pattern, (month, day) in _SAID:
        if match := pattern.fullmatch(said.strip()):
            return f"{match[1]}-{month:02}-{day:02}"
    return said

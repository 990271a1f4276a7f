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
}
PATTERN = rf"(?:{'|'.join(_DAYS)})(?:,? (?:of |in )?[1-9]\d{{3}})"
"""A regular expression of one with its year, letter case aside."""

_SAID = [
    (re.compile(rf"(?:{name}),? (?:of |in )?([1-9]\d{{3}})", re.IGNORECASE), date)
    for name, date in _DAYS.items()
]


_IS_SOUGHT = re.compile(r"\b(?:when|holidays?|what date|which date|date of)\b", re.IGNORECASE)
_IN_TEXT = re.compile(rf"\b{PATTERN}(?!\w)", re.IGNORECASE)


def dated(text: str) -> str:
    """Return a text with such days told by their dates, unless a date is what it asks for."""
    if _IS_SOUGHT.search(text):
        return text
    return _IN_TEXT.sub(lambda match: _spoken(match[0]), text)


def _spoken(said: str) -> str:
    day = dt.date.fromisoformat(read(said))
    return f"{day.day} {day:%B %Y}"


def read(said: str) -> str:
    """Return such a day in ISO 8601; any other text as it is."""
    for pattern, (month, day) in _SAID:
        if match := pattern.fullmatch(said.strip()):
            return f"{match[1]}-{month:02}-{day:02}"
    return said

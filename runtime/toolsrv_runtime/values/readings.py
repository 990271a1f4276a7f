"""What a person's spelling of a value means to an API: numbers in digits, dates in ISO 8601.

Deterministic but for days told by their distance from today, which the clock decides. Number words are
text2num's, dates dateutil's; what cannot be read stays as it was.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from dateutil import parser
from text_to_num import alpha2digit

from toolsrv_runtime.values import arithmetic, days, feasts, peoples, sums

_LENGTH_LIMIT = 64
"""Characters of a spelling that is looked at; no number or date is longer, arithmetic may be."""

_DIGITS = r"\d{1,3}(?:[,\u00a0\u202f' ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"(?P<sign>[-\u2212\u2013]\s?|\b(?:minus|negative)\s+)?(?P<digits>{_DIGITS})"
    r"\s?(?P<scale>k\b|thousand\b|mn\b|mio\b|million\b|bn\b|billion\b)?",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d,.])")
_SCALES = {"k": 3, "t": 3, "m": 6, "b": 9}
_WORDS = (
    (re.compile(r"(?<!and a )\bhalf(?: an?)?\b(?![ -]marathon)", re.IGNORECASE), "0.5"),
    (re.compile(r"\b(?:a|one) dozen\b|\bdozen\b", re.IGNORECASE), "12"),
    (re.compile(r"\ba (?:couple|pair)\b", re.IGNORECASE), "2"),
    (re.compile(r"\b(?:once(?! (?:every|each|per)\b)|a single)\b", re.IGNORECASE), "1"),
    (re.compile(r"\btwice\b", re.IGNORECASE), "2"),
    (re.compile(r"\bbinary\b", re.IGNORECASE), "2"),
    (re.compile(r"\boctal\b", re.IGNORECASE), "8"),
    (re.compile(r"\bdecimal\b", re.IGNORECASE), "10"),
    (re.compile(r"\bhex(?:adecimal)?\b", re.IGNORECASE), "16"),
    (re.compile(r"\ba (?=hundred|thousand|million|billion)", re.IGNORECASE), "one "),
)
_ONE = re.compile(r"\s*an?(?:\s+[a-z]+)?\s*", re.IGNORECASE)
"""One of something: "a cup"."""
_AND_A_HALF = re.compile(r"(\d+) and a half\b", re.IGNORECASE)
_DOWN = re.compile(r"\b(?:down|lower|below|before|ago|earlier|back)\b", re.IGNORECASE)
_HAS_WORD = re.compile(r"[a-z]", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_NUMERIC = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}")
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_CLOCK = re.compile(r"\d:\d{2}|\d ?[ap]\.?m\b", re.IGNORECASE)
_SOUTH_OR_WEST = re.compile(r"\d\s*°?\s*(?:south|west|[SW])\b")
_DAYS = re.compile(days.PATTERN, re.IGNORECASE)
_NEVER = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_FIGURE = re.compile(r"(?<=\S) \([\d.,]+\)$")
"""What lists tell of each name, no part of it: "Dar es Salaam (5,383,728)"."""
_ARTICLE = re.compile(r"^(?:an?|the) (?=/?\d)", re.IGNORECASE)
_UNIT = re.compile(r"(?<=[\d\s])(?:kilos?|kgs)\b", re.IGNORECASE)


def read(kind: str, said: str) -> str:
    """Return a value of a kind (``patterns.kind``) as an API reads it."""
    reader = _READERS.get(kind)
    limit = sums.LENGTH_LIMIT if kind == "expression" else _LENGTH_LIMIT
    return said if reader is None or len(said) > limit else reader(said)


def _number(said: str) -> str:
    match = _NUMBER.search(_DECIMAL_COMMA.sub(r"\1.\2", said)) or _NUMBER.search(_digits(said))
    if match is None:
        return "1" if _ONE.fullmatch(said) else said
    digits = re.sub(r"[^\d.]", "", match["digits"])
    digits = f"0{digits}" if digits.startswith(".") else digits
    if match["scale"]:
        scaled = float(digits) * 10 ** _SCALES[match["scale"][0].lower()]
        digits = f"{scaled:.10g}" if scaled < 1e10 else f"{scaled:.0f}"
    # "3 semitones down", "10 days before": an amount that is taken away.
    return f"-{digits}" if match["sign"] or _DOWN.search(said) else digits


def _date(said: str) -> str:
    if days.is_relative(said):
        return days.read(said, days.today())
    if (named := feasts.read(said)) != said:
        return named
    text = _digits(said)
    numeric = _NUMERIC.search(text)
    if not numeric and not (_MONTH.search(text) and _YEAR.search(text)):
        return said
    try:
        iso = bool(numeric) and len(re.split(r"\D", text.strip())[0]) == 4
        found = parser.parse(text, dayfirst=not iso, fuzzy=True, default=_NEVER, ignoretz=True)
    except (ValueError, OverflowError):
        return said
    return found.date().isoformat() if found.year > _NEVER.year else said


def _measure(said: str) -> str:
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", _digits(said))
    return _UNIT.sub("kg", text)


def _coordinate(said: str) -> str:
    match = _NUMBER.search(said)
    if match is None:
        return said
    away = match["sign"] or _SOUTH_OR_WEST.search(said)
    return f"-{match['digits']}" if away else match["digits"]


def _note(said: str) -> str:
    text = re.sub(r"[ -]?flat\b", "b", said, flags=re.IGNORECASE)
    return re.sub(r"[ -]?sharp\b", "#", text, flags=re.IGNORECASE)


def _time(said: str) -> str:
    text = _digits(_DAYS.sub(lambda match: days.read(match[0], days.today()), said))
    if _CLOCK.search(text) and (_NUMERIC.search(text) or (_MONTH.search(text))):
        try:
            iso = re.match(r"\d{4}-", text.strip()) is not None
            found = parser.parse(text, dayfirst=not iso, fuzzy=True, default=_NEVER, ignoretz=True)
        except (ValueError, OverflowError):
            return said
        clock = "%H:%M:%S" if found.second else "%H:%M"
        return f"{found:%Y-%m-%d {clock}}" if found.year > _NEVER.year else said
    if re.fullmatch(r"[0-2]\d[0-5]\d", said):  # as timetables have it
        return f"{said[:2]}:{said[2:]}"
    return re.sub(r"(?<!\d)(\d{1,2})[.h](\d{2})(?!\d)", r"\1:\2", said)


def _digits(said: str) -> str:
    """Return the text with its number words as digits, and a decimal comma as a point."""
    text = said
    if _HAS_WORD.search(text):
        for pattern, digits in _WORDS:
            text = pattern.sub(digits, text)
        text = _AND_A_HALF.sub(r"\1.5", alpha2digit(text, "en", 0))
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


_READERS: dict[str, Callable[[str], str]] = {
    "number": _number,
    "year": lambda said: _number(days.read_year(said, days.today())),
    "date": _date,
    "name": lambda said: _FIGURE.sub("", said),
    "country": peoples.country,
    "language": peoples.language,
    "coordinate": _coordinate,
    "expression": lambda said: arithmetic.read(said) or said,
    "length": _measure,
    "weight": _measure,
    "note": _note,
    "time": _time,
    "network": lambda said: _ARTICLE.sub("", said),
}

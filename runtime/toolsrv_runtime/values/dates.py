"""Times, relative days and holidays in words: their patterns, and what they resolve to.

A time in words becomes figures; with a part of the day its hour is one of twenty-four. "Tomorrow"
and "next Friday" become dates by the distance from today, holidays by their date every year. Where
words may be a range ("ten to twelve days") they are no time. Pure but for the clock that relative
days need.
"""

from __future__ import annotations

import datetime as dt
import re

_HOURS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_MINUTES = {"quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_HOUR = rf"(?P<hour>{'|'.join(_HOURS)}|1[0-2]|[1-9])"
_DAY_PART = r"(?:\s?(?P<half>[ap])\.?m\b\.?|\s(?:in the (?P<part>morning|afternoon|evening)|at (?P<night>night)))"
# "five to ten" may be a range: that many minutes to an hour need a part of the day, or "at".
SPOKEN_TIME = re.compile(
    rf"\b(?:(?:an? )?(?P<share>half(?= past)|quarter) (?P<way>past|to|till)"
    rf"|(?P<minutes>five|ten|twenty(?:[ -]five)?) (?:minutes )?(?P<side>past|(?:to|till)(?= \w+{_DAY_PART.replace('?P<', '?P<_')})))"
    rf" {_HOUR}\b(?: ?o['’]?clock)?{_DAY_PART}?(?![:.]\d| (?:thirds|fifths|quarters))"
    rf"|(?<![\d:.])\b{_HOUR.replace('hour', 'full')} ?o['’]?clock\b{_DAY_PART.replace('?P<', '?P<full_')}?"
    rf"|\b(?P<at>(?:at|by|around|until|till|from|before|after|since) ){_HOUR.replace('hour', 'bare')}"
    r" in the (?:(?P<bare_part>morning|afternoon|evening)|(?P<bare_night>night))\b",
    re.IGNORECASE,
)  # fmt: skip
"""A time of day in words."""


def time_in_figures(match: re.Match[str]) -> str:
    """Return what ``SPOKEN_TIME`` matched as hours and minutes; O(1)."""
    if match["bare"]:
        hour, part = _hour(match["bare"]), match["bare_part"]
        return match["at"] + _shown(hour, 0, None, part, match["bare_night"])
    if match["full"]:
        told = (match["full_half"], match["full_part"], match["full_night"])
        return _shown(_hour(match["full"]), 0, *told)
    name = (match["share"] or match["minutes"]).lower().replace(" ", "-")
    minutes = _MINUTES[name]
    if (match["way"] or match["side"]).lower() == "past":
        return _shown(_hour(match["hour"]), minutes, match["half"], match["part"], match["night"])
    hour = _hour(match["hour"]) - 1 or 12
    return _shown(hour, 60 - minutes, match["half"], match["part"], match["night"])


def _hour(said: str) -> int:
    return int(said) if said.isdigit() else _HOURS.index(said.lower()) + 1


def _shown(hour: int, minutes: int, half: str | None, part: str | None, night: str | None) -> str:
    """Return a time on a clock of twelve hours, on one of twenty-four where half a day is told."""
    if not (half or part or night):
        return f"{hour}:{minutes:02d}"
    early = (half or "").lower() == "a" or (part or "").lower() == "morning"
    if night:  # two at night is early, twelve is midnight
        early = hour < 6 or hour == 12
    return f"{hour % 12 + (0 if early else 12):02d}:{minutes:02d}"


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FAR = {"the day after tomorrow": 2, "the day before yesterday": -2}
_WEEKDAY = re.compile(rf"(?:on )?(this|next|coming|last) ({'|'.join(_WEEKDAYS)})", re.IGNORECASE)

NEAR_DAYS = ("today", "tomorrow", "yesterday")
"""APIs take these as they are, or by a clock of their own."""

RELATIVE_DAY_PATTERN = (
    rf"{'|'.join(_FAR)}|{'|'.join(NEAR_DAYS)}|(?:this|next|coming|last) (?:{'|'.join(_WEEKDAYS)})"
)
"""A regular expression of all of them, letter case aside."""

_YEARS = {"this": 0, "current": 0, "present": 0, "next": 1, "coming": 1, "last": -1, "past": -1}
RELATIVE_YEAR_PATTERN = rf"(?:the )?(?:{'|'.join(_YEARS)}) year"
"""The same of years."""

_YEAR = re.compile(rf"(?:the )?({'|'.join(_YEARS)}) year", re.IGNORECASE)


def today() -> dt.date:
    """Return the day that it is here."""
    return dt.datetime.now().astimezone().date()


def resolve_year(said: str, day: dt.date) -> str:
    """Return a year that is told by its distance from that of ``day``; anything else as it is."""
    match = _YEAR.fullmatch(" ".join(said.split()))
    return str(day.year + _YEARS[match[1].lower()]) if match else said


def is_relative(said: str) -> bool:
    """Whether a text is such a day and nothing else."""
    plain = " ".join(said.lower().split())
    return plain in NEAR_DAYS or plain in _FAR or _WEEKDAY.fullmatch(plain) is not None


def resolve_day(said: str, today: dt.date) -> str:
    """Return the day in ISO 8601, seen from ``today``; what no day is, and ``NEAR_DAYS``, as it is.

    "Next Friday" is the first one behind today, "this Friday" may be today.
    """
    plain = " ".join(said.lower().split())
    if plain in _FAR:
        return (today + dt.timedelta(days=_FAR[plain])).isoformat()
    match = _WEEKDAY.fullmatch(plain)
    if match is None:
        return said
    ahead = (_WEEKDAYS.index(match[2]) - today.weekday()) % 7
    if match[1] == "last":
        ahead -= 7
    elif not ahead and match[1] == "next":
        ahead = 7
    return (today + dt.timedelta(days=ahead)).isoformat()


_HOLIDAYS = {
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
HOLIDAY_PATTERN = rf"(?:{'|'.join(_HOLIDAYS)})(?:,? (?:of |in )?[1-9]\d{{3}})"
"""A regular expression of one with its year, letter case aside."""

_HOLIDAY_DATES = [
    (re.compile(rf"(?:{name}),? (?:of |in )?([1-9]\d{{3}})", re.IGNORECASE), date)
    for name, date in _HOLIDAYS.items()
]


_HOLIDAY_NAMES = "|".join(_HOLIDAYS)
_THING = r"(?:dinner|party|cake|card|gift|present|tree|market|lunch|morning|song)s?"
_COMING = re.compile(
    rf"\b(?:(?P<lead>(?:un)?till?|to|before|by|on|for) (?P<feast>{_HOLIDAY_NAMES})"
    rf"(?![\w-]|,? (?:of |in )?[1-9]\d{{3}}| (?:this|next) year| {_THING}\b)"
    rf"|(?P<named>{_HOLIDAY_NAMES}) (?P<which>this|next) year\b)",
    re.IGNORECASE,
)
_IS_SOUGHT = re.compile(r"\b(?:when|holidays?|what date|which date|date of)\b", re.IGNORECASE)
_IN_TEXT = re.compile(rf"\b{HOLIDAY_PATTERN}(?!\w)", re.IGNORECASE)


def with_holiday_dates(text: str, today: dt.date) -> str:
    """Return a text with such days told by their dates, unless a date is what it asks for.

    One without a year is the next: "how many days until Christmas". What is asked for "on New
    Year's Eve" or before it is something else in any case: "when is sunset on New Year's Eve".
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
    date = next(date for name, date in _HOLIDAYS.items() if re.fullmatch(name, said, re.IGNORECASE))
    day = dt.date(today.year, *date)
    if which == "next" or (not which and day < today):
        day = day.replace(year=today.year + 1)
    lead = f"{match['lead']} " if match["lead"] else ""
    return f"{lead}{day.day} {day:%B %Y}"


def _spoken(said: str) -> str:
    day = dt.date.fromisoformat(resolve_holiday(said))
    return f"{day.day} {day:%B %Y}"


def resolve_holiday(said: str) -> str:
    """Return such a day in ISO 8601; any other text as it is."""
    for pattern, (month, day) in _HOLIDAY_DATES:
        if match := pattern.fullmatch(said.strip()):
            return f"{match[1]}-{month:02}-{day:02}"
    return said

"""Times of day told in words, in figures: "a quarter to five pm" is "16:45", "eight o'clock" "8:00".

With a part of the day the hour is one of twenty-four; without one it stays as it was told. Where
words may be a range ("ten to twelve days") they are none. Pure.
"""

from __future__ import annotations

import re

_HOURS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_MINUTES = {"quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_HOUR = rf"(?P<hour>{'|'.join(_HOURS)}|1[0-2]|[1-9])"
_DAY_PART = r"(?:\s?(?P<half>[ap])\.?m\b\.?|\s(?:in the (?P<part>morning|afternoon|evening)|at (?P<night>night)))"
# "five to ten" may be a range: that many minutes to an hour need a part of the day, or "at".
SAID = re.compile(
    rf"\b(?:(?:an? )?(?P<share>half(?= past)|quarter) (?P<way>past|to|till)"
    rf"|(?P<minutes>five|ten|twenty(?:[ -]five)?) (?:minutes )?(?P<side>past|(?:to|till)(?= \w+{_DAY_PART.replace('?P<', '?P<_')})))"
    rf" {_HOUR}\b(?: ?o['’]?clock)?{_DAY_PART}?(?![:.]\d| (?:thirds|fifths|quarters))"
    rf"|(?<![\d:.])\b{_HOUR.replace('hour', 'full')} ?o['’]?clock\b{_DAY_PART.replace('?P<', '?P<full_')}?"
    rf"|\b(?P<at>(?:at|by|around|until|till|from|before|after|since) ){_HOUR.replace('hour', 'bare')}"
    r" in the (?:(?P<bare_part>morning|afternoon|evening)|(?P<bare_night>night))\b",
    re.IGNORECASE,
)  # fmt: skip
"""A time of day in words."""


def in_figures(match: re.Match[str]) -> str:
    """Return what ``SAID`` found as hours and minutes; O(1)."""
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

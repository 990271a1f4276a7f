"""Days that are counted from today or up to it: "how many days until 1 May", "in 90 days". Pure.

But for "this year", which the clock decides.
"""

from __future__ import annotations

import datetime as dt
import re

from dateutil.parser import parse

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import periods
from toolsrv_runtime.planner.reading.ends import counted_from, roles
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import dates, kinds
from toolsrv_runtime.values.lexicon import TEENS, TENS, TO_TWELVE

TODAY = dates.NEAR_DAYS[0]

_AMOUNT = rf"\d+|an?|{TO_TWELVE}|{TEENS}|{TENS}|a hundred|a couple of"
_UNIT = r"(?:days?|weeks?|months?|nights?|sleeps|(?:working|business|week) ?days?|time|long|far)"
_AHEAD = re.compile(
    rf"\bhow (?:many |much )?(?:more )?{_UNIT}\b[^.?!]{{0,30}}?\b(?:until|till|til|to go)\b"
    rf"|\bhow (?:far|long|many days|many weeks) (?:off|away|ahead)\b"
    rf"|\b{_UNIT} (?:(?:are|is) )?(?:there )?(?:still )?(?:left|remain\w*|to go)\b"
    r"|\b(?:days|weeks) (?:until|till)\b|\bcount ?down\b|\bin how many (?:days|weeks) (?:is|are|will|does)\b",
    re.IGNORECASE,
)
_AGO = re.compile(
    rf"\bhow (?:many |much )?{_UNIT}\b[^.?!]{{0,30}}?\b(?:since|ago)\b"
    r"|\b(?:days|weeks|nights) (?:have |has )?(?:passed |gone by |it(?:'s| has) been )?since\b"
    r"|\bhow long (?:ago|has it been)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\d{3}")
_COUNTED = re.compile(
    rf"\b(?:in|within) (?:(?:exactly|about|just|another) )?(?:{_AMOUNT}) (?:days?|weeks?|months?|years?)\b(?! of\b)"
    rf"|\b(?:{_AMOUNT}) (?:days?|weeks?|months?|years?) (?:ago|hence|ahead|back|from (?:now|today))\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:from|after|before|between|starting)\b(?!\s+(?:today|now)\b)|\b(?:later|earlier)\b",
    re.IGNORECASE,
)
"""What tells another day to count from."""


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return today for the first or the last day of a function that takes both; "" where not told.

    Only where the words, and what leads up to them, name one day at most; that one, or the last one
    of the one month or year that they name, is the other end, whatever the matcher makes of it.
    Also for the day from which a function counts, where none is named: "in 90 days".
    """
    named = list(dict.fromkeys(kinds.find_values("date", wish.context or wish.part)))
    if len(named) > 1 or _ELSEWHERE.search(wish.part):
        return ""
    if parameter == counted_from(api):
        return TODAY if _COUNTED.search(wish.part) and not named else ""
    ends = roles(api)
    ahead, ago = bool(_AHEAD.search(wish.part)), bool(_AGO.search(wish.part))
    if parameter not in ends.values() or ahead == ago:
        return ""
    if parameter == ends["start" if ahead else "end"]:
        return TODAY
    found = periods.find(wish.part, dates.today()) if ahead and not named else []
    if named:
        return _with_year(named[0], dates.today(), ahead=ahead)
    return found[0].last.isoformat() if len(found) == 1 else ""


def _with_year(said: str, today: dt.date, *, ahead: bool) -> str:
    """Return a day as it was said, one without a year with the next or the last year where need be.

    "How many days until 3 May", asked in November, is the May that comes.
    """
    if _YEAR.search(said):
        return said
    try:
        this_year = parse(f"{said} {today.year}", dayfirst=True).date()
    except (ValueError, OverflowError):
        return said
    if ahead and this_year < today:
        return f"{said} {today.year + 1}"
    return f"{said} {today.year - 1}" if not ahead and this_year > today else said

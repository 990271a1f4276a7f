"""Days of a month that a text told before: "the handover is on 4 October 2027, until the 29th of that month".

The day is put as one in full, which everything that reads dates knows. Pure.
"""

from __future__ import annotations

import re

from toolsrv_runtime.planner.reading.digits import QUOTED

_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
_TOLD = re.compile(
    rf"(?<![\w/.-])(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})\b\.?,?|(?P<first>{_MONTH})\b\.? \d{{1,2}}(?:st|nd|rd|th)?,?)"
    r" (?P<year>[1-9]\d{3})(?!\d)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?:the )?(?P<day>[12]?\d|3[01])(?:st|nd|rd|th)?,? (?:of|in) (?:that|the|this|this very)(?: very)?(?: same)? month\b"
    r"(?! (?:after|before))",
    re.IGNORECASE,
)


def in_full(text: str) -> str:
    """Return a text whose days "of that month" have the month and the year told last before them.

    Quotations stay as they are, and so does a day that no full date comes before. O(length).
    """
    bare = QUOTED.sub(lambda match: " " * len(match[0]), text)
    days = list(_DAY.finditer(bare))
    dates = list(_TOLD.finditer(bare)) if days else []
    pieces, at = [], 0
    for day in days:
        before = [one for one in dates if one.end() <= day.start()]
        if not before:
            continue
        month = before[-1]["month"] or before[-1]["first"]
        pieces += [text[at : day.start()], f"{day['day']} {month} {before[-1]['year']}"]
        at = day.end()
    return "".join([*pieces, text[at:]])

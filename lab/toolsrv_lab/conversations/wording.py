"""Wording that the generators share: the folder of their tables, names of days, numbers, lists."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from pathlib import Path

DATA = Path(__file__).parent / "data"
MONTHS = tuple(calendar.month_name[1:])
WEEKDAYS = tuple(calendar.day_name)
NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
"""The English words of the numbers below twenty."""


def ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``3rd``, ``11th``."""
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def enumerated(items: Sequence[str], last: str = "and") -> str:
    """Return ``a``, ``a and b``, ``a, b and c``. Raise LookupError for no items."""
    if not items:
        raise LookupError("no items to enumerate")
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())

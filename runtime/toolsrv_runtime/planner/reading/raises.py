"""Raises and cuts of a pay: "a 5 % raise on a 42,000 salary". Pure.

The raise itself is that share of the pay; what is earned with it, where that is asked, is a sum. No
document speaks of pay: discounts and taxes come nearest.
"""

from __future__ import annotations

import re

from toolsrv_runtime.values.lexicon import CURRENCY_MARKS

_N = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_PAY = r"(?:salary|salaries|pay|wages?|income|earnings|stipend)"
_RATE = r"(?:an? |the |my )?(?P<rate>\d+(?:\.\d+)?) ?(?:%|percent|per cent)"
_MORE = rf"(?:{_PAY}[- ])?raise|{_PAY}[- ](?:rise|increase|hike|bump)"
_LESS = rf"{_PAY}[- ](?:cut|reduction)"
_CHANGE = rf"{_RATE} (?:(?P<more>{_MORE})|(?P<less>{_LESS}))(?![\w-])"
_AMOUNT = (
    rf"(?:(?:annual|yearly|monthly|weekly|hourly|current|old|gross|net|base) )*(?:{_PAY} of )?(?:{CURRENCY_MARKS}\s?)?"
    rf"(?P<amount>{_N})(?P<thousands>k\b)?(?:\s?{CURRENCY_MARKS}(?!\w))?(?: (?:an?|per) (?:year|month|week|hour|annum)\b)?"
    rf"(?:[ -](?:(?:annual|yearly|monthly) )?(?:{_PAY}|job)\b)?(?![\w%]|[.,]\d)"
)
_RAISE_OF = re.compile(
    rf"\b(?<![\d.,])(?:{_CHANGE}) (?:on|to|of|for|from|in) (?:an? |my |the |his |her |our |their )?{_AMOUNT}",
    re.IGNORECASE,
)
_WITH_A_RAISE = re.compile(
    rf"(?<![\w.,])(?:an? |my |the |his |her |our |their )?{_AMOUNT}"
    rf",? (?:plus|with|after|and|minus|less)(?: (?:i|he|she|we|they))?(?: (?:will )?(?:gets?|got|receives?))? {_CHANGE}",
    re.IGNORECASE,
)
_EARNED = re.compile(
    r"\b(?:new|earn(?:s|ed|ing)?|mak(?:e|es|ing)|end(?:s|ed)? up|comes? to|be (?:paid|on)|after|total|altogether)\b",
    re.IGNORECASE,
)
"""What asks for the pay with its raise."""

_WHAT_IS_EARNED = re.compile(
    r" ?[.;,:–-]? *(?:so |and )?(?:what|how much)(?: (?:will|do|would|does|is)|['’]s) (?:i|he|she|we|they|my new|the new|his new|her new)"
    rf" (?:earn|make|get|be paid|be making|be earning|{_PAY})(?: (?:now|then|after(?:wards| that)?|a year|per year))*(?= *[?.!]|$)",
    re.IGNORECASE,
)


def as_sums(text: str) -> str:
    """Return a text with such raises as shares and sums; O(length)."""
    changed = _WITH_A_RAISE.sub(_earned, text)
    wanted = bool(_EARNED.search(text))
    changed = _RAISE_OF.sub(_earned if wanted else _share, changed)
    return _WHAT_IS_EARNED.sub("", changed) if changed != text else text


def _share(match: re.Match[str]) -> str:
    return f"{match['rate']}% of {_number(match)}"


def _earned(match: re.Match[str]) -> str:
    return f"{_number(match)} * (1 {'-' if match['less'] else '+'} {match['rate']} / 100)"


def _number(match: re.Match[str]) -> str:
    digits = match["amount"].replace(",", "")
    return f"{float(digits) * 1_000:.12g}" if match["thousands"] else digits

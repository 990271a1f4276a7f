"""Thousands with dots, as much of Europe writes them: "25.000 at 5,4%" is about 25000. Pure.

Such a number may be one with three decimals, so something has to say which it is: euros or another
money of the continent, decimals behind a comma, a second dot, or another number of the text whose
decimals stand behind a comma. A price of fuel has three decimals: "€1.899 a litre".
"""

from __future__ import annotations

import re

from toolsrv_runtime.values.lexicon import UNITS

_MONEY = (
    r"(?:€|(?:eur|euros?|chf|francs?|zlot(?:y|ys)|pln|kron(?:a|or|er?)|sek|nok|dkk|forints?|huf|"
    r"korunas?|czk|reais|brl|liras?|rupiahs?|idr|dongs?|vnd)\b)"
)
_DOTTED = re.compile(
    rf"(?P<coin>(?<!\w){_MONEY}\s?)?(?<![\w.,/:-])(?P<whole>[1-9]\d{{0,2}}(?:\.\d{{3}})+)"
    rf"(?P<rest>,\d{{1,2}})?(?![\w/]|[.,:-]\d)(?P<behind>\s?{_MONEY})?"
    r"(?P<each>\s?(?:/|per|an?|the)\s?(?:l|lit(?:er|re)|gal|gallon|kwh|unit)\b)?",
    re.IGNORECASE,
)
_COMMA = re.compile(
    rf"(?<![\w.,])\d+,\d{{1,2}}\s?(?:{'|'.join(UNITS.values())}|percent|%|[€$£])(?![\w,])",
    re.IGNORECASE,
)
"""An amount whose decimals stand behind a comma: no pair "1,2", no list."""

_PLACE = re.compile(r"\b(?:lat(?:itude)?|long?(?:itude)?|coordinates?|gps)\b|\d\s?°", re.IGNORECASE)
"""What has three decimals whoever writes it."""

MAYBE = re.compile(r"\d\.\d{3}(?!\d)")
"""What a text has that has any such number."""


def plain(text: str, context: str) -> str:
    """Return a text with the thousands of its numbers in digits alone; ``context`` holds it; O(length)."""
    comma = _COMMA.search(context) is not None and not _PLACE.search(context)

    def written(match: re.Match[str]) -> str:
        groups = match["whole"].split(".")
        sure = match["coin"] or match["behind"] or match["rest"] or comma
        if match["each"] or _is_address(groups) or not (sure or len(groups) == 3):
            return match[0]
        decimals = (match["rest"] or "").replace(",", ".")
        return f"{match['coin'] or ''}{''.join(groups)}{decimals}{match['behind'] or ''}"

    return _DOTTED.sub(written, text)


def _is_address(groups: list[str]) -> bool:
    """Whether numbers between dots may be those of an IP address."""
    return len(groups) == 4 and all(int(one) < 256 for one in groups)

"""The sign of a number that stands in words or apart from its digits: ``fell by 12``, ``-$12``.

Pure; looks at a bounded piece of folded text beside the number.
"""

from __future__ import annotations

import re

_BEFORE, _BEHIND = 48, 32
"""Characters beside a number whose words tell its sign."""

_CLAUSE_END = re.compile(r"[;:!?\n]|[.,](?=\s|$)")

_LOWER = re.compile(
    r"""\b(?:minus|negative|below|beneath|under|less|fewer|lower\w*|smaller|cheaper|colder|cooler
    |slower|f[ae]ll(?:s|en|ing)?|drop\w*|declin\w*|decreas\w*|reduc\w*|los(?:s|ses|t|es?|ing)|down\w*
    |shr[aiu]nk\w*|dip(?:s|ped)?|plung\w*|slid|slip\w*|weaken\w*|cut|behind|deficits?|debts?|owe[sd]?
    |overdrawn|debit\w*|withdr[ae]w\w*|subtract\w*|short|shorter|off|south(?:ern)?|west(?:ern)?
    |bce?|ago|earlier|before|differ\w*|apart|absolute)\b
    |\u00b0\s?[sw]\b|\d\s?[sw]\b""",
    re.VERBOSE,
)
_EITHER = re.compile(r"(?:[-\u2212]\s?[$\u20ac\u00a3\u00a5\u20b9]\s?|\b(?:minus|negative)\s|\d\s)$")
_NEAR = 12


def is_below(text: str, start: int, end: int) -> bool:
    """Whether the words of its clause put the number at ``start:end`` below zero, or make it a fall.

    A number that is told so may stand for one below zero: "fell by 12", "5.25 degrees below zero",
    "77 degrees west", "the difference is 5 hours".
    """
    before = _CLAUSE_END.split(text[max(0, start - _BEFORE) : start])[-1]
    behind = text[start:end] + _CLAUSE_END.split(text[end : end + _BEHIND])[0]
    return bool(_LOWER.search(before) or _LOWER.search(behind))


def may_be_either(text: str, start: int) -> bool:
    """Whether a number at ``start`` may as well have the other sign, by what stands before it.

    Its sign stands apart (``-$5``, "minus 5"), or its dash may be one between two numbers (``9 -17``).
    """
    found = _EITHER.search(text, max(0, start - _NEAR), start)
    if found is None:
        return False
    return text[start] in "-\u2212" or not found[0][0].isdigit()

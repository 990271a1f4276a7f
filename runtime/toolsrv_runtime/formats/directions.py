"""Which of two parameters with one list is from and which is to: "350 fahrenheit to celsius". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats.facts import words

_FROM = re.compile(r"\b(?:from|source|base|input|have)\b")
_TO = re.compile(r"\b(?:to|target|into|output|want)\b")
# What stands before the scale that a value is told in.
_TOLD_IN = re.compile(r"(?:\d\s?(?:°|degrees?)?\s?|\bfrom\s+(?:degrees?\s+)?)$", re.IGNORECASE)


def told(parameter: Parameter, api: Api, text: str) -> str:
    """Return the allowed value that ``text`` states for a parameter by its place, "" for none.

    The value behind a number, or behind "from", is what is converted; the other one what is wanted.
    Only where two parameters share the list, by name one of each, and two of its values are named.
    """
    others = [one for one in api.parameters if one != parameter and one.enum == parameter.enum]
    if not parameter.enum or len(others) != 1:
        return ""
    mine, other = (words(one.name) for one in (parameter, others[0]))
    is_from = bool(_FROM.search(mine) and _TO.search(other))
    if not is_from and not (_TO.search(mine) and _FROM.search(other)):
        return ""
    named = [
        (option, bool(_TOLD_IN.search(text[: match.start()])))
        for option in parameter.enum
        for match in re.finditer(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE)
    ]
    if len(named) != 2 or named[0][0] == named[1][0] or named[0][1] == named[1][1]:
        return ""
    return next(option for option, told_in in named if told_in == is_from)

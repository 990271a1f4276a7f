"""Dice as people tell them: three dice are 3d6, two eight-sided ones 2d8. Pure."""

from __future__ import annotations

import re

from text_to_num import alpha2digit

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_SAID = re.compile(
    r"(?<![\w.-])(?:(?P<count>\d{1,3}|an?|a couple of|a pair of|the|my)\s+)?"
    r"(?:(?:normal|ordinary|standard|regular|fair|usual)\s+)?"
    r"(?:(?P<sides>\d{1,4})[ -](?:sided|faced)\s+(?:dic?e|ones)|d(?P<short>\d{1,4})s?|(?P<plain>dic?e))"
    r"(?:\s+(?:with|of)\s+(?P<faces>\d{1,4})\s+(?:sides|faces))?(?![\w-])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s-]+")  # one by one: "two eight-sided" are no ten
_COUNTS = {"a couple of": "2", "a pair of": "2"}
_SIX, _ONE = "6", "1d6"
"""What a die has unless something else is told, and what is rolled where nothing is."""


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the dice that a part tells, as 3d6, for a parameter of dice; "" for none or several."""
    if "dice" not in words(parameter.name).split() or parameter.enum:
        return ""
    text = " ".join(alpha2digit(one, "en", 0) for one in _WORD.findall(wish.part))
    found = {_read(match) for match in _SAID.finditer(text)}
    return found.pop() if len(found) == 1 and found != {_ONE} else ""


def _read(match: re.Match[str]) -> str:
    said = (match["count"] or "1").lower()
    count = said if said.isdigit() else _COUNTS.get(said, "1")
    return f"{count}d{match['sides'] or match['short'] or match['faces'] or _SIX}"

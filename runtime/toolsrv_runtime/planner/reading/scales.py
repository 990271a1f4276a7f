"""The scale that a number is told in: of "375 fahrenheit, what gas mark?" the one beside the number. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.lexicon import UNITS

_SCALES = frozenset({"scale", "unit", "units"})
_NUMBER = r"\d+(?:[.,]\d+)?"


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the one allowed scale that stands beside a number in a part, else in the task; or "".

    Only for a function with one list of scales: where there are two, one of them is wanted.
    """
    lists = [one for one in api.parameters if one.enum and _is_scale(one)]
    if lists != [parameter]:
        return ""
    for text in (wish.part, wish.task):
        found = [one for one in parameter.enum if _is_beside(one, text)]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


def _is_scale(parameter: Parameter) -> bool:
    name = words(parameter.name).split()
    return not _SCALES.isdisjoint(name) and "to" not in name


def _is_beside(option: str, text: str) -> bool:
    """Whether a number stands right before a scale, or right behind it: "gas mark 6"."""
    name = words(option)
    ways = [re.escape(name)]
    ways += [said for unit, said in UNITS.items() if name in words(unit).lower().split()]
    said = "|".join(ways)
    behind = rf"{_NUMBER}\s?(?:°\s?|degrees?\s)?(?:{said})(?![\w/])"
    first, _, rest = name.partition(" ")  # people say "gas 6"
    lead = re.escape(first) + (rf"(?:\s{re.escape(rest)})?" if rest else "")
    before = rf"(?<!\w){lead}\s{_NUMBER}(?![\w%])"
    return bool(re.search(rf"(?<![\w.,])(?:{behind})|{before}", text, re.IGNORECASE))

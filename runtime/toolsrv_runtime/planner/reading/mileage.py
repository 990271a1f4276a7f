"""What a car uses, as people say it: "35 mpg", "15 km to the litre", as liters per 100 km. Pure.

A gallon is the American one unless the text says otherwise.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_US, _UK = 235.214583, 282.480936
"""Liters per 100 km of a car that does one mile to the gallon."""

_LITERS = re.compile(
    r"\blit(?:er|re)s? (?:per|for|on) (?:100|a hundred) ?(?:km|kilomet(?:er|re)s?)\b"
)
_TO_THE = r"\s?(?:/\s?|per |an? |to (?:the|an?) )"
_PER_GALLON = re.compile(
    rf"(?<![\w.,])(\d+(?:\.\d+)?)\s?(?:mpg|(?:miles?|mi){_TO_THE}(?:[a-z]+ )?(?:gal|gallon))\b",
    re.IGNORECASE,
)
_PER_LITER = re.compile(
    rf"(?<![\w.,])(\d+(?:\.\d+)?)\s?(?:kms?|kilomet(?:er|re)s?){_TO_THE}(?:l|lit(?:er|re))\b",
    re.IGNORECASE,
)
_PER_100 = re.compile(
    r"(?<![\w.,])\d+(?:\.\d+)?\s?l(?:it(?:er|re)s?)?(?:\s?/\s?|\s(?:per|for|on|to)\s)(?:100|a hundred|hundred)(?!\d)",
    re.IGNORECASE,
)
_IMPERIAL = re.compile(r"\b(?:uk|imperial|british|england|britain|scotland)\b", re.IGNORECASE)
_USES = re.compile(
    r"(?<![a-z])(?:l|lit(?:er|re)s?|gal(?:lon)?s?|mpg|consum\w*|burns?|drinks?|us(?:es|ed|ing|age)|guzzl\w*|economy)\b"
    r"|/ ?100",
    re.IGNORECASE,
)
_OF_A_PLACE = re.compile(r"(?P<unit>\w+)_(?P<place>us|uk)")


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return what a car uses in liters per 100 km, or which gallon is meant; "" for nothing said."""
    if parameter.enum:
        return _gallon(parameter, wish)
    if not _LITERS.search(f"{words(parameter.name)}; {parameter.description}".lower()):
        return ""
    imperial = bool(_IMPERIAL.search(wish.task))
    for text in (wish.part, wish.context, wish.task):
        if _PER_100.search(text):
            return ""  # told as it is
        told = [(_UK if imperial else _US, one) for one in _PER_GALLON.findall(text)]
        told += [(100, one) for one in _PER_LITER.findall(text)]
        found = {f"{round(top / float(one), 2):g}" for top, one in told if float(one)}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def is_untold(parameter: Parameter, task: str) -> bool:
    """Whether a parameter is what a car uses, and a task says nothing of that."""
    about = bool(_LITERS.search(f"{words(parameter.name)}; {parameter.description}".lower()))
    return about and not parameter.enum and _USES.search(task) is None


def _gallon(parameter: Parameter, wish: Wish) -> str:
    """Return the allowed value of the gallon that is meant, where a text tells miles to one."""
    if len(_PER_100.findall(wish.task)) == 1 and not _PER_GALLON.search(wish.task):
        return next((one for one in parameter.enum if "100" in one), "")
    options = {
        match["place"].lower(): one
        for one in parameter.enum
        if (match := _OF_A_PLACE.fullmatch(one))
    }
    if len(options) < 2 or not (_PER_GALLON.search(wish.part) or _PER_GALLON.search(wish.task)):
        return ""
    return options["uk" if _IMPERIAL.search(wish.task) else "us"]

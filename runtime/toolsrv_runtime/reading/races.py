"""Which race a result is of: "a 1:45 half", "my 10k in 44:30". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.reading import patterns
from toolsrv_runtime.reading.facts import words
from toolsrv_runtime.reading.wish import Wish

_RACE = r"(?P<race>(?:half|full)(?:[ -]marathon)?|marathon|\d{1,3}(?:\.\d)? ?(?:k|km|miles?))"
_TIME = r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:])"
_RESULT = (
    re.compile(rf"{_TIME} (?:for |over |in )?(?:an? |the |my )?{_RACE}\b", re.IGNORECASE),
    re.compile(
        rf"\b{_RACE} (?:(?:time|pb|pr|best|result) )?(?:is |was |in |of |at )+{_TIME}",
        re.IGNORECASE,
    ),
)
_DONE = re.compile(r"\b(?:known|already|previous|recent|done|from|current)\b")


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the race that the one result of a part, or else the task, is of; or "".

    For a function that takes two distances, and the one of the result.
    """
    lengths = [one for one in api.required if patterns.kind(one, api) == "length"]
    done = f"{words(parameter.name)} {parameter.description}".lower()
    if len(lengths) < 2 or parameter not in lengths or not _DONE.search(done):
        return ""
    for text in (wish.part, wish.task):
        found = {match["race"].lower() for one in _RESULT for match in one.finditer(text)}
        if found:
            race = found.pop()
            race = f"{race} marathon" if race in {"half", "full"} else race
            return race if not found else ""
    return ""

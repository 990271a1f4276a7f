"""The seed of something random: "with seed 21, so that we can repeat it", "same seed". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_SEED = re.compile(
    r"\bseed(?:ed)?(?: (?:is|of|to|with|number|value))?[ :=]{1,2}(?P<after>\d{1,9})\b(?![.,:/-]\d)"
    r"|(?<![\w.,:/-])(?P<before>\d{1,9}) (?:as|for|is|being) (?:the |a |our |your )?seed\b",
    re.IGNORECASE,
)
_SAME = re.compile(r"\b(?:same|that|this) seed\b", re.IGNORECASE)
_STOP = re.compile(r"[.?!;](?=\s|$)")


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one seed of a task where the sentence of the part tells it, or says "same seed"."""
    if words(parameter.name).split()[-1:] != ["seed"]:
        return ""
    at = wish.task.find(wish.part)
    if at < 0:
        return ""
    begin = max((one.end() for one in _STOP.finditer(wish.task, 0, at)), default=0)
    end = _STOP.search(wish.task, at + len(wish.part))
    sentence = wish.task[begin : end.end() if end else len(wish.task)]
    seeds = {one["after"] or one["before"] for one in _SEED.finditer(wish.task)}
    if len(seeds) != 1 or not (_SEED.search(sentence) or _SAME.search(sentence)):
        return ""
    return seeds.pop()

"""Which race a result is of: "a 1:45 half", "my 10k in 44:30". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import paces
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_RACE = r"(?P<race>(?:half|full)(?:[ -]marathon)?|marathon|\d{1,3}(?:\.\d)? ?(?:k|km|miles?))"
_TIME = r"(?P<time>(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:]))"
_RESULT = (
    re.compile(rf"{_TIME} (?:for |over |in )?(?:an? |the |my )?{_RACE}\b", re.IGNORECASE),
    re.compile(
        rf"\b{_RACE} (?:(?:time|pb|pr|best|result) )?(?:is |was |in |of |at )+{_TIME}",
        re.IGNORECASE,
    ),
)
_SAME_PACE = re.compile(
    r"\b(?:that|this|the same|(?:exactly|just) that)(?: (?:pace|speed|rate|tempo)\b)", re.IGNORECASE
)
_MARATHON_KM, _MILE_KM = 42.195, 1.609344
_FASTEST = 120
"""Seconds that nobody runs a kilometer in."""

_TIMED = frozenset({"time", "duration"})
_DONE = re.compile(r"\b(?:known|already|previous|recent|done|from|current)\b")


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the race that the one result of a part, or else the task, is of; or "".

    For a function that takes two distances, and the one of the result.
    """
    lengths = [one for one in api.required if kinds.value_kind(one, api) == "length"]
    done = f"{words(parameter.name)} {parameter.description}".lower()
    if len(lengths) < 2 or parameter not in lengths or not _DONE.search(done):
        return ""
    return _of_result(wish)


def at_pace(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the distance that a pace is worked out from, or that is to be run at it; or "".

    Where "that pace" tells the two apart: "10 km in 52:30. What would a half marathon take at that
    pace?" For a function of one distance, and a time or a pace.
    """
    lengths = [one for one in api.required if kinds.value_kind(one, api) == "length"]
    others = {one for each in api.required for one in words(each.name).split()}
    if lengths != [parameter] or not _SAME_PACE.search(wish.task):
        return ""
    if not _TIMED.isdisjoint(others):
        return _of_result(wish)
    if "pace" not in others:
        return ""
    done = _results(wish.task)
    found = {one.lower() for one in kinds.find_values("length", wish.task)} - done
    return found.pop() if len(done) == len(found) == 1 else ""


def pace(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the pace per kilometer of the one result that "the same pace" means; or "".

    "My 5k was 24:10. At the same pace, how long for 12 km?": 24:10 is no pace, 4:50 is.
    """
    if paces.unit_of(parameter) != "kilometer" or not _SAME_PACE.search(wish.task):
        return ""
    found = {
        (match["race"].lower(), match["time"])
        for one in _RESULT
        for match in one.finditer(wish.task)
    }
    if len(found) != 1:
        return ""
    race, time = found.pop()
    seconds = 0
    for one in time.split(":"):
        seconds = seconds * 60 + int(one)
    if time.count(":") == 1 and seconds < _FASTEST * _kilometers(race):
        seconds *= 60  # "a 1:45 half" is hours and minutes
    each = round(seconds / _kilometers(race))
    return f"{each // 60}:{each % 60:02d}"


def _kilometers(race: str) -> float:
    number = re.match(r"[\d.]+", race)
    if number is None:
        return _MARATHON_KM / 2 if race.startswith("half") else _MARATHON_KM
    return float(number[0]) * (_MILE_KM if "mile" in race else 1)


def _of_result(wish: Wish) -> str:
    for text in (wish.part, wish.task):
        if found := _results(text):
            race = found.pop()
            race = f"{race} marathon" if race in {"half", "full"} else race
            return race if not found else ""
    return ""


def _results(text: str) -> set[str]:
    return {match["race"].lower() for one in _RESULT for match in one.finditer(text)}

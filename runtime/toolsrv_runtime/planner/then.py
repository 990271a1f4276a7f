"""The day and the moment that words point back at: "what moon will we have that evening".

That which the last call with one has answered, else the one that the task tells before. Pure but
for the clock: today is no day that was told.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import upcoming
from toolsrv_runtime.planner.scene import Offer, Scene, news
from toolsrv_runtime.values.dates import today
from toolsrv_runtime.values.kinds import find_values, normalise_value, value_kind

_CLOCK = re.compile(
    r"\b(?:clocks?|watch|local time|what time|which time|what hour)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.?!;])\s+")
_THAT_DAY = re.compile(
    r"\b(?:that|the same|the very) (?:very )?(?:day|date|evening|night|morning|afternoon)\b"
    r"|\bthis (?:very )?(?:day|date)\b"
    r"|\b(?:by|back|was|were|is|be|are|have|had|there) then\b|\bthen\W*$",
    re.IGNORECASE,
)
_THAT_MOMENT = re.compile(
    r"\b(?:at|in) that (?:very )?(?:moment|instant|time|second|point)\b"
    r"|\b(?:showed|said|was|were|be|read) (?:back )?then\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:will|shall) (?:i|we|he|she|it|they|you|there|be|the|my|our|his|her|their)\b"
    r"|\b(?:i|we|he|she|it|they|you)['’]ll\b",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(?::\d\d)?")
_FROM = re.compile(r"from|source|origin")


def told(parameter: Parameter, api: Api, part: str, scene: Scene) -> str:
    """Return the day, the moment or the zone of that for a parameter, "" where none is meant."""
    kind = value_kind(parameter, api)
    if kind == "date" and _THAT_DAY.search(part) and not find_values("date", part):
        return _day(part, scene)
    if kind == "date" and parameter in api.optional and _AHEAD.search(part):
        return _coming(part, scene)
    if kind not in {"time", "zone"} or not _THAT_MOMENT.search(part):
        return ""
    if find_values("time", part) or (kind == "zone" and not _FROM.search(parameter.name)):
        return ""
    found = _moment(scene)
    if not found:
        return ""
    name, moment = found
    return moment if kind == "time" else name


def wishes(task: str) -> list[str]:
    """Return the sentences that ask what clocks showed at a moment told before them."""
    found = (one.strip(" ,;:.!?") for one in _SENTENCE.split(task))
    return [one for one in found if _CLOCK.search(one) and _THAT_MOMENT.search(one)]


def converter(words: str, scene: Scene) -> Offer | None:
    """Return the function that tells such words a moment in another zone; None for other words."""
    if words not in wishes(scene.task):
        return None
    for offer in scene.offers:
        api = offer.function.api
        kinds = sorted(value_kind(one, api) for one in api.required)
        if kinds == ["time", "zone", "zone"]:
            return offer
    return None


def _day(part: str, scene: Scene) -> str:
    now = str(today())
    for step in reversed(scene.path):
        days = [
            day[0]
            for _, value in upcoming.meant(news(step) if step.ok else (), scene.task)
            if (day := _DAY.match(value)) and day[0] != now
        ]
        if days:
            return days[0]
    return _told_day(part, scene)


def _coming(part: str, scene: Scene) -> str:
    """Return the one day told before a part, where it lies ahead and the part names none itself.

    "I fly to Bishkek on 10 June 2027. How many hours will I be ahead of Prague?"
    """
    day = "" if find_values("date", part) else _told_day(part, scene)
    return day if day > str(today()) else ""


def _told_day(part: str, scene: Scene) -> str:
    before = scene.task[: max(0, scene.task.find(part)) + len(part)]
    days = [normalise_value("date", one) for one in find_values("date", before)]
    full = dict.fromkeys(one for one in days if _DAY.fullmatch(one))
    return next(iter(full)) if len(full) == 1 else ""


def _moment(scene: Scene) -> tuple[str, str] | None:
    """Return the zone that an answered moment is told in by its name, UTC alone, and the moment."""
    for step in reversed(scene.path):
        for name, value in news(step) if step.ok else ():
            if name.startswith("utc") and (one := _MOMENT.fullmatch(value)):
                return "UTC", f"{one[1]} {one[2]}"
    return None

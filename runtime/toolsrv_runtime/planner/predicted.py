"""A race and its predicted time, where a part goes on with them: "and what pace is that per km?" Pure."""

from __future__ import annotations

import json
import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import grounding
from toolsrv_runtime.planner.scene import Scene, news
from toolsrv_runtime.values import kinds as patterns
from toolsrv_runtime.values.facts import words

_PREDICTED = re.compile(r"\b(?:predicted|estimated|expected)\b.*\btime\b")
_WANTED = re.compile(r"\b(?:race|target|wanted)\b")
_STOP = re.compile(r"[.?!;]\s")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")


def told(parameter: Parameter, api: Api, part: str, scene: Scene) -> str:
    """Return the distance or the time of the race that the last call predicted; or "".

    For a function of one distance and one time, where the part, or what follows it in its sentence,
    points back and the part tells neither.
    """
    kinds = [patterns.value_kind(one, api) for one in api.required]
    last = next((step for step in reversed(scene.path) if step.ok), None)
    if parameter not in api.required or last is None:
        return ""
    if not grounding.refers(_sentence(part, scene.task)):
        return ""
    if len(kinds) != 2 or "length" not in kinds or patterns.find_values("length", part):
        return ""
    times = [value for name, value in news(last) if _PREDICTED.search(words(name))]
    given = json.loads(last.move.arguments)
    races = [
        str(value)
        for name, value in given.items()
        if _WANTED.search(words(name)) and "distance" in words(name).split()
    ]
    if len(times) != 1 or len(races) != 1 or not _CLOCK.fullmatch(times[0]):
        return ""
    own = words(parameter.name).split()
    if patterns.value_kind(parameter, api) == "length":
        return races[0] if any("time" in words(one.name).split() for one in api.required) else ""
    return times[0] if "time" in own else ""


def _sentence(part: str, task: str) -> str:
    """Return a part with the rest of its sentence."""
    begin = max(0, task.find(part))
    stop = _STOP.search(task, begin + len(part))
    return task[begin : stop.start() if stop else len(task)]

"""Paces told for the other unit: "8:30 a mile" and "9-minute miles" as minutes per kilometer. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import normalise_value
from toolsrv_runtime.values.lexicon import TO_TWELVE

_MILE_KM = 1.609344
_NAMES = {"mile": r"(?:mile|mi)s?", "kilometer": r"(?:kilomet(?:er|re)|km|k)s?"}
_PACE = re.compile(
    rf"(?<![\w:.])(?P<minutes>\d{{1,2}}|{TO_TWELVE})(?::(?P<seconds>\d{{2}}))?"
    r"(?:[ -]?min(?:ute)?s?)?(?:(?:[ -]|\s?/\s?|\s(?:per|an?|each|every|to the)\s))"
    rf"(?:(?P<mile>{_NAMES['mile']})|(?P<kilometer>{_NAMES['kilometer']}))\b",
    re.IGNORECASE,
)


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one pace that a part, or else the task, tells for the unit that is not the parameter's.

    "" for a pace of the parameter's own unit: that is read as it stands.
    """
    unit = unit_of(parameter)
    for text in (wish.part, wish.task) if unit else ():
        found = {pace for match in _PACE.finditer(text) if (pace := _read(match, unit))}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def unit_of(parameter: Parameter) -> str:
    """Return the unit that a parameter is a pace for, "" for what is none."""
    if "pace" not in words(parameter.name).split():
        return ""
    said = f"{words(parameter.name)} {parameter.description}"
    units = [name for name, way in _NAMES.items() if re.search(rf"\b{way}\b", said, re.IGNORECASE)]
    return units[0] if len(units) == 1 else ""


def _read(match: re.Match[str], unit: str) -> str:
    told = "mile" if match["mile"] else "kilometer"
    bare = match["seconds"] is None and "min" not in match[0].lower()
    spelled = not match["minutes"].isdecimal()
    if bare or (told == unit and not spelled):  # "10 km" is no pace
        return ""
    minutes = int(normalise_value("number", match["minutes"]))
    if told == unit:
        return f"{minutes}:00"
    seconds = minutes * 60 + int(match["seconds"] or 0)
    whole = round(seconds / _MILE_KM if unit == "kilometer" else seconds * _MILE_KM)
    return f"{whole // 60}:{whole % 60:02d}"

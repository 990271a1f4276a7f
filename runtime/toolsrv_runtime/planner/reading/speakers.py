"""The language that a task asks for by the people that speaks it: how would a Swede write that."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds

_SAYS = r"(?:say|write|spell|read|call|name|put|pronounce|express|count)"
_PEOPLE = r"(?:(?:an?|the) )?([^\W\d_]+)(?: people| speakers?)?"
_SPEAKERS = re.compile(
    rf"\b(?:would|do|does|might) {_PEOPLE} {_SAYS}\b"
    rf"|\b(?:as|like|the way|how) {_PEOPLE} (?:would|do|does|might|{_SAYS}s?)\b",
    re.IGNORECASE,
)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the language of the one people whose way of saying a thing is asked for, else "".

    "How would a Swede write that", "as a Frenchman would say", "the way Germans do it": by the part
    or what leads up to it, for the one language that a function takes.
    """
    languages = [one for one in api.parameters if kinds.value_kind(one, api) == "language"]
    if languages != [parameter] or parameter.enum:
        return ""
    for text in (wish.part, wish.context):
        spoken = {kinds.language_of_people(one or other) for one, other in _SPEAKERS.findall(text)}
        spoken = {one.capitalize() for one in spoken if kinds.is_language(one)}
        if spoken:
            named = {one.capitalize() for one in kinds.find_values("language", text)}
            return spoken.pop() if len(spoken | named) == 1 else ""
    return ""

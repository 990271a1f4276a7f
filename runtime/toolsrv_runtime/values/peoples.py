"""Countries and languages by what their people and what is theirs are called: Polish, a Pole.

``peoples.txt`` has a country a line, and behind the colon its words; a hyphen stands for a blank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.values import patterns
from toolsrv_runtime.values.wish import Wish

_SAYS = r"(?:say|write|spell|read|call|name|put|pronounce|express|count)"
_PEOPLE = r"(?:(?:an?|the) )?([^\W\d_]+)(?: people| speakers?)?"
_SPEAKERS = re.compile(
    rf"\b(?:would|do|does|might) {_PEOPLE} {_SAYS}\b"
    rf"|\b(?:as|like|the way|how) {_PEOPLE} (?:would|do|does|might|{_SAYS}s?)\b",
    re.IGNORECASE,
)


def country(said: str) -> str:
    """Return the country that a word for its people means; any other text as it is."""
    word = " ".join(said.lower().split()).removeprefix("the ").removesuffix("'s")
    return _countries().get(word) or _countries().get(word.removesuffix("s")) or said


def countries(text: str) -> list[str]:
    """Return the names of countries in a text, distinct, in their order."""
    return list(dict.fromkeys(match[0] for match in _named().finditer(text)))


def language(said: str) -> str:
    """Return the language that a word for a people means; any other text as it is."""
    if patterns.is_language(said):
        return said
    home = country(said)
    theirs = (word for word, name in _countries().items() if name == home)
    return next((word.capitalize() for word in theirs if patterns.is_language(word)), said)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the language of the one people whose way of saying a thing is asked for, else "".

    "How would a Swede write that", "as a Frenchman would say", "the way Germans do it": by the part
    or what leads up to it, for the one language that a function takes.
    """
    languages = [one for one in api.parameters if patterns.kind(one, api) == "language"]
    if languages != [parameter] or parameter.enum:
        return ""
    for text in (wish.part, wish.context):
        spoken = {language(one or other) for one, other in _SPEAKERS.findall(text)}
        spoken = {one.capitalize() for one in spoken if patterns.is_language(one)}
        if spoken:
            named = {one.capitalize() for one in patterns.find("language", text)}
            return spoken.pop() if len(spoken | named) == 1 else ""
    return ""


@cache
def _countries() -> Mapping[str, str]:
    found: dict[str, str] = {}
    text = (files("toolsrv_runtime.values") / "peoples.txt").read_text("utf-8")
    for line in text.splitlines():
        name, _, peoples = line.partition(": ")
        found |= {people.lower().replace("-", " "): name for people in peoples.split()}
    return found


@cache
def _named() -> re.Pattern[str]:
    names = sorted(set(_countries().values()), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")

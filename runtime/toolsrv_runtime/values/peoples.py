"""Countries and languages by what their people and what is theirs are called: Polish, a Pole.

``peoples.txt`` has a country a line, and behind the colon its words; a hyphen stands for a blank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from toolsrv_runtime.values import patterns


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

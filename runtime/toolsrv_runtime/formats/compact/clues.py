"""Signs of a task that stand for something else: a calling code, Morse, a year in Roman numerals.

"A buyer whose number begins with +351 wants it on 10 June. Is that a holiday where she lives?": no
document of a holiday's function says so, but what the sign stands for has to be known first. What
is asked about it is put in words of our own; the matcher says what serves them. Pure but for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from toolsrv_registry.matcher import Asked
from toolsrv_runtime.formats.base import Prior
from toolsrv_runtime.formats.compact.bridging import SURE, Crossing, taker
from toolsrv_runtime.formats.compact.scene import Scene

_CALLING = re.compile(
    r"(?<![\w+])(?<!UTC )(?<!GMT )\+[1-9]\d{0,3}"
    r"(?!\d|[ /.-]?\(?\d|\s?[%°]|\s(?:degrees|hours?|semitones?|[CF]\b))(?=\W|$)"
)
_CALLS = re.compile(
    r"\b(?:phones?|numbers?|dial\w*|call\w*|prefix\w*|rings?|picks? up|mobiles?)\b", re.IGNORECASE
)
_NEAR = 60
"""Characters around a calling code in which a phone is spoken of."""

_MORSE = re.compile(r"(?<![\w.-])(?:[.·-]{1,6}(?:\s+/\s+|\s{1,3})){2,}[.·-]{1,6}(?![\w-])")

# A year on a stone or a film: shorter ones are names, kings and chapters.
_YEAR = re.compile(
    r"(?<![\w.'’-])(?=[MDCLXVI]{4,}(?![\w'’-]))M{1,2}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?!\w)"
)


class Clue(NamedTuple):
    """A sign as the task has it, and what to ask about it."""

    sign: str
    question: str


def find(task: str) -> Iterator[Clue]:
    """Yield the signs of a task that stand for a thing."""
    for one in _CALLING.finditer(task):
        if _CALLS.search(task, max(0, one.start() - _NEAR), one.end() + _NEAR):
            yield Clue(one[0], f"Which country has the calling code {one[0]}?")
    for one in _MORSE.finditer(task):
        if "-" in one[0] and "." in one[0]:
            yield Clue(one[0], f"What does the Morse code {one[0]} say?")
    for one in _YEAR.finditer(task):
        yield Clue(one[0], f"Which number is the Roman numeral {one[0]}?")


def is_part(said: str, task: str) -> bool:
    """Whether a number stands only within signs: the 370 of +370 is no number to write in words."""
    bare = task
    for sign, _ in find(task):
        bare = bare.replace(sign, " ")
    number = re.compile(rf"(?<![\w.,]){re.escape(said)}(?!\w)")
    return bare != task and not number.search(bare) and bool(number.search(task))


def read(scene: Scene, prior: Prior) -> Crossing | None:
    """Return the call that says what the next sign stands for; None where all were read."""
    given = {
        str(value) for step in scene.attempts for value in json.loads(step.move.arguments).values()
    }
    for sign, question in find(scene.task):
        forms = (sign, sign.lstrip("+"))
        if not given.isdisjoint(forms):
            continue
        matches = prior.match(Asked(question), [one.function.api for one in scene.offers])
        found = [
            (match.serves, Crossing(sign, offer, {key: value}))
            for offer, match in zip(scene.offers, matches, strict=False)
            for value in forms
            if match.serves >= SURE and (key := taker(offer, match, question, value))
        ]
        if found:
            return max(found, key=lambda one: one[0])[1]
    return None

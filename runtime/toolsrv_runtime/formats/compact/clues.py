"""Signs of a task that stand for something else: a calling code for a country, Morse for words.

"A buyer whose number begins with +351 wants it on 10 June. Is that a holiday where she lives?": no
document of a holiday's function says so, but what the sign stands for has to be known first. What
is asked about it is put in words of our own; the matcher says what serves them. Pure but for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from toolsrv_registry.matcher import Asked
from toolsrv_runtime.formats.base import Prior
from toolsrv_runtime.formats.compact.bridging import SURE, Crossing, taker
from toolsrv_runtime.formats.compact.scene import Offer, Scene, news
from toolsrv_runtime.reading.facts import words
from toolsrv_runtime.reading.number_words import TO_TWELVE
from toolsrv_runtime.reading.readings import read as read_as

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


_SHIFTED = re.compile(
    r"\b(?P<done>(?:pushed|moved|shifted|put|slid|turned) )?(?:every|each|all(?: the)?|the)(?: single)? letters?\b"
    r"(?P<stands>[^.?!:]{0,60}?) "
    rf"(?P<count>\d{{1,2}}|{TO_TWELVE}) (?:(?:places?|letters?|steps?|positions?|spots?) )?(?:too )?"
    r"(?P<way>forwards?|on|onwards?|further|ahead|far on|to the right|along|up|back\w*|down|to the left)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:is|are|was|were|been|stands?|sits?|lies?|got|moved|shifted|pushed)\b", re.IGNORECASE
)
_BACK = re.compile(r"back|down|left", re.IGNORECASE)
_CIPHERED = re.compile(
    r"\b(?:got|gets?|reads?|says?|shows?|is|was|country|city|word|name|note|message|clue|code)(?: now)?:? "
    r"[\"'“‘]?(?P<said>(?-i:[A-Z]{4,}|[A-Z][a-z]*[bcdfghj-np-tv-z]{3}[a-z]*|[a-z]*[bcdfghj-np-tv-z]{4}[a-z]*))[\"'”’]?(?=[\s,.;?!]|$)",
    re.IGNORECASE,
)


class Clue(NamedTuple):
    """A sign as the task has it, and what to ask about it."""

    sign: str
    question: str


CIPHER = "Shift the letters of a text back with a Caesar cipher"
"""What finds the function that does."""


def is_shifted(task: str) -> bool:
    """Whether a task says that the letters of something were moved."""
    return _shifted(task) is not None


def find(task: str) -> Iterator[Clue]:
    """Yield the signs of a task that stand for a thing."""
    for one in _CALLING.finditer(task):
        if _CALLS.search(task, max(0, one.start() - _NEAR), one.end() + _NEAR):
            yield Clue(one[0], f"Which country has the calling code {one[0]}?")
    for one in _MORSE.finditer(task):
        if "-" in one[0] and "." in one[0]:
            yield Clue(one[0], f"What does the Morse code {one[0]} say?")


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
    if cipher := _unshifted(scene, given):
        return cipher
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


def _unshifted(scene: Scene, given: Collection[str]) -> Crossing | None:
    """Return the call that moves the letters of a ciphered word back by what the task says.

    Of words of the task that look like none, or of a text that was decoded before.
    """
    told = _shifted(scene.task)
    offer = next((one for one in scene.offers if _shifter(one)[0]), None)
    if told is None or offer is None:
        return None
    decoded = [
        value
        for step in scene.path
        if step.ok
        for name, value in news(step)
        if name in {"text", "result", "decoded"} and len(value) > 3
    ]
    said = [one["said"] for one in _CIPHERED.finditer(scene.task)]
    text = (decoded or said or [""])[0]
    if not text or text in given or any(_shifter(offer)[1] in one for one in _made(offer, scene)):
        return None
    count = int(read_as("number", told["count"]))
    shift = count if _BACK.search(told["way"]) else -count
    key, by = _shifter(offer)
    return Crossing(told[0], offer, {key: text, by: str(shift)})


def _shifted(task: str) -> re.Match[str] | None:
    """Return the words that say so; an order to move letters says no such thing."""
    told = _SHIFTED.search(task)
    return told if told and (told["done"] or _DONE.search(told["stands"])) else None


def _made(offer: Offer, scene: Scene) -> list[dict[str, object]]:
    """Return the arguments that a function was called with."""
    calls = (step.move for step in scene.attempts if step.move.function == offer.function.name)
    return [json.loads(move.arguments) for move in calls]


def _shifter(offer: Offer) -> tuple[str, str]:
    """Return the keys of a cipher's text and of its shift; ("", "") where a function is none."""
    keys = {words(one.name): key for key, one in offer.function.parameters.items()}
    texts = [key for name, key in keys.items() if name in {"text", "message", "plaintext"}]
    return (texts[0], keys["shift"]) if "shift" in keys and len(texts) == 1 else ("", "")

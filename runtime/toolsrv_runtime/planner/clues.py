"""Signs of a task that stand for something else: a calling code, Morse, an airport's code.

"A buyer whose number begins with +351 wants it on 10 June. Is that a holiday where she lives?": no
document of a holiday's function says so, but what the sign stands for has to be known first. What
is asked about it is put in words of our own; the matcher says what serves them. Pure but for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from toolsrv_registry.matcher import MatchRequest
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.planner.bridging import SURE, Crossing, taker
from toolsrv_runtime.planner.scene import Scene

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
_AIRPORT = re.compile(r"(?<![\w.'’-])(?<!\d )(?!(?:UTC|GMT)\b)[A-Z]{3}(?![\w'’-]|\s\d)")
_FLIES = re.compile(
    r"\b(?:tickets?|(?:luggage|suitcase|baggage) tags?|tags?|boarding (?:pass|card)s?|(?:i|we|he|she|they) lands?|land(?:ing)? (?:at|in))\b"
    r"[^.,;?!]{0,40}$",
    re.IGNORECASE,
)
_TAGGED = re.compile(r" (?:(?:luggage|suitcase|baggage|bag) )?(?:tag|sticker|label)\b")
"""What is told of an airport by someone who does not know which it is."""

_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]?\d)")
_IS_RIGHT = re.compile(
    r"\b(?:right|correct(?:ly)?|slips?|typos?|mistakes?|mistyped?|wrong(?:ly)?|valid|proper(?:ly)?|real|add up|adds up)\b",
    re.IGNORECASE,
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
    codes = list(_AIRPORT.finditer(task))
    if len(codes) == 1 and _is_of_a_flight(task, codes[0]):
        yield Clue(codes[0][0], f"Which airport has the code {codes[0][0]}?")
    if "iban" not in task.lower() and _IS_RIGHT.search(task):
        for one in _IBAN.finditer(task):
            yield Clue(one[0], f"Is the IBAN {one[0]} valid?")


def _is_of_a_flight(task: str, code: re.Match[str]) -> bool:
    """Whether somebody holds a ticket to three capitals, or lands there."""
    before = _FLIES.search(task, max(0, code.start() - _NEAR), code.start())
    return bool(before) or _TAGGED.match(task, code.end()) is not None


def is_part(said: str, task: str) -> bool:
    """Whether a number stands only within signs: the 370 of +370 is no number to write in words."""
    bare = task
    for sign, _ in find(task):
        bare = bare.replace(sign, " ")
    number = re.compile(rf"(?<![\w.,]){re.escape(said)}(?!\w)")
    return bare != task and not number.search(bare) and bool(number.search(task))


def cuts(said: str, task: str) -> bool:
    """Whether words are only a piece of an account's number or an IP address: no value of their own."""
    whole = [*_IBAN.finditer(task), *_ADDRESS.finditer(task)]
    return any(said in one[0] and said != one[0] for one in whole)


def read(scene: Scene, prior: Reranker) -> Crossing | None:
    """Return the call that says what the next sign stands for; None where all were read."""
    given = {
        str(value) for step in scene.attempts for value in json.loads(step.move.arguments).values()
    }
    for sign, question in find(scene.task):
        forms = (sign, sign.lstrip("+"))
        if not given.isdisjoint(forms):
            continue
        matches = prior.match(MatchRequest(question), [one.function.api for one in scene.offers])
        found = [
            (match.serves, Crossing(sign, offer, {key: value}))
            for offer, match in zip(scene.offers, matches, strict=False)
            for value in forms
            if match.serves >= SURE and (key := taker(offer, match, question, value))
        ]
        if found:
            return max(found, key=lambda one: one[0])[1]
    return None

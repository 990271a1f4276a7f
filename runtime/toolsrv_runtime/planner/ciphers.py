"""A word whose letters were moved: "every letter has been pushed five places on: Ujwz".

The task says by how many; the function that moves letters moves them back, before anything else is
asked about the word. Pure.
"""

from __future__ import annotations

import json
import re

from toolsrv_runtime.planner.bridging import Crossing
from toolsrv_runtime.planner.reading.directions import HALF_THE_ALPHABET
from toolsrv_runtime.planner.scene import Offer, Scene, news
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.lexicon import TO_TWELVE

CIPHER = "Shift the letters of a text back with a Caesar cipher"
"""What finds the function that does."""

_LETTERS = (
    r"\b(?P<done>(?:pushed|moved|shifted|put|slid|turned) )?(?:every|each|all(?: the)?|the)(?: single)? letters?\b"
    r"(?P<stands>[^.?!:]{0,60}?) "
)
_COUNT = rf"(?P<count>\d{{1,2}}|{TO_TWELVE})(?: (?:places?|letters?|steps?|positions?|spots?))?"
_SHIFTED = (
    re.compile(
        rf"{_LETTERS}(?:by )?{_COUNT} (?:too )?"
        r"(?P<way>forwards?|on|onwards?|further|ahead|far on|to the right|along|up|back\w*|down|to the left)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_LETTERS}(?P<way>on|forwards?|ahead|up|back\w*|down)(?: by)? {_COUNT}(?=\W|$)",
        re.IGNORECASE,
    ),
)
_DONE = re.compile(
    r"\b(?:is|are|was|were|been|stands?|sits?|lies?|got|moved|shifted|pushed)\b", re.IGNORECASE
)
_BACK = re.compile(r"back|down|left", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{4,200})[\"”]")
_CIPHERED = re.compile(
    r"\b(?:got|gets?|reads?|says?|shows?|is|was|country|city|word|name|note|message|clue|code)(?: now)?:? "
    r"[\"'“‘]?(?P<said>(?-i:[A-Z]{4,}|[A-Z][a-z]*[bcdfghj-np-tv-z]{3}[a-z]*|[a-z]*[bcdfghj-np-tv-z]{4}[a-z]*))[\"'”’]?(?=[\s,.;?!]|$)",
    re.IGNORECASE,
)

_MORE = re.compile(r"(?: [a-z'’]+){1,12}(?=[.?!\n]|$)")


def is_told(task: str) -> bool:
    """Whether a task says that the letters of something were moved."""
    return _told(task) is not None


def back(scene: Scene) -> Crossing | None:
    """Return the call that moves the letters of a word back by what the task says; None after it.

    Of a text that was decoded before, of the quotation that the task speaks of, or of a word of it
    that looks like none.
    """
    told = _told(scene.task)
    offer = next((one for one in scene.offers if _keys(one)), None)
    keys = _keys(offer) if offer else None
    if told is None or offer is None or keys is None or _is_moved(offer, keys[1], scene):
        return None
    decoded = [
        value
        for step in scene.path
        if step.ok
        for name, value in news(step)
        if name in {"text", "result", "decoded"} and len(value) > 3
    ]
    said = [_whole(one, scene.task) for one in _CIPHERED.finditer(scene.task)]
    text = next(iter([*decoded, *_quoted(scene.task, told), *said]), "")
    count = int(kinds.normalise_value("number", told["count"]))
    forth = count == HALF_THE_ALPHABET or _BACK.search(told["way"])
    shift = count if forth else -count
    return Crossing(told[0], offer, {keys[0]: text, keys[1]: str(shift)}) if text else None


def _whole(word: re.Match[str], task: str) -> str:
    """Return what such a word begins: to the end of its sentence where a colon announced it."""
    more = _MORE.match(task, word.end("said")) if word[0].find(": ") > 0 else None
    return word["said"] + (more[0] if more else "")


def _told(task: str) -> re.Match[str] | None:
    """Return the words that say so; an order to move letters says no such thing."""
    found = (told for pattern in _SHIFTED if (told := pattern.search(task)))
    return next((one for one in found if one["done"] or _DONE.search(one["stands"])), None)


def _quoted(task: str, told: re.Match[str]) -> list[str]:
    """Return the quotation that such words are about: the one before them, or the only one."""
    every = list(_QUOTED.finditer(task))
    before = [one[1] for one in every if one.end() <= told.start()]
    return before[-1:] or [one[1] for one in every if len(every) == 1]


def _is_moved(offer: Offer, shift: str, scene: Scene) -> bool:
    """Whether a function was called with a shift already."""
    calls = (one.move for one in scene.attempts if one.move.function == offer.function.name)
    return any(shift in json.loads(move.arguments) for move in calls)


def _keys(offer: Offer) -> tuple[str, str] | None:
    """Return the keys of a cipher's text and of its shift; None where a function is none."""
    keys = {words(one.name): key for key, one in offer.function.parameters.items()}
    texts = [key for name, key in keys.items() if name in {"text", "message", "plaintext"}]
    return (texts[0], keys["shift"]) if "shift" in keys and len(texts) == 1 else None

"""From whose place a task measures: "ahead of us", "3 pm his time, what will my clock say".

Two places of which one is ours and one theirs (``whose``) get their direction by that; where only
one of them is known, the other is the other side's. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsrv_runtime.planner.reading.whose import OTHERS, Side, sentences, whose
from toolsrv_runtime.values.lexicon import TO_TWELVE

_THING = r"(?:local\s+|own\s+|current\s+)*(?:time(?:\s?zone)?|clock|watch|phone|calendar|end|side|place|city|town|home)s?"
_TIME = r"(?:local\s+|own\s+)*time(?:\s?zone)?"


def _sides(mine: str, theirs: str) -> str:
    return rf"(?:(?P<mine>{mine})|(?P<theirs>{theirs}))(?!\w)"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_THEIR = rf"(?:his|her|their|{OTHERS}['’]s?)"
_ANY = _sides(
    rf"me|(?-i:us)|mine|ours|here|(?:my|our)\s+{_THING}|(?:where\s+)?(?:I|we)\s*(?:am|are|['’]m|['’]re)",
    rf"him|{_THEIR}\s+{_THING}|hers?|his|them|theirs|there|"
    rf"(?:where\s+)?(?:he|she|they)\s*(?:is|are|['’]s|['’]re)|{OTHERS}",
)
_WHO = _sides(r"I|we", rf"he|she|they|{OTHERS}")
_PLACE = _sides(
    rf"here|where (?:I|we) (?:am|are)|(?:my|our)\s+{_TIME}",
    rf"there(?!\s+(?:is|are|was|will|be|to)\b)|where (?:he|she|they) (?:is|are)|{_THEIR}\s+{_TIME}",
)
_ZONE = _sides(rf"(?:my|our)\s+{_TIME}|mine|ours", rf"{_THEIR}\s+{_TIME}|hers|theirs")
_OWN = _sides("my|our", _THEIR)
_OVER = r"(?:over\s+|down\s+|back\s+|up\s+)?"

# What the other place is compared with.
_BESIDE = [
    _pattern(
        rf"\b(?:ahead of|behind|than|compared (?:to|with)|relative to)\s+"
        rf"(?:(?:it is|it['’]s|the time)\s+)?{_OVER}(?:(?:for|at|on|by|with|in)\s+)?{_ANY}"
    ),
    _pattern(
        rf"\b(?:far|away|distan\w+|kilomet\w+|km|miles?|hours?|way|fl(?:y|ight))\b[^.?!;]{{0,30}}?\sfrom\s+{_ANY}"
    ),
]
# Who is asked to be ahead or behind.
_AHEAD = r"(?:ahead|behind|later|earlier)"
_ASKED = [
    _pattern(rf"\b{_AHEAD}(?:\s+or\s+{_AHEAD})?\s+(?:am|are|is)\s+{_WHO}"),
    _pattern(rf"\b(?:am|are|is)\s+{_WHO}(?:\s+[\w.-]+){{0,3}}?\s+{_AHEAD}"),
    _pattern(rf"\b{_AHEAD}\s+is\s+it\s+{_OVER}(?:(?:for|at|on|with)\s+)?{_ANY}"),
    _pattern(rf"\bis\s+it\s+{_AHEAD}\s+{_OVER}(?:(?:for|at|on|with)\s+)?{_ANY}"),
]

_NUMBER = rf"(?:\d{{1,2}}|{TO_TWELVE})"
_HOUR = (
    r"(?:\b\d{1,2}(?:[:.]\d\d)?\s?[ap](?:m\b|\.m\b\.?)|\b\d{1,2}[:.]\d\d\b|\b(?:noon|midday|midnight)\b|"
    rf"\b{_NUMBER} o['’]clock)"
)
_BARE = rf"\b(?:at|it['’]s|it is|half past|quarter (?:to|past))\s+{_NUMBER}(?!\w)"
_CLOCK = rf"(?:{_HOUR}|{_BARE})"
_DAY = (
    r"(?:,?\s+(?:(?:on|the|of|this|next|sharp|today|tonight|tomorrow|in the (?:morning|afternoon|evening)|at night|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?|"
    r"\d{4}(?:-\d\d-\d\d)?|\d{1,2}(?:st|nd|rd|th)?)(?!\w),?)){0,8}"
)
# Whose the time of day is that is told.
_TOLD = [
    _pattern(rf"{_CLOCK}{_DAY},?\s+{_OVER}(?:(?:by|at|on|for)\s+)?{_PLACE}"),
    _pattern(rf"(?:\b(?:at|it['’]s|it is)\s+{_HOUR}|{_BARE}){_DAY},?\s+in\s+{_ZONE}"),
    _pattern(rf"{_CLOCK}{_DAY},?\s+(?:at|on|by)\s+{_ANY}"),
    _pattern(rf"\bit(?:['’]?s|\s+is)\s+{_CLOCK}{_DAY}\s+for\s+{_ANY}"),
    _pattern(rf"\b{_OWN}\s+{_CLOCK}"),
    _pattern(rf"\b{_OWN}\s+(?:clock|watch|phone)s?\s+(?:says?|shows?|reads?|strikes?)\s+{_CLOCK}"),
    _pattern(rf"\b{_WHO}\s+(?:have|has)\s+{_CLOCK}"),
]
# Whose time of day is wanted.
_ASKS = (
    r"\b(?:what|when|which|how late)(?:['’](?:s|ll|d)\b|\s+(?:time|hour|is|it|that|this|will|would|be|do|does|the|then|now|"
    r"clocks?|local|exactly|mean)\b)*\s+"
)
_TURN = "convert|translate|turn|put|tell|give|show"
_WANTED = [
    _pattern(rf"{_ASKS}(?:for|with|at|on|of)\s+{_ANY}"),
    _pattern(rf"{_ASKS}{_OVER}{_PLACE}"),
    _pattern(rf"{_ASKS}{_OWN}\s+(?:clock|watch|phone|calendar)s?\b"),
    _pattern(rf"(?:{_ASKS}|(?:^|[.?!;,])\s*(?:and\s+|so\s+)?)(?:in|to|into)\s+{_ZONE}"),
    _pattern(rf"\b(?:what(?:['’]s| is)|{_TURN})\b[^.?!;]{{0,60}}?\s(?:in|to|into)\s+{_ZONE}"),
    _pattern(rf"\bwhat\s+(?:time\s+)?(?:do|does|will)\s+{_WHO}\s+(?:have|see|read)\b"),
]
_ACTS = [
    _pattern(rf"\b(?:what time|when)\s+(?:do|does|should|must|will|would|can|could)\s+{_WHO}"),
]
_TIMED = re.compile(
    r"\d:\d\d|\d\s?[ap]\.?m\b|\b(?:noon|midday|midnight)\b|o['’]clock|^\d{1,2}$", re.IGNORECASE
)


def first(one: str, other: str, beside: Iterable[str], part: str, task: str) -> str:
    """Return that of two places which is measured from, "" where that is not sure.

    ``beside`` are the other values of the call: with a time of day among them it is the place where
    that is told. What the sentence of the part says comes before what the task says.
    """
    sides = [whose(place, task) for place in (one, other)]
    if sides[0] == sides[1] or not (_stands(one, task) and _stands(other, task)):
        return ""
    timed = any(_TIMED.search(value) for value in beside)
    told = sentences(task)
    sentence = next((text for text in told if part and part in text), "")
    for text in (sentence, " ".join(told)):
        side = _told(text) if timed else _compared(text)
        if side:
            known = sides.index(side) if side in sides else 1 - sides.index(_other(side))
            return (one, other)[known]
    return ""


def _stands(place: str, text: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(place)}(?!\w)", text, re.IGNORECASE))


def _compared(text: str) -> Side:
    """Return whose place another one is compared with."""
    asked: set[Side] = {_other(side) for side in _found(_ASKED, text)}
    return _one(_found(_BESIDE, text) | asked)


def _told(text: str) -> Side:
    """Return at whose place a time of day is told."""
    told = _found(_TOLD, text)
    for pattern in _TOLD:
        text = pattern.sub(" ", text)
    wanted: set[Side] = {_other(side) for side in _found(_WANTED, text)}
    acts: set[Side] = {_other(side) for side in _found(_ACTS, text)}
    return _one(told | wanted or acts)


def _found(patterns: Iterable[re.Pattern[str]], text: str) -> set[Side]:
    found = (one for pattern in patterns for one in pattern.finditer(text))
    return {"mine" if one["mine"] else "theirs" for one in found}


def _other(side: Side) -> Side:
    return "theirs" if side == "mine" else "mine"


def _one(sides: set[Side]) -> Side:
    return next(iter(sides)) if len(sides) == 1 else ""

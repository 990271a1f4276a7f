"""Whose a place is: "we sit in Oslo" makes that ours, "my sister in Lima" makes that hers.

By the words beside a place, in its own sentence. What is put in none of these ways is nobody's.
Pure; every pattern looks at a bounded piece of text.
"""

from __future__ import annotations

import re
from typing import Literal

Side = Literal["mine", "theirs", ""]
"""Who tells the task, with those on that side; everybody else; not known."""

PERSON = (
    r"(?:(?:grand|god|step)?(?:mother|father|mum|mom|dad|son|daughter|child|children|parents?)|"
    r"grann(?:y|ies)|grandma|grandpa|(?:half-)?(?:sister|brother)|aunt(?:ie)?|uncle|cousin|niece|nephew|"
    r"(?:sister|brother|mother|father|son|daughter)-in-law|in-laws|relatives?|family|wife|husband|spouse|"
    r"girlfriend|boyfriend|fianc[eé]e?|partner|friend|pal|buddy|buddies|mate|(?:class|room|team)mate|"
    r"neighbou?r|flatmate|penpal|boss(?:es)?|manager|supervisor|director|chief|colleague|co-?worker|"
    r"employee|employer|assistant|secretar(?:y|ies)|intern|recruiter|client|customer|supplier|vendor|"
    r"dealer|investor|buyer|seller|agent|broker|contractor|freelancer|consultant|contact|host|guest|"
    r"tenant|landlord|landlady|lawyer|attorney|accountant|notary|banker|doctor|dentist|nurse|therapist|"
    r"coach(?:es)?|trainer|teacher|tutor|professor|lecturer|student|pupil|mentor|guru|developer|engineer|"
    r"programmer|designer|architect|editor|author|writer|publisher|translator|printer|journalist|"
    r"researcher|scientist|expert|speaker|player|opponent|musician|singer|band|crew|team|group|committee|"
    r"people|folk|guy|lad(?:y|ies)?|man|men|woman|women|kid|someone|somebody)s?(?!\w)"
)
"""A word for people other than who tells the task."""

OTHERS = rf"(?:(?:(?:one of )?(?:my|our|his|her|their|the|an?|some|these|those)\s+(?:[\w-]+\s+){{0,2}}?)?{PERSON})"
"""The same with what leads up to it: "the new client", "one of my cousins"."""

_HOME = r"(?:home(?:town)?|house|place|flat|apartment|desk|office|company|firm|shop|studio|city|town|end|side|time ?zone)"
_STAYS = (
    r"(?:am|are|is|be|been|live[sd]?|living|sit(?:s|ting)?|sat|stay(?:s|ed|ing)?|work(?:s|ing)?|resid(?:e|es|ing)|"
    r"based|located|stuck|stationed|posted|settled|moved to|stud(?:y|ies|ying)|visiting|travell?ing)"
)
_FEW = (
    r"(?:now|currently|presently|still|just|also|both|all|over|back|down|up|out|right|here|there|at home|alone|"
    r"today|this week|these days|at the moment|on (?:holiday|vacation|business)|will|['’]ll|have|has|['’]ve)"
)
_STAYING = rf"(?:['’](?:m|re|s)\b|\s+{_STAYS}\b|(?:\s+|(?=['’])){_FEW}\b)*"
# "I live in Oslo and work in Lima": both are mine.
_STAYING_TOO = rf"{_STAYING}(?:\s+in\s+(?:(?!(?:and|but)\b)[\w-]+\s+){{1,3}}(?:and|but){_STAYING})?"
_AM = r"(?:['’]m|['’]re|\s+am|\s+are|\s+work)"
_IN = r"(?:\s+(?:in|at|near|outside)\s+|(?<=\bmoved to)\s+|\s*\((?:in\s+)?)$"
_CALLS = r"(?:call|ring|phone|dial|join|writ|talk|speak|connect|log)\w*"
_FROM = rf"(?<!\ba )(?<!\bthe )\b{_CALLS}\b(?:(?!\b(?:he|she|they|who|that|which)\b)[^.;:]){{0,40}}?\sfrom\s+$"

# Sure whoever else is named: "I am a teacher in Lima", "I'm visiting my sister in Lima".
_MINE_ANYHOW = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:I|we){_AM}(?:\s+as)?\s+(?:an?|the)\s+(?:[\w-]+\s+){{0,2}}?{PERSON}{_IN}",
        rf"\b(?:I|we){_AM}(?:\s+{_FEW})*\s+(?:with|visiting|at)\s+{OTHERS}(?:['’]s?)?{_IN}",
        rf"\bhere(?:\s+{_FEW})*{_IN}",
    )
]
_MINE_BEFORE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:I|we){_STAYING_TOO}{_IN}",
        rf"\b(?:me|(?-i:us))(?:\s+{_FEW})*{_IN}",
        rf"\b(?:my|our)\s+(?:own\s+)?{_HOME}\s+is(?:{_IN}|\s+$)",
        r"\b(?:my|our)\s+(?:local\s+)?time\s*\($",
        rf"\b(?:I|we)\b[^.;:]{{0,40}}?{_FROM}",
        r"^\W*(?:sent|greetings|hello|hi|writing|asking|calling) from\s+$",
    )
]
_THEIRS_BEFORE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:he|she|they|him|her|them|{PERSON})(?:,?\s+who)?{_STAYING_TOO}{_IN}",
        rf"\b(?:his|her|their)\s+{_HOME}(?:\s+is)?(?:{_IN}|\s+$)",
        r"\b(?:his|her|their)\s+(?:local\s+)?time\s*\($",
        rf"\b(?-i:[A-Z][a-z]+)\s+(?:is\s+)?(?:lives|sits|works|stays|studies|based|living|staying|working){_IN}",
        r"\b(?:with|call|ring|phone|text|ask|tell)\s+(?-i:[A-Z][a-z]+)\s+in\s+$",
        rf"\b{PERSON}\s+from\s+$",
    )
]
_ELSEWHERE = r"(?!\s+(?:from|to|going|head|fly|due|born|not|when|if)\w*)"
_MINE_AFTER = re.compile(
    rf"\s*,?\s*(?:is\s+)?where\s+(?:I|we)(?:['’]m|['’]re|(?:\s+{_FEW})*\s+{_STAYS}){_ELSEWHERE}\b",
    re.IGNORECASE,
)
_THEIRS_AFTER = re.compile(
    rf"\s*,?\s*(?:is\s+)?where\s+(?:he|she|they|{OTHERS})(?:['’]s|['’]re|(?:\s+{_FEW})*\s+{_STAYS}){_ELSEWHERE}\b"
    rf"|\s+{PERSON}",
    re.IGNORECASE,
)
_TIME = re.compile(r"\s+(?:local\s+)?time\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.?!;:])(?<!\b[ap]\.m\.)\s+", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
_NEAR = 120
"""Characters beside a place that may say whose it is."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without what is quoted: others say "my time" too.

    "3 p.m. my time" is in one.
    """
    return _SENTENCE.split(_QUOTED.sub(" ", text))


def whose(place: str, text: str) -> Side:
    """Return whose a place is by all that ``text`` says of it, "" for nothing or both."""
    word = re.compile(rf"(?<!\w){re.escape(place)}(?!\w)", re.IGNORECASE)
    found = {
        _at(sentence[max(0, one.start() - _NEAR) : one.start()], sentence[one.end() :][:_NEAR])
        for sentence in sentences(text)
        for one in word.finditer(sentence)
    } - {""}
    return found.pop() if len(found) == 1 else ""


def _at(before: str, after: str) -> Side:
    """Return whose a place is by what stands before and behind it."""
    if _TIME.match(after):
        return ""  # "tell me in Lima time"
    if any(one.search(before) for one in _MINE_ANYHOW):
        return "mine"
    mine = any(one.search(before) for one in _MINE_BEFORE) or _MINE_AFTER.match(after)
    theirs = any(one.search(before) for one in _THEIRS_BEFORE) or _THEIRS_AFTER.match(after)
    if mine and theirs:
        return ""
    return "mine" if mine else "theirs" if theirs else ""

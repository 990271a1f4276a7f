"""Where names stand in a text: runs of capitalised words, and what kind of place each is.

A capital at the start of a sentence may be the sentence's; where a value stands (``Capital:
Berlin``, ``"Berlin"``, a list's whole item, a whole answer) it is not. Pure; every pattern looks
at a bounded piece of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['\u2019.-][^\W\d_]+)*(?!\w)")
_BETWEEN = re.compile(
    r"[ \u00a0](?:(?:of|de|da|do|del|di|du|la|le|van|von|der|den|al|bin)[ \u00a0]){0,3}"
)
_START = re.compile(r"(?:^|[.!?:;\n\u2022\u201c\"(\[|>]|\n[-*]|\d\))[\s*_'\"\u201c(\[#-]*$")
_BEFORE_VALUE = re.compile(
    r"(?:^|\n)[ \t]*(?:[-*+\u2022>]|[(#]?\d{1,3}[.)])?[ \t]*[*_`\"'\u201c]*$"
    r"|:[\s*_`\"'\u201c]*$|[*_`\"'\u201c]$"
)
_BEHIND_VALUE = re.compile(
    r"[*_`\"'\u201d\u2019)\]]*+[.!?;]?[*_`\"'\u201d\u2019)\]]*+(?=[ \t]*(?:\n|$))"
    r"|[*_`\"'\u201d\u2019]++(?![\w:])|[.;](?=\s)"
)
_TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof"})
_TITLE = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(_TITLES))})\.?[ \u00a0]$")
_BARE = (
    r"\u0590-\u109f\u10d0-\u10ff\u1100-\u139f\u1400-\u1c7f\u2e80-\u2fdf\u3005-\u31ff\u3400-\ua63f"
    r"\ua800-\uab2f\uabc0-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00011fff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_BARE}]+(?:[ \u00b7\u200c\u200d\u30fb-][{_BARE}]+)*")
_NEAR = 12
"""Characters before a name that tell what place it has."""


@dataclass(frozen=True, slots=True)
class Name:
    """A run of capitalised words. ``opens``: its first capital may only be that of a sentence.

    ``alone``: it fills the place of a value.
    """

    start: int
    text: str
    opens: bool
    alone: bool


def names(text: str, taken: bytearray) -> Iterator[Name]:
    """Yield the names of a text that begin where ``taken`` is 0; a title is no part of one."""
    words = [
        match
        for match in _WORD.finditer(text)
        if match[0][0].isupper() and not taken[match.start()] and match[0] not in _TITLES
    ]
    at = 0
    while at < len(words):
        end = at + 1
        while end < len(words) and _BETWEEN.fullmatch(
            text, words[end - 1].end(), words[end].start()
        ):
            end += 1
        first, last = words[at].start(), words[end - 1].end()
        near = max(0, first - _NEAR)
        yield Name(
            first,
            re.sub(r"['\u2019]s?$", "", text[first:last]),
            opens=_START.search(text, near, first) is not None
            and _TITLE.search(text, near, first) is None,
            alone=_BEFORE_VALUE.search(text, near, first) is not None
            and _BEHIND_VALUE.match(text, last, last + 40) is not None,
        )
        at = end


def runs_without_case(text: str) -> Iterator[tuple[int, str]]:
    """Yield where names in scripts without capitals stand: whole runs, where most letters have case.

    A text mostly in such a script has no word that a reader of its letters alone could call a name.
    """
    if text.isascii():
        return
    runs = [(match.start(), match[0]) for match in _RUN.finditer(text)]
    bare = sum(map(str.isalpha, "".join(run for _, run in runs)))
    if bare * 2 < sum(map(str.isalpha, text)):
        yield from ((start, run) for start, run in runs if any(map(str.isalpha, run)))

"""Text that a task announces: "the words in this note: Meet Ana (the tall one), then go home." Pure.

It is data to its end, though it is in no quotation marks: to the end of the line, or to a sentence
that asks for something again.
"""

from __future__ import annotations

import re
from functools import lru_cache

LIMIT = 4_000
"""Characters of a text that are looked at, and that an announced one has."""

_WHAT = (
    r"note|text|sentence|message|words?|paragraph|passage|line|phrase|quote|quotation|headline|title|"
    r"letter|e-?mail|tweet|caption|review|comment|poem|verse|slogan|string|memo"
)
_HEAD = re.compile(
    rf"\b(?:this|the following|following|these|that)\s+(?:[\w-]+\s+){{0,2}}(?:{_WHAT})"
    r"(?:\s+(?:below|here|for me|please))?\s*:[ \t]*\n?(?=\w|\()",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"\b(?:around|saying|says|reading|reads|containing|with|want) the words (?=[A-Z][\w'’-]* [^\s,.;:?!]+)"
)
_OF_WORDS = re.compile(
    r"[,.;:?!](?=\s|$)|\n|(?<=[A-Z]{2})(?= [a-z])"
    r"|(?= (?:with|in|inside|as|on|using|around) (?:an?|the|my|our|big|plain|capital|morse)\b)"
)
_CAPITALS = re.compile(r":\s+(?P<said>[A-Z][A-Z'’]*(?:,? [A-Z][A-Z'’-]*){3,})(?![\w-])")
_TASK = (
    r"what|what's|how|which|who|tell|give|show|make|turn|write|count|reverse|translate|encode|"
    r"convert|put|find|list|check|compute|hash|spell|i\b"
)
_ENDS = re.compile(
    r"\n|(?<=[.?!])\s+(?=(?:(?:and|also|then|plus|next|finally|please)[\s,]+)+(?:please\s+)?"
    rf"(?:{_TASK})\b|(?:what|what's|how|which|is|does|can|could)\b[^.!?]*\?)",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def announced(text: str) -> tuple[tuple[int, int], ...]:
    """Return where announced texts of several words begin and end, in order."""
    found: list[tuple[int, int]] = []
    for head in _HEAD.finditer(text[:LIMIT]):
        begin = head.end()
        if found and begin < found[-1][1]:
            continue
        end = _ENDS.search(text, begin, begin + LIMIT)
        said = text[begin : end.start() if end else begin + LIMIT].rstrip().removesuffix("?")
        if len(said.split()) > 1:
            found.append((begin, begin + len(said)))
    for head in _WORDS.finditer(text[:LIMIT]):
        end = _OF_WORDS.search(text, head.end(), head.end() + LIMIT)
        found.append((head.end(), end.start() if end else min(len(text), head.end() + LIMIT)))
    found += [one.span("said") for one in _CAPITALS.finditer(text[:LIMIT])]
    found.sort()
    return tuple(
        one for at, one in enumerate(found) if all(one[0] >= other[1] for other in found[:at])
    )

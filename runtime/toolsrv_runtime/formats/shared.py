"""A value that a task names once for several calls: "use seed 12 for both". Pure."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\n+")
_SEVERAL = re.compile(r"\b(?:both|each|all|every|everything|throughout)\b", re.IGNORECASE)


def shared(name: str, text: str) -> str:
    """Return the number that ``text`` states for a parameter in so many words, for several things.

    The parameter's own name has to stand right before it, in a sentence that speaks of "both" or
    "all"; "" where none does. O(len(text)).
    """
    words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name.strip())))
    if not words:
        return ""
    stated = re.compile(
        rf"(?<!\w)(?<!\d\s){words}\s*(?:is|to|=|:)?\s*([+-]?\d[\d.,]*)(?![\w%])", re.IGNORECASE
    )
    for sentence in _SENTENCE.split(text):
        found = stated.search(sentence)
        if found and _SEVERAL.search(sentence):
            return found[1].rstrip(".,")
    return ""

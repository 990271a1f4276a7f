"""A value that a task states once for several calls: "use seed 12 for both". Pure."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.?!;])\s")
_SEVERAL = re.compile(
    r"\b(?:both|each|all|always|every|everything|everywhere|throughout)\b", re.IGNORECASE
)
# What makes a number the beginning of something else: a date, a time, a length, a share.
_MORE = re.compile(r"\w|[.,:/-]\d| ?%| ?[a-z]+ [0-9]{4}| (?:of|in|to) ", re.IGNORECASE)
# What it is used for, and the colon of what it holds for.
_HEADS = re.compile(r"(?: (?:so|because|to) [^:\d]{1,80})?:(?!\S)")
_NAME = re.compile(r"[^\W\d_]{3,}")


def shared(name: str, text: str) -> str:
    """Return the number that ``text`` states for a parameter in so many words, for several things.

    The parameter's own name has to stand right before it, once in the text, in a sentence that
    speaks of "both" or "all", or before the colon of what it holds for ("with seed 3: a name, a
    company"); "" where none does. O(len(text)).
    """
    parts = [one for one in re.split(r"[\s_-]+", name) if one]
    if not any(_NAME.fullmatch(one) for one in parts):
        return ""
    words = "[ _-]".join(map(re.escape, parts))
    stated = re.compile(
        rf"(?<![\w-])(?<!\d )(?<!every )(?<!each )(?<!all )(?<!a ){words}:? ?(?:is |to |= ?)?"
        r"([+-]?[0-9]+(?:[.,][0-9]+)*)",
        re.IGNORECASE,
    )
    found = [
        (
            match[1],
            (bool(_HEADS.match(sentence, match.end())) or bool(_SEVERAL.search(sentence)))
            and not _MORE.match(sentence, match.end()),
        )
        for sentence in _SENTENCE.split(" ".join(text.split()))
        for match in stated.finditer(sentence)
    ]
    values = {value for value, _ in found}
    return found[0][0] if len(values) == 1 and all(alone for _, alone in found) else ""

"""Which words of a text are arithmetic, as expressions: "the square root of 1764". Pure.

A text is parsed (``sums``) from each of its words on, MOST_TOKENS at most: O(text).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from toolsrv_runtime.values.sums import MOST_TOKENS, parse, tokenize

TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_FAINT = frozenset("-/x%")
"""First signs of what is often none: 24/7, 5-6, 3 x 5, and a share of something."""

_BEHIND = re.compile(
    r"\s+(?!(?:in|as|and|is|are|to|then|please|for|when|or|equals?|with|rounded|into|on|by|if|but|me|"
    r"exactly|out|first|the|thanks?|what|how|which)\b)[a-z]",
    re.IGNORECASE,
)
"""A word that makes amounts of the numbers: "a room for 2 plus 1 child"."""

_BARE = re.compile(r"\(([^()]*)\)")


class Found(NamedTuple):
    """Words that are arithmetic: their place, as an expression, whether they can mean no more."""

    begin: int
    end: int
    expression: str
    is_plain: bool


@lru_cache(maxsize=256)
def find(text: str) -> tuple[Found, ...]:
    """Return what of ``text`` is arithmetic with at least one operation, in order."""
    text = text[:TEXT_LIMIT]
    tokens = tokenize(text)
    found: list[Found] = []
    at = 0
    while at < len(tokens):
        parsed = parse(text, tokens[at : at + MOST_TOKENS])
        if parsed is None:
            at += 1
            continue
        behind = _BEHIND.match(text, parsed.end)
        is_plain = not behind and any(one[:1] not in _FAINT for one in parsed.operations)
        bare = _BARE.fullmatch(parsed.expression)
        found.append(
            Found(tokens[at].begin, parsed.end, bare[1] if bare else parsed.expression, is_plain)
        )
        while at < len(tokens) and tokens[at].begin < parsed.end:
            at += 1
    return tuple(found)


def read(words: str) -> str:
    """Return words as an expression of digits and + - * / ^ sqrt(); "" where they are none."""
    found = find(words)
    whole = len(found) == 1 and not (words[: found[0].begin] + words[found[0].end :]).strip(" ?=.")
    return found[0].expression if whole else ""


def share(text: str) -> float:
    """Return the share of ``text`` that is to be worked out, in [0, 1].

    None of "24/7", "5-6", "3 x 5" or "15% of 80", which are often something else.
    """
    plain = sum(one.end - one.begin for one in find(text) if one.is_plain)
    return plain / max(1, len(text))

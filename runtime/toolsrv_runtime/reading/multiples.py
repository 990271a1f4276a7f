"""Stories that ask for a common divisor or multiple of two numbers, asked in those words. Pure.

"The longest side that goes into both, 288 by 180" is a greatest common divisor; "every 12 and every
18 minutes, when do they ring together again" a least common multiple. No document tells such a
story. Quotations stay as they are. O(length).
"""

from __future__ import annotations

import re

from toolsrv_runtime.reading.digits import QUOTED, TEXT_LIMIT

_NUMBER = r"(?<![\w.,:/-])[1-9]\d{0,8}(?![\w/-]|[.,:]\d)"
_CHAIN = re.compile(
    rf"{_NUMBER}(?:(?: ?[^\W\d_]{{1,20}}\.?)?(?: [^\W\d_]{{1,20}}\.?){{0,2}},? ?(?:by|x|×|and|,) ?(?:another |the other )?{_NUMBER})+",
    re.IGNORECASE,
)
_EVERY = re.compile(rf"\b(?:every|each) (?P<number>{_NUMBER})", re.IGNORECASE)
_BOTH_EVERY = re.compile(
    rf"\b(?:every|each) (?P<first>{_NUMBER})(?: [^\W\d_]+)? and (?P<second>{_NUMBER})"
    r" (?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|laps?)\b",
    re.IGNORECASE,
)
_FITS = (
    r"(?:(?:goes|go|fits?|divides?)(?: exactly| evenly)?(?: into)?"
    r" (?:both|them both|each of them|the two)(?: of them)?(?: [^\W\d_]+)?(?: exactly| evenly)?"
    r"(?: without (?:a |any )?(?:cuts?|cutting|remainder|rest|waste|gaps?))?)"
)
_DIVISOR = re.compile(
    r"\b(?:the )?(?:longest|largest|biggest|greatest|widest|highest)\b"
    rf"(?:(?![.?!;])\D){{0,60}}?\b{_FITS}(?=\W|$)",
    re.IGNORECASE,
)
_TOGETHER = (
    r"(?:together|at the same (?:time|moment|instant)|at once|side by side|in step|simultaneously)"
)
_MULTIPLE = re.compile(
    r"\b(?:and )?(?:when|in how (?:many|long)|after how (?:many|long)|how (?:many|long)|how soon)\b"
    rf"(?:(?![.?!;])\D){{0,80}}?\b(?:{_TOGETHER}(?: again| next)|(?:again|next)(?:(?![.?!;])\D){{0,30}}? {_TOGETHER})"
    r"(?=\W|$)",
    re.IGNORECASE,
)
_ONCE_MORE = re.compile(
    r"\b(?:and )?(?:when|in how (?:many|long)|after how (?:many|long)|how (?:many|long)|how soon)\b"
    r"(?:(?![.?!;])\D){0,60}?\b(?:(?:do|does) (?:that|this|so|it)|happens?|meet|coincide) (?:again|next)"
    r"(?: time)?(?=\W|$)",
    re.IGNORECASE,
)
_WERE_TOGETHER = re.compile(rf"\b{_TOGETHER}\b", re.IGNORECASE)
"""What "do that again" is, where it was said before."""


def in_arithmetic(task: str) -> str:
    """Return a task whose story of common divisors or multiples is asked in these words."""
    head, rest = task[:TEXT_LIMIT], task[TEXT_LIMIT:]
    bare = QUOTED.sub(lambda match: " " * len(match[0]), head)
    for pattern, pair, name in (
        (_DIVISOR, _sizes, "the greatest common divisor"),
        (_MULTIPLE, _periods, "what is the least common multiple"),
    ):
        asked = pattern.search(bare) or (_again(bare) if pattern is _MULTIPLE else None)
        numbers = pair(bare) if asked else None
        if asked and numbers:
            plain = f"{name} of {numbers[0]} and {numbers[1]}"
            return head[: asked.start()] + plain + head[asked.end() :] + rest
    return task


def _again(text: str) -> re.Match[str] | None:
    """Return the question when something happens once more that was said to happen together."""
    asked = _ONCE_MORE.search(text)
    return asked if asked and _WERE_TOGETHER.search(text, 0, asked.start()) else None


def _sizes(text: str) -> tuple[str, str] | None:
    found = {tuple(re.findall(_NUMBER, chain[0])) for chain in _CHAIN.finditer(text)}
    numbers = found.pop() if len(found) == 1 else ()
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _periods(text: str) -> tuple[str, str] | None:
    both = _BOTH_EVERY.search(text)
    if both:
        return both["first"], both["second"]
    every = list(dict.fromkeys(match["number"] for match in _EVERY.finditer(text)))
    return (every[0], every[1]) if len(every) == 2 else None

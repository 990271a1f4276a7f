"""Stories that ask for a common divisor of two numbers or a common multiple of some, in those words. Pure.

"The longest side that goes into both, 288 by 180" is a greatest common divisor; "every 12 and every
18 minutes, when do they ring together again" a least common multiple. No document tells such a
story. Quotations stay as they are. O(length).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolsrv_runtime.planner.reading.digits import QUOTED, TEXT_LIMIT

_NUMBER = r"(?<![\w.,:/-])[1-9]\d{0,8}(?![\w/-]|[.,:]\d)"
_CHAIN = re.compile(
    rf"{_NUMBER}(?:(?: ?[^\W\d_]{{1,20}}\.?)?(?: [^\W\d_]{{1,20}}\.?){{0,2}},? ?(?:by|x|×|and|,) ?(?:another |the other )?{_NUMBER})+",
    re.IGNORECASE,
)
_EVERY = re.compile(rf"\b(?:every|each) (?P<number>{_NUMBER})", re.IGNORECASE)
_ALL_EVERY = re.compile(
    rf"\b(?:every|each) (?P<list>{_NUMBER}(?:, {_NUMBER}){{0,8}}(?: [^\W\d_]+)?,? and {_NUMBER})"
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
    for pattern, told, name in (
        (_DIVISOR, _sizes, "the greatest common divisor"),
        (_MULTIPLE, _periods, "what is the least common multiple"),
    ):
        asked = pattern.search(bare) or (_again(bare) if pattern is _MULTIPLE else None)
        numbers = told(bare) if asked else ()
        if asked and numbers:
            plain = f"{name} of {', '.join(numbers[:-1])} and {numbers[-1]}"
            return head[: asked.start()] + plain + head[asked.end() :] + rest
    return task


def _again(text: str) -> re.Match[str] | None:
    """Return the question when something happens once more that was said to happen together."""
    asked = _ONCE_MORE.search(text)
    return asked if asked and _WERE_TOGETHER.search(text, 0, asked.start()) else None


def _sizes(text: str) -> Sequence[str]:
    found = {tuple(re.findall(_NUMBER, chain[0])) for chain in _CHAIN.finditer(text)}
    numbers = found.pop() if len(found) == 1 else ()
    return numbers if len(numbers) == 2 else ()  # which two of three would be "both"?


def _periods(text: str) -> Sequence[str]:
    if both := _ALL_EVERY.search(text):
        return re.findall(_NUMBER, both["list"])
    every = list(dict.fromkeys(match["number"] for match in _EVERY.finditer(text)))
    return every if len(every) > 1 else ()

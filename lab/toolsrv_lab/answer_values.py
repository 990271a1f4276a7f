"""Whether a text states a value of a response: literally, or as the evidence module traces it.

Judges answers in sentences as well as lists of fields. A text states a value when

- its words stand in it in order, accents and capitals aside; or
- every number, date, time, name and identifier of the value is traced to it (``evidence.trace``:
  other spellings of a date or a time; a rounding that is off by at most ``ROUNDING``), and every
  other word of the value stands in it (items of a list in any order); or
- the value is a truth value, and the sentence that has a word of the field's name affirms or
  negates it. The closed class of English negations is the one thing here that knows a language.

Asks no model. O(characters of the text) for each span of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from toolsrv_runtime import evidence
from toolsrv_runtime.evidence.claims import ClaimSpan, fold, stated_spans
from toolsrv_runtime.outcome import Claim
from toolsrv_runtime.values import facts

ROUNDING = Decimal("0.05")
"""Relative error up to which a rounded number still states the value."""

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NEGATIONS = frozenset(
    {"no", "not", "never", "none", "neither", "nor", "cannot", "without", "false"}
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|(?:,\s*)?\b(?:and|but)\b")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)+(?!\w)|\w+(?:['\u2019]\w+)*|[^\w\s]")
_STEM = 5
"""Characters that two forms of a word have in common at least (``anagram``, ``anagrams``)."""


def states(text: str, value: str, field: str = "") -> bool:
    """Return whether ``text`` states ``value``, that of the response field ``field``."""
    plain = facts.plain(text)
    if not value:
        return False
    if value in _TRUTH and field:
        return _truth(plain, field) is _TRUTH[value]
    if _holds(_tokens(plain), _tokens(value)):
        return True
    if not any(map(str.isalnum, value)):
        return value in plain
    spans = stated_spans(value)
    return (
        bool(spans or value.strip())
        and all(_traced(plain, span) for span in spans)
        and _words(value, spans) <= set(_tokens(plain))
    )


def _traced(text: str, span: ClaimSpan) -> bool:
    """Whether the evidence module traces a claim of ``text`` to what a span says."""
    found = evidence.trace(text, "", [(1, span.text)]).supported
    return any(_near(claim, span) for claim in found) or _holds(_tokens(text), _tokens(span.text))


def _near(claim: Claim, span: ClaimSpan) -> bool:
    """Whether a claim states the whole of a span, with as many digits as it takes."""
    if span.kind != "number":
        return claim.kind == span.kind or claim.text.casefold() == span.text.casefold()
    if claim.how != "rounded":
        return claim.kind == "number"
    exact = span.numbers[0][0]
    values = [number for one in stated_spans(claim.text) for number, _ in one.numbers]
    try:
        return any(abs(one - exact) <= abs(exact) * ROUNDING for one in values)
    except InvalidOperation:
        return False


def _words(value: str, spans: Iterable[ClaimSpan]) -> set[str]:
    """Return the words of a value that stand in none of its spans."""
    rest = list(value)
    for span in spans:
        rest[span.start : span.start + len(span.text)] = " " * len(span.text)
    return {one for one in _tokens("".join(rest)) if one[0].isalnum()}


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(fold(text))


def _holds(tokens: list[str], run: list[str]) -> bool:
    """Whether ``run`` stands in ``tokens`` as a whole."""
    size = len(run)
    return size > 0 and any(
        tokens[at : at + size] == run
        for at in range(len(tokens) - size + 1)
        if tokens[at] == run[0]
    )


def _truth(text: str, field: str) -> bool | None:
    """Return what a text says of a truth value; None where it says nothing of it."""
    names = [one for one in facts.words(field).split() if len(one) > 3] or facts.words(
        field
    ).split()
    sentences = [_tokens(one) for one in _SENTENCE.split(text)]
    about = [one for one in sentences if any(_forms(token, names) for token in one)]
    for tokens in about:
        literal = [_TRUTH[one] for one in tokens if one in _TRUTH]
        if literal:
            return literal[0]
    if about:
        return not any(_negates(token, names) for token in about[0])
    literal = [_TRUTH[one] for tokens in sentences for one in tokens if one in _TRUTH]
    return literal[0] if literal else None


def _forms(token: str, names: Iterable[str]) -> bool:
    """Whether a token is a form of one of the names, or its negation by a prefix."""
    return any(
        one in token or (len(one) > _STEM and token.startswith(one[:_STEM])) for one in names
    )


def _negates(token: str, names: Iterable[str]) -> bool:
    if token in _NEGATIONS or token.replace("\u2019", "'").endswith("n't"):
        return True
    return any(token in (f"in{one}", f"un{one}", f"non{one}") for one in names)

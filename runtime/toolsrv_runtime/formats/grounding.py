"""Which values an argument may take, as grammar rules: spans of what the model was given.

A string is a run of whole words of the task or of an observation, never invented; numbers,
booleans and enumerations have their own shapes. Rules are in llguidance's Lark dialect. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from toolsrv_registry.api import Parameter
from toolsrv_runtime.formats.facts import plain

_EDGE = [
    "a",
    "an",
    "the",
    "of",
    "for",
    "in",
    "on",
    "at",
    "to",
    "from",
    "by",
    "with",
    "and",
    "or",
    "then",
    "is",
    "are",
    "was",
    "be",
    "as",
    "into",
    "about",
    "please",
    "what",
    "which",
    "who",
    "how",
    "when",
    "where",
    "does",
    "do",
    "did",
    "it",
    "its",
    "that",
    "this",
]
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“”]([^\"“”]{1,300})[\"“”]|(?<!\w)'([^']{1,300})'(?!\w)")
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"\b\d{{4}}-\d{{1,2}}-\d{{1,2}}\b|\b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})[a-z]*\.?,?(?: \d{{4}})?\b"
    rf"|\b(?:{_MONTH})[a-z]*\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
    r"|\btoday\b|\btomorrow\b|\byesterday\b",
    re.IGNORECASE,
)
SPAN_LIMIT = 2_000
"""Characters of each source text that spans are taken from."""


def literal(text: str) -> str:
    """Return ``text`` as a Lark string."""
    return json.dumps(text, ensure_ascii=False)


def span(name: str, texts: Sequence[str]) -> str:
    """Return rules for ``name``: a run of whole words of one of ``texts``, no loose edges."""
    sources = [t for t in dict.fromkeys(plain(t)[:SPAN_LIMIT] for t in texts) if t]
    edges = "|".join(_EDGE)
    rules = [
        f"{name}_{index}: %regex {json.dumps({'substring_words': source}, ensure_ascii=False)}"
        for index, source in enumerate(sources)
    ]
    choice = " | ".join(f"{name}_{index}" for index in range(len(sources)))
    rules.append(
        f"{name}: ({choice}) & /[^ .,;:!?)](.*[^ .,;:!?(])?/ "
        f"& ~/(?i:({edges})( .*)?)/ & ~/(?i:(.* )?({edges}))/"
    )
    return "\n".join(rules)


def values(parameter: Parameter, texts: Sequence[str], *, spans: str) -> str:
    """Return the Lark expression for one parameter's value (without quotes).

    ``texts``, nearest first: the thought, the task, the observations; ``spans`` names the rule
    made by ``span``. Where a type finds nothing to copy it keeps its shape only.
    """
    kind = parameter.type.upper()
    if parameter.enum:
        return _any(parameter.enum)
    if kind == "BOOLEAN":
        return '"true" | "false"'
    if kind == "NUMBER":
        found = _find(_NUMBER, texts)
        return _any(found) if found else "/-?[0-9]{1,9}(\\.[0-9]{1,6})?/"
    if kind.startswith("DATE"):
        found = _find(_DATE, texts)
        if found:
            return _any(found)
    quoted = quotes(texts)
    return f"{spans} | {_any(quoted)}" if quoted else spans


def quotes(texts: Sequence[str]) -> list[str]:
    """Return what stands in quotation marks, cleaned."""
    found = [a or b for text in texts for a, b in _QUOTED.findall(text)]
    return [t for t in dict.fromkeys(plain(text) for text in found) if t]


def _find(pattern: re.Pattern[str], texts: Sequence[str]) -> list[str]:
    """Return the distinct matches of the first text that has any."""
    for text in texts:
        found = [match[0].strip(" ,") for match in pattern.finditer(text)]
        if found:
            return list(dict.fromkeys(found))
    return []


def _any(options: Sequence[str]) -> str:
    return " | ".join(literal(option) for option in options)

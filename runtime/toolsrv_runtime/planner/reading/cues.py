"""How strongly a text ties a value to a parameter: the words around it. Pure.

"34 °C with 65 percent humidity" ties 34 to ``temperature_c`` and 65 to ``humidity``.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Parameter
from toolsrv_runtime.values.facts import words

_TO = frozenset({"to", "target", "end", "destination", "until", "high", "new", "wanted"})
_FROM = frozenset({"from", "source", "start", "origin", "base", "low", "old"})
_BEFORE_TO = frozenset({"to", "into", "in", "until", "for"})
_BEFORE_FROM = frozenset({"from", "between", "since"})
_SMALL = frozenset({"on", "in", "at", "by", "of", "for", "a", "b"})
_PLACES = frozenset({"country", "city", "language", "place"})
_BEFORE_PLACE = frozenset({"in", "of", "for"})
_UNITS: dict[str, tuple[str, ...]] = {
    "w": ("watt",), "watt": ("watt",), "kw": ("kilowatt",), "v": ("volt",), "a": ("amp",),
    "h": ("hour",), "hr": ("hour",), "hrs": ("hour",), "mah": ("mah", "capacity"), "ma": ("ma",),
    "percent": ("percent", "rate", "humidity"), "°c": ("temperature", "celsius", "c"),
    "celsius": ("temperature", "celsius", "c"), "degree": ("temperature",),
    "km/h": ("speed", "kmh"), "kph": ("speed", "kmh"), "l/100km": ("liter", "per"),
    "kg": ("weight",), "cm": ("height",), "year": ("year", "age"), "people": ("people", "person"),
    "€": ("price", "amount"), "$": ("price", "amount"), "£": ("price", "amount"),
    "euro": ("price", "amount"), "dollar": ("price", "amount", "loan"), "bpm": ("bpm", "rate"),
    "semitone": ("semitone",), "day": ("day", "amount"), "week": ("week", "amount"),
    "month": ("month", "amount"), "serving": ("serving",), "serves": ("serving",),
    "gram": ("gram", "amount"), "g": ("gram", "amount"), "hz": ("hertz",), "minute": ("minute",),
    "born": ("birth",), "bill": ("bill",), "tip": ("tip",), "litre": ("liter", "price"),
    "panel": ("panel",), "liter": ("liter",),
}  # fmt: skip
_SIGNS = {
    "celsius": r"°\s?C\b",
    "fahrenheit": r"°\s?F\b",
    "camel": r"camelCase",
    "e164": r"E\.?164",
}

BESIDE = 3
"""Strength of a value that stands right beside the parameter's own word."""

_TOKEN = re.compile(r"[a-z]+(?:/\d*[a-z]+)?|[°€$£%]c?|%", re.IGNORECASE)


def stem(word: str) -> str:
    """Return a word without plural and possessive endings, in lower case."""
    lower = word.lower().removesuffix("'s").removesuffix("’s")
    for ending in ("ies", "es", "s"):
        if lower.endswith(ending) and len(lower) > len(ending) + 2:
            return lower.removesuffix(ending)
    return lower


def mentions(text: str, value: str) -> bool:
    """Whether ``value`` stands in ``text`` as a word, plural or not, in any case, or as a sign."""
    if value.lower() in _SIGNS and re.search(_SIGNS[value.lower()], text):
        return True
    pattern = rf"(?<!\w){re.escape(value.replace('_', ' '))}(?:s|es)?(?!\w)"
    if re.search(r"\d", value):  # SHA-256 is sha256
        text = text.replace("-", "")
    return bool(value) and re.search(pattern, text, re.IGNORECASE) is not None


def strength(parameter: Parameter, value: str, text: str) -> int:
    """Return how strongly the first occurrence of ``value`` in ``text`` is tied, from 0 to 4."""
    position = text.lower().find(value.lower())
    if position < 0:
        return 0
    before = [t.lower() for t in _TOKEN.findall(text[max(0, position - 60) : position])]
    after = [t.lower() for t in _TOKEN.findall(text[position + len(value) :][:40])]
    name = [stem(word) for word in words(parameter.name).split()]
    plain = {word for word in name if word not in _TO | _FROM | _SMALL}
    score = 0
    if (after and _means(after[0]) & plain) or (before and _means(before[-1]) & plain):
        score += BESIDE
    elif any(_means(word) & plain for word in (*before[-3:-1], *after[1:2])):
        score += 1
    if name and name[-1] in _PLACES and before and before[-1] in _BEFORE_PLACE:
        score += 1
    if name and name[0] in _TO and before and before[-1] in _BEFORE_TO:
        score += 1
    if name and name[0] in _FROM and before and before[-1] in _BEFORE_FROM:
        score += 1
    return score


def _means(word: str) -> set[str]:
    base = "percent" if word == "%" else stem(word)
    return {base, *_UNITS.get(base, ()), *_UNITS.get(word, ())}

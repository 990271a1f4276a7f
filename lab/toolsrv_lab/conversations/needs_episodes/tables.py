"""Tables of ``data/needs_*``, and words of names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from toolsrv_lab.conversations.wording import word_set
from toolsrv_registry.api import Api

PAGING = re.compile(
    r"^(?:page|page_?(?:number|no|size)|per_?page|limit|count|offset|skip|size|sort|sort_?by|order|"
    r"lang|language|locale|format|units?|interval|cursor|type|max|min|top|width|height|color|style|"
    r"from|to|start|end|date|year|month|day|timezone|output|fields|session|part|precision|mode)$",
    re.IGNORECASE,
)

ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


def table(name: str) -> list[str]:
    """Return the lines of a file of tables."""
    text = (files("toolsrv_lab.conversations") / "data" / name).read_text("utf-8")
    return text.splitlines()


@cache
def sections(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return head -> lines of a file with ``[head]`` lines."""
    found: dict[str, list[str]] = defaultdict(list)
    head = ""
    for line in table(name):
        if line.startswith("[") and line.endswith("]") and " " not in line:
            head = line[1:-1]
        else:
            found[head].append(line)
    return {key: tuple(lines) for key, lines in found.items()}


@cache
def pools() -> Mapping[str, tuple[str, ...]]:
    """Return name -> values."""
    return {
        key: tuple(one.strip() for one in " | ".join(lines).split(" | ") if one.strip())
        for key, lines in sections("needs_pools.txt").items()
    }


@cache
def synonyms(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return word -> other words."""
    lines = (line.partition(":") for line in table(name) if ":" in line)
    return {key.strip(): tuple(rest.split()) for key, _, rest in lines}


@cache
def asked_words() -> Mapping[str, frozenset[str]]:
    """Return word -> names of the fields that it asks for."""
    lines = (line.split() for line in table("needs_asked.txt"))
    return {line[0]: frozenset(line[1:]) for line in lines if line}


@cache
def join_patterns() -> Mapping[int, tuple[str, ...]]:
    """Return number of needs -> patterns that join them."""
    found: dict[int, list[str]] = defaultdict(list)
    for line in table("needs_joins.txt"):
        count, _, pattern = line.partition("\t")
        found[int(count)].append(pattern.replace("\\n", "\n"))
    return {count: tuple(lines) for count, lines in found.items()}


class Shape(NamedTuple):
    """A kind of thing or record: the words that name it, its fields (name, kind), more fields."""

    name: str
    cues: frozenset[str]
    noun: str
    fields: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]


def field_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return (name, kind) for ``name:kind name:kind``."""
    pairs = (one.partition(":") for one in text.split())
    return tuple((name, kind or name) for name, _, kind in pairs)


@cache
def classes() -> tuple[Shape, ...]:
    """Return the kinds of things."""
    out = []
    for line in table("needs_classes.txt"):
        name, cues, noun, main, more = line.split("|")
        out.append(
            Shape(name, frozenset(cues.split(",")), noun, field_pairs(main), field_pairs(more))
        )
    return tuple(out)


@cache
def records() -> tuple[Shape, ...]:
    """Return the kinds of records."""
    out = []
    for line in table("needs_records.txt"):
        name, cues, main, *more = line.split("|")
        rest = more[0] if more else ""
        out.append(
            Shape(name, frozenset(cues.split(",")), name, field_pairs(main), field_pairs(rest))
        )
    return tuple(out)


@cache
def class_of_word() -> Mapping[str, Shape]:
    """Return word -> kind of things."""
    found: dict[str, Shape] = {}
    for shape in classes():
        for cue in sorted(shape.cues):
            found.setdefault(cue, shape)
    return found


def split_words(name: str) -> list[str]:
    """Return the words of a name in any style, lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word.lower() for word in re.findall(r"[A-Za-z0-9]+", spaced)]


@cache
def stem(word: str) -> str:
    """Return a word without its plural ending."""
    word = word.lower()
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and len(word) > 4 and word[-3] in "sxh":
        return word[:-2]
    return word[:-1] if word.endswith("s") and len(word) > 3 and word[-2] not in "su" else word


_UNITS = {
    "km": " km", "g": " g", "kb": " KB", "m2": " m2", "km2": " km2", "ms": " ms", "kg": " kg", "kmh": " km/h",
    "c": " °C", "f": " °F", "percent": "%", "mph": " mph", "cm": " cm", "mm": " mm", "kwh": " kWh",
    "usd": " USD", "eur": " EUR", "hpa": " hPa", "mb": " MB", "miles": " miles", "minutes": " minutes",
    "seconds": " seconds", "hours": " hours", "days": " days", "hz": " Hz",
}  # fmt: skip


def label_of(path: Sequence[str]) -> tuple[str, str]:
    """Return how a field is called in a sentence, and its unit."""
    words = split_words(path[-1])
    if len(path) > 1 and path[-1].lower() in {
        "name",
        "value",
        "title",
        "display",
        "text",
        "raw",
        "fmt",
    }:
        words = split_words(path[-2])
    elif len(path) > 1 and path[-1].lower() in {"id", "avg", "min", "max", "total", "code"}:
        words = [*split_words(path[-2]), *words]
    unit = ""
    if len(words) > 1 and words[-1] in _UNITS:
        unit = _UNITS[words.pop()]
    if words and words[0] in {"is", "has"} and len(words) > 1:
        words = words[1:]
    return " ".join(words) or "value", unit


VERBS = word_set(
    "get list search find fetch retrieve read show check validate verify calculate "
    "convert generate create add update delete remove lookup detect analyze extract "
    "download send post put edit return query api endpoint all by of the a an v1 v2 v3 v4 "
    "v5 deprecated copy random latest single specific using with for from to in on and "
    "information info details detail data results result test json free new old beta plus "
    "pro index base rest load provide request run make scrape scraper call is do does has "
    "my me your what which how be are it"
)


def topic(api: Api) -> str:
    """Return what an API is about, as a noun phrase without article."""
    name = re.split(r"(?i)\b(?:by|using|with|for|from)\b", " ".join(split_words(api.name)))[0]
    words = [
        w for w in name.split() if w not in VERBS and not re.fullmatch(r"[0-9a-f]*\d[0-9a-f]*", w)
    ]
    if not words or max(map(len, words)) > 16:
        words = [w for w in split_words(api.tool) if w not in VERBS and not w.isdigit()]
    words = [
        w
        for w in dict.fromkeys(words)
        if w not in {"id", "ids", "experimental", "legacy", "http"} or len(words) == 1
    ]
    out = " ".join(words[:4])
    return out or "information"

"""API response as a short list of (name, value) facts, for small models.

Pure. Nested objects are flattened to their leaves, lists of objects to one fact per column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from toolsrv_catalogs.text import clean

VALUE_LIMIT = 64
"""Characters of one value as a small model reads it."""

LIST_LIMIT = 4
"""Items of a list as a small model reads it."""

FULL_LIMIT = 2_000
"""Characters of one value, and items of a list, as a person reads it."""

_DEPTH = 64
"""Levels of a response that ``response_text`` reads."""

Fact = tuple[str, str]

_CAMEL = re.compile(r"([a-z])([A-Z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_UNSAFE = re.compile(r'["\\\x00-\x1f]+')


def plain(text: str) -> str:
    """Return text on one line, without the characters that JSON escapes (they become blanks)."""
    return " ".join(_UNSAFE.sub(" ", clean(text, 20_000)).split())


def words(name: str) -> str:
    """Return a key as words: ``timeZone`` and ``time_zone`` read ``time zone``."""
    return _NOT_WORD.sub(" ", _CAMEL.sub(r"\1 \2", name)).strip().lower()


def facts(response: Any, *, limit: int) -> list[Fact]:
    """Return the response's leaves, shortened, while they stay within ``limit`` characters."""
    found: list[Fact] = []
    room = limit
    for name, value in _distinct(response, items=LIST_LIMIT):
        shown = value[:VALUE_LIMIT].strip()
        room -= len(name) + len(shown) + 8
        if room < 0 and found:
            break
        found.append((name, shown))
    return found


def whole(response: Any) -> dict[str, str]:
    """Return the response's leaves by name with their values as a person wants them."""
    return {name: value[:FULL_LIMIT] for name, value in _distinct(response, items=FULL_LIMIT)}


def verbatim(response: Any) -> dict[str, str]:
    """Return the same with texts as they are, for an answer: a drawing's lines, an SVG's quotes."""
    found = whole(response)
    for name, value in _leaves("", response, 0, FULL_LIMIT):
        lines = [line.rstrip() for line in clean(value, FULL_LIMIT).splitlines()]
        if plain(value)[:FULL_LIMIT] == found.get(name):
            found[name] = "\n".join(lines).strip("\n")
    return found


def sentence(group: Iterable[Fact]) -> str:
    """Return facts as words: ``capital is Lima, population is 10``; several lines for themselves."""
    said = ""
    for name, value in group:
        lines = "\n" in value
        said += "" if not said or said.endswith("\n") else ", "
        said += f"{words(name)} is\n{value}\n" if lines else f"{words(name)} is {value}"
    return said.rstrip("\n")


def _distinct(response: Any, *, items: int) -> list[Fact]:
    found: dict[str, str] = {}
    for name, value in _leaves("", response, 0, items):
        shown = plain(value)
        if shown:
            found.setdefault(name, shown)
    return list(found.items())


def _leaves(name: str, value: Any, depth: int, items: int) -> list[Fact]:
    if depth > 4:  # deeper than any response worth reading out
        return []
    if isinstance(value, dict):
        return [
            leaf
            for key, item in value.items()
            for leaf in _leaves(str(key), item, depth + 1, items)
        ]
    if isinstance(value, list):
        return _columns(name, value[:items], depth, items)
    return [(name or "result", _spell(value))]


def _columns(name: str, rows: list[Any], depth: int, items: int) -> list[Fact]:
    columns: dict[str, list[str]] = {}
    for row in rows:
        for key, text in _leaves(name, row, depth + 1, items):
            columns.setdefault(key, []).append(text)
    return [(key, ", ".join(texts)) for key, texts in columns.items()]


def _spell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if abs(value) < 1e8:
            return f"{value:.10g}"
        # With two decimals a larger one would show digits that a float does not know.
        return f"{value:.2f}" if abs(value) < 1e13 else f"{value:.15g}"
    return str(value)


def response_text(response: Any, limit: int) -> tuple[str, list[int]]:
    """Return the texts and numbers of a response, its keys behind them, and its lists' lengths."""
    values: list[str] = []
    keys: dict[str, None] = {}
    counts: list[int] = []
    room = limit
    for key, leaf in _every(response):
        if room <= 0:
            break
        if key is not None:
            keys.setdefault(key)
        elif isinstance(leaf, list):
            counts.append(len(leaf))
        elif leaf is not None and not isinstance(leaf, bool):
            text = clean(str(leaf), room)
            values.append(text)
            room -= len(text) + 1
    named = (form for key in keys for form in (key, words(key)))
    return "\n".join((*values, clean("\n".join(named), limit)))[:limit], counts


def _every(value: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield keys, lists and leaves of JSON, in order, without recursion."""
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if isinstance(one, dict):
            yield from ((str(key), None) for key in one)
            below: list[Any] = list(one.values())
        elif isinstance(one, list):
            yield None, one
            below = one
        else:
            yield None, one
            continue
        if depth < _DEPTH:
            stack += [(item, depth + 1) for item in reversed(below)]

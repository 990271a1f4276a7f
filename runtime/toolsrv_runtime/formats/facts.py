"""An API's response as a short list of (name, value) facts: what a small model can read and say.

Pure. Nested objects are flattened to their leaves, lists of objects to one fact per column.
"""

from __future__ import annotations

import re
from typing import Any

from toolsrv_catalogs.text import clean

VALUE_LIMIT = 64
LIST_LIMIT = 4

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
    """Return the response's leaves in order while their text stays within ``limit`` characters."""
    found: list[Fact] = []
    room = limit
    for name, value in _leaves("", response, 0):
        shown = plain(value)[:VALUE_LIMIT].strip()
        if not shown or any(name == other for other, _ in found):
            continue
        room -= len(name) + len(shown) + 8
        if room < 0 and found:
            break
        found.append((name, shown))
    return found


def _leaves(name: str, value: Any, depth: int) -> list[Fact]:
    if depth > 4:
        return []
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(str(key), item, depth + 1)]
    if isinstance(value, list):
        return _columns(name, value[:LIST_LIMIT], depth)
    return [(name or "result", _spell(value))]


def _columns(name: str, rows: list[Any], depth: int) -> list[Fact]:
    columns: dict[str, list[str]] = {}
    for row in rows:
        for key, text in _leaves(name, row, depth + 1):
            columns.setdefault(key, []).append(text)
    return [(key, ", ".join(texts)) for key, texts in columns.items()]


def _spell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"
    return str(value)

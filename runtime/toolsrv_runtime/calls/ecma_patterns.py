"""Regular expressions of schemas: ECMA's, searched in texts for a limited time.

Stands on the ``regex`` library, which can stop. What it cannot read, or does not decide in time,
is left to whoever is called.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

_SECONDS = 0.05
_LENGTH = 1_000
_KEPT = 1_000
_given_up: set[str] = set()
"""Patterns that took too long once; the next text would take as long."""
_ECMA = re.compile(r"\\(?P<escape>[dDwW])|\\.|(?P<open>\[)|(?P<close>\])|(?P<end>\$)", re.DOTALL)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}


def matches(pattern: Any, text: str) -> bool | None:
    """Return whether a pattern is found in a text; None where that stays open."""
    compiled = _compiled(pattern) if isinstance(pattern, str) else None
    if compiled is None or pattern in _given_up:
        return None
    try:
        return compiled.search(text, timeout=_SECONDS) is not None
    except (TimeoutError, RecursionError, MemoryError):
        if len(_given_up) < _KEPT:
            _given_up.add(pattern)
        return None


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LENGTH:
        return None
    try:
        return regex.compile(_translated(pattern))
    except (regex.error, RecursionError, OverflowError, ValueError):
        return None


def _translated(pattern: str) -> str:
    r"""Return an ECMA pattern as one of ``regex``: its digits are ASCII, its ``$`` the very end."""
    inside = False

    def told(found: re.Match[str]) -> str:
        nonlocal inside
        if found["open"]:
            inside = True
        elif found["close"]:
            inside = False
        elif found["end"] and not inside:
            return r"\Z"
        elif kind := found["escape"]:
            members = _CLASSES[kind.lower()]
            if kind.islower():
                return members if inside else f"[{members}]"
            return found[0] if inside else f"[^{members}]"
        return found[0]

    return _ECMA.sub(told, pattern)

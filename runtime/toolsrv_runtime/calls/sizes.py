"""How long a JSON value is as text, counted no further than asked, and how short it can get.

So that shortening a response of megabytes costs no more than its short form. Knows no budgets.
"""

from __future__ import annotations

import json
import math
from typing import Any

DEPTH = 32
"""Levels that are written; of what lies deeper only the entries are counted."""

SHORTEST = '"..."'
"""What stands for anything that there is no room for."""

_NUMBER = 24
"""Characters of a number up to which it is never shortened."""


def size(value: Any, most: int, depth: int = 0) -> int:
    """Return the length of a value's JSON text, or some number above ``most`` if it is longer.

    ``depth`` is the level that the value stands on. O(min(length, most)), without recursion.
    """
    total = 0
    stack = [(value, depth)]
    while stack and total <= most:
        one, level = stack.pop()
        if isinstance(one, str):
            total += len(quoted(one[: most + 1]))
        elif not isinstance(one, dict | list):
            total += len(scalar(one))
        elif one and level >= DEPTH:
            total += len(summary(one))
        else:
            total += 2 * max(1, len(one))  # brackets, and what stands between entries
            if total > most:
                break
            if isinstance(one, dict):
                total += sum(len(quoted(key[:most])) + 2 for key in one)
            stack += [(inner, level + 1) for inner in entries(one)]
    return total


def entries(value: dict[str, Any] | list[Any]) -> list[Any]:
    """Return what an object or a list holds, in order."""
    return list(value.values()) if isinstance(value, dict) else value


def least(value: Any, depth: int) -> int:
    """Return the length of the shortest form of a value: a number is whole, all else three dots."""
    if isinstance(value, dict | list | str):
        return min(size(value, len(SHORTEST), depth), len(SHORTEST))
    length = len(scalar(value))
    return length if length <= _NUMBER else len(SHORTEST)


def summary(value: dict[str, Any] | list[Any]) -> str:
    """Return a JSON text that says how many entries an object or a list has."""
    if isinstance(value, dict):
        return f'"{{... {counted(len(value), "key")}}}"'
    return f'"[... {counted(len(value), "item")}]"'


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 key``, ``12 keys``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def scalar(value: Any) -> str:
    """Return a number, true, false or null as JSON; what JSON has no number for is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value)


def quoted(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)

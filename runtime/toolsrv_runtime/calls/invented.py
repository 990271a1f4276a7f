"""Invented responses with the shape of a schema, the same for the same seed.

The words of ToolBench's schemas are known (spec: formats 1.2 and 7): ``str int float bool NoneType``,
``empty list``, ``list of str with length 3``, nested objects, lists of one object. Pure.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Mapping
from typing import Any

from toolsrv_registry.names import standardize

_LIST = re.compile(r"list of (\w+)(?: with length (\d+))?")
_LENGTH = "_list_length"
_ITEMS = 3
_MOST_ITEMS = 20
_DEPTH = 32
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "indigo", "jade")


def invented(schema: Any, arguments: Mapping[str, Any], rng: random.Random) -> Any:
    """Return a value of the schema's shape; a key that is an argument's has the argument's value."""
    given = {standardize(key): value for key, value in arguments.items()}
    return _value(schema, "", given, rng, 0)


def known_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for an API that has none: its arguments come back, with a result."""
    return {**dict.fromkeys(arguments, "str"), "result": "str"}


def _value(schema: Any, key: str, given: Mapping[str, Any], rng: random.Random, depth: int) -> Any:
    if depth > _DEPTH:
        return None
    if isinstance(schema, dict):
        return {
            name: _value(one, name, given, rng, depth + 1)
            for name, one in schema.items()
            if name != _LENGTH
        }
    if isinstance(schema, list):
        return _items(schema, key, given, rng, depth)
    if standardize(key) in given:
        return given[standardize(key)]
    return _leaf(str(schema), key.lower(), rng)


def _items(
    schema: list[Any], key: str, given: Mapping[str, Any], rng: random.Random, depth: int
) -> list[Any]:
    if not schema:
        return []
    first = schema[0]
    if isinstance(first, str) and (_LIST.fullmatch(first) or first == "empty list"):
        made = _leaf(first, key.lower(), rng)
        return made if isinstance(made, list) else [made]
    wanted = first.get(_LENGTH) if isinstance(first, dict) else None
    count = min(wanted, _MOST_ITEMS) if isinstance(wanted, int) else rng.randint(1, _ITEMS)
    return [_value(first, key, given, rng, depth + 1) for _ in range(count)]


def _leaf(word: str, key: str, rng: random.Random) -> Any:
    if found := _LIST.fullmatch(word):
        count = min(int(found[2] or _ITEMS), _MOST_ITEMS)
        return [_leaf(found[1], key, rng) for _ in range(count)]
    match word:
        case "int":
            return rng.randint(1, 1_000)
        case "float":
            return round(rng.uniform(0, 1_000), 2)
        case "bool":
            return rng.random() < 0.5
        case "NoneType":
            return None
        case "empty list":
            return []
        case _:
            return _text(key, rng)


def _text(key: str, rng: random.Random) -> str:
    word, number = rng.choice(_WORDS), rng.randint(100, 999)
    if "url" in key or "link" in key:
        return f"https://example.com/{word}/{number}"
    if "mail" in key:
        return f"{word}@example.com"
    if "date" in key or "time" in key or key.endswith("_at"):
        return str(dt.date(2024, 1, 1) + dt.timedelta(days=number))
    if key == "id" or key.endswith("_id"):
        return f"{word}-{number}"
    return f"{word} {rng.choice(_WORDS)}"

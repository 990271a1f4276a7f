"""Invented responses with the shape of a schema, the same for the same seed.

The words of ToolBench's schemas are known (spec: formats 1.2 and 7): ``str int float bool NoneType``,
``empty list``, ``list of str with length 3``, nested objects, lists of one object. Pure.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolsrv_registry.names import standardize
from toolsrv_runtime.stop import Stop

_LIST = re.compile(r"list of (\w+)(?: with length (\d{1,9}))?")
_LENGTH = "_list_length"
_ITEMS = 3
_MOST_ITEMS = 20
_DEPTH = 32
_VALUES = 1_000
"""Values of a response from which on its lists get no further items."""

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "indigo", "jade")


def invented(
    schema: Any, arguments: Mapping[str, Any], rng: random.Random, stop: Stop | None = None
) -> Any:
    """Return a value of the schema's shape; a key that is an argument's has the argument's value.

    Lists of lists grow no further than ``_VALUES``, nor once ``stop`` is set: those that are left
    have one item. Linear in the schema.
    """
    given = {standardize(key): value for key, value in arguments.items()}
    return _Inventor(given, rng, stop or Stop()).value(schema)


def known_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for an API that has none: its arguments come back, with a result."""
    return {**dict.fromkeys(arguments, "str"), "result": "str"}


class _Inventor:
    """Makes the values of one response, and counts them."""

    def __init__(self, given: Mapping[str, Any], rng: random.Random, stop: Stop) -> None:
        self._given = given
        self._rng = rng
        self._stop = stop
        self._made = 0

    def value(self, schema: Any, key: str = "", depth: int = 0) -> Any:
        """Return a value for a part of the schema that stands under ``key``."""
        self._made += 1
        if depth > _DEPTH:
            return None
        if isinstance(schema, dict):
            return {
                name: self.value(one, name, depth + 1)
                for name, one in schema.items()
                if name != _LENGTH
            }
        if isinstance(schema, list):
            return self._items(schema, key, depth)
        if standardize(key) in self._given:
            return self._given[standardize(key)]
        return self._leaf(str(schema), key.lower())

    def _items(self, schema: list[Any], key: str, depth: int) -> list[Any]:
        if not schema:
            return []
        first = schema[0]
        if isinstance(first, str) and (_LIST.fullmatch(first) or first == "empty list"):
            made = self._leaf(first, key.lower())
            return made if isinstance(made, list) else [made]
        wanted = first.get(_LENGTH) if isinstance(first, dict) else None
        count = wanted if isinstance(wanted, int) else self._rng.randint(1, _ITEMS)
        return [self.value(first, key, depth + 1) for _ in self._up_to(count)]

    def _up_to(self, count: int) -> Iterator[int]:
        """Yield a number for each item of a list, as many as there is room for: one, at least."""
        for number in range(min(count, _MOST_ITEMS)):
            if number and (self._made >= _VALUES or self._stop.is_set()):
                return
            yield number

    def _leaf(self, word: str, key: str) -> Any:
        if found := _LIST.fullmatch(word):
            items: list[Any] = []
            for _ in self._up_to(int(found[2] or _ITEMS)):
                self._made += 1
                items.append(self._leaf(found[1], key))
            return items
        match word:
            case "int":
                return self._rng.randint(1, 1_000)
            case "float":
                return round(self._rng.uniform(0, 1_000), 2)
            case "bool":
                return self._rng.random() < 0.5
            case "NoneType":
                return None
            case "empty list":
                return []
            case _:
                return _text(key, self._rng)


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

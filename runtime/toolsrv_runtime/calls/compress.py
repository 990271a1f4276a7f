"""Compress a JSON response to a budget of tokens or characters; the result stays valid JSON.

A response that fits is shown whole. Else only the keys that the API's response schema names are
kept, where there is a schema (ToolLLM, A.2). What is still too long is shortened: keys before
values, long lists sampled, long texts cut in the middle. Sizes are counted no further than needed,
so shortening costs O(length of the result). Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolsrv_catalogs.text import clean

MAX_DEPTH = 32
"""Levels that are written; of what lies deeper only the entries are counted."""

ELLIPSIS = '"..."'
"""What stands for anything that there is no room for."""

_NUMBER = 24
"""Characters of a number up to which it is never shortened."""


def json_size(value: Any, most: int, depth: int = 0) -> int:
    """Return the length of a value's JSON text, or some number above ``most`` if it is longer.

    ``depth`` is the level that the value stands on. O(min(length, most)), without recursion.
    """
    total = 0
    stack = [(value, depth)]
    while stack and total <= most:
        one, level = stack.pop()
        if isinstance(one, str):
            total += len(quote_json(one[: most + 1]))
        elif not isinstance(one, dict | list):
            total += len(scalar_json(one))
        elif one and level >= MAX_DEPTH:
            total += len(entry_count_text(one))
        else:
            total += 2 * max(1, len(one))  # brackets, and what stands between entries
            if total > most:
                break
            if isinstance(one, dict):
                total += sum(len(quote_json(key[:most])) + 2 for key in one)
            stack += [(inner, level + 1) for inner in child_values(one)]
    return total


def child_values(value: dict[str, Any] | list[Any]) -> list[Any]:
    """Return what an object or a list holds, in order."""
    return list(value.values()) if isinstance(value, dict) else value


def min_json_size(value: Any, depth: int) -> int:
    """Return the length of the shortest form of a value: a number is whole, all else three dots."""
    if isinstance(value, dict | list | str):
        return min(json_size(value, len(ELLIPSIS), depth), len(ELLIPSIS))
    length = len(scalar_json(value))
    return length if length <= _NUMBER else len(ELLIPSIS)


def entry_count_text(value: dict[str, Any] | list[Any]) -> str:
    """Return a JSON text that says how many entries an object or a list has."""
    if isinstance(value, dict):
        return f'"{{... {count_text(len(value), "key")}}}"'
    return f'"[... {count_text(len(value), "item")}]"'


def count_text(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 key``, ``12 keys``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def scalar_json(value: Any) -> str:
    """Return a number, true, false or null as JSON; what JSON has no number for is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value)


def quote_json(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)


_ITEM = 200
"""Characters that an item of a list is to have before a further item is shown."""

_ENTRY = 40
"""The same for each key of an item that is an object."""

_KEY = 80
"""Characters of a key in an object that is shortened."""

_INSIDE = 80
"""Room from which a text is cut in the middle; in less its beginning alone says more."""


def shorten_json(value: Any, room: int, depth: int = 0) -> str:
    """Return a value as JSON of at most ``room`` characters, whole if it fits.

    Where there is less room than a value's shortest form needs (``min_json_size``), that stands.
    The time grows with the room, not with the value.
    """
    if isinstance(value, str):
        return _text(value, room)
    if not isinstance(value, dict | list):
        text = scalar_json(value)
        return text if len(text) <= max(room, min_json_size(value, depth)) else _text(text, room)
    if json_size(value, room, depth) <= room:
        return _whole(value, depth)
    short = ""
    if depth < MAX_DEPTH:
        short = (
            _object(value, room, depth) if isinstance(value, dict) else _array(value, room, depth)
        )
    return short or (entry_count_text(value) if len(entry_count_text(value)) <= room else ELLIPSIS)


def _whole(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return quote_json(clean(value, len(value)))
    if not isinstance(value, dict | list):
        return scalar_json(value)
    if value and depth >= MAX_DEPTH:
        return entry_count_text(value)
    written = [_whole(one, depth + 1) for one in child_values(value)]
    if isinstance(value, list):
        return f"[{', '.join(written)}]"
    return _braced(
        f"{quote_json(clean(key, len(key)))}: {one}"
        for key, one in zip(value, written, strict=True)
    )


def _object(value: dict[str, Any], room: int, depth: int) -> str:
    """Return as many keys as fit, their values in the room that is left; "" for none."""
    keys = [_text(key, _KEY) for key in islice(value, room // 4)]
    inner = list(islice(value.values(), len(keys)))
    costs = [
        len(key) + 4 + min_json_size(one, depth + 1) for key, one in zip(keys, inner, strict=True)
    ]
    count = _fitting(costs, room)
    if count < len(value):
        room -= len(_more(len(value), "key")) + len('"...": , ')
        count = _fitting(costs, room)
        if count == 0:
            return ""
    rooms = _rooms(inner[:count], room - sum(costs[:count]), depth + 1)
    parts = [
        f"{key}: {shorten_json(one, most, depth + 1)}"
        for key, one, most in zip(keys, inner, rooms, strict=False)
    ]
    if left := len(value) - count:
        parts.append(f'"...": {_more(left, "key")}')
    return _braced(parts)


def _array(value: list[Any], room: int, depth: int) -> str:
    """Return the first items and some of the last, the rest counted between them; "" for none."""
    room -= len(f'"... {_more(len(value), "item")[1:]}, ')
    head = max(1, _fitting((_cost(one, depth) for one in value), room * 3 // 4))
    used = sum(_cost(one, depth) for one in value[:head])
    behind = reversed(value[head:][-room:])
    tail = _fitting((_cost(one, depth) for one in behind), room - used)
    shown = [*value[:head], *value[len(value) - tail :]]
    free = room - sum(min_json_size(one, depth + 1) + 2 for one in shown)
    if free < 0:
        return ""
    rooms = _rooms(shown, free, depth + 1)
    parts = [shorten_json(one, most, depth + 1) for one, most in zip(shown, rooms, strict=True)]
    if all(part == ELLIPSIS for part in parts):
        return ""
    if left := len(value) - len(shown):
        parts.insert(head, f'"... {_more(left, "item")[1:]}')
    return f"[{', '.join(parts)}]"


def _cost(item: Any, depth: int) -> int:
    room = max(_ITEM, _ENTRY * len(item)) if isinstance(item, dict) else _ITEM
    return min(json_size(item, room, depth + 1), room) + 2


def _more(count: int, noun: str) -> str:
    return f'"{count} more {noun if count == 1 else noun + "s"}"'


def _braced(parts: Iterable[str]) -> str:
    return f"{{{', '.join(parts)}}}"


def _fitting(costs: Iterable[int], room: int) -> int:
    """Return how many of the costs, from the first on, there is room for."""
    count = 0
    for cost in costs:
        room -= cost
        if room < 0:
            break
        count += 1
    return count


def _rooms(values: Sequence[Any], free: int, depth: int) -> list[int]:
    """Return a room for each value: its least, and of the rest all that it needs or a fair share."""
    low = [min_json_size(one, depth) for one in values]
    wanted = [json_size(one, a + free, depth) - a for one, a in zip(values, low, strict=True)]
    rooms = list(low)
    for turn, at in enumerate(sorted(range(len(values)), key=wanted.__getitem__)):
        given = min(wanted[at], free // (len(values) - turn))
        rooms[at] += max(0, given)
        free -= max(0, given)
    return rooms


def _text(text: str, room: int) -> str:
    """Return a text as JSON, cut in the middle where it is too long."""
    if len(text) <= room:
        whole = quote_json(clean(text, len(text)))
        if len(whole) <= max(room, len(ELLIPSIS)):
            return whole
    take = min(room - len(quote_json(_gap(len(text), room))), len(text) - 1)
    while take > 0:
        tail = take // 3 if room >= _INSIDE else 0
        head = take - tail
        shown = clean(text[:head], head) + _gap(len(text) - take, room)
        short = quote_json(shown + clean(text[len(text) - tail :], take))
        if len(short) <= room:
            return short
        take -= (len(short) - room + 1) // 2  # a character is written as two at most
    return ELLIPSIS


def _gap(left: int, room: int) -> str:
    return f" [... {count_text(left, 'character')} left out ...] " if room >= _INSIDE else "..."


_DEPTH = 64
"""Levels that a schema is followed down; what lies deeper is kept as it is."""


def filter_by_schema(response: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the response without the keys that the schema does not name.

    Under a text a key counts as named when the text contains it, as in the reference.
    """
    return _kept(response, schema, 0)


def filter_response(response: Any, schema: Any) -> Any:
    """Return the response without the keys that the schema does not name, a list of objects too.

    What the schema does not fit is returned as it is. (The reference leaves lists alone.)
    """
    if isinstance(response, dict):
        return filter_by_schema(response, schema)
    if isinstance(response, list) and isinstance(schema, list):
        return _below(response, schema, 0)
    return response


def _kept(value: dict[str, Any], schema: Any, depth: int) -> dict[str, Any]:
    if depth >= _DEPTH or schema is True:
        return value
    return {
        key: _below(inner, schema[key] if isinstance(schema, dict) else None, depth + 1)
        for key, inner in value.items()
        if _names(schema, key)
    }


def _below(value: Any, schema: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return _kept(value, schema, depth)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        one = _of_items(schema)
        return [_kept(item, one, depth) if isinstance(item, dict) else item for item in value]
    return value


def _of_items(schema: Any) -> Any:
    """Return the schema of a list's items: the first; of a text its first letter."""
    if isinstance(schema, list | str):
        return schema[0] if schema else None
    return schema


def _names(schema: Any, key: str) -> bool:
    return isinstance(schema, dict | list | str) and key in schema


_TRIES = 8
"""Times that a text is shortened further, in proportion, before it is simply cut."""


@dataclass(frozen=True, slots=True)
class TextBudget:
    """At most ``most`` of what ``measure`` counts in a text, each worth ``reach`` characters or less."""

    most: int
    measure: Callable[[str], int] = len
    reach: int = 1

    def fits(self, text: str) -> bool:
        """Whether a text is short enough."""
        return self.measure(text) <= self.most


def compress(value: Any, budget: TextBudget, schema: Any = None) -> str:
    """Return a JSON value as text within a budget; JSON unless the budget is below 40 characters.

    ``schema`` says which keys of an object are worth keeping; one that names none is passed over.
    """
    room = budget.most * budget.reach
    if json_size(value, room) <= room:
        whole = shorten_json(value, room)
        if budget.fits(whole):
            return whole
    if schema:
        kept = filter_response(value, schema)
        value = kept if _says_something(kept) else value
    return _within(value, budget)


def _says_something(value: Any) -> bool:
    return any(value) if isinstance(value, list) else bool(value)


def _within(value: Any, budget: TextBudget) -> str:
    room = budget.most * budget.reach
    for _ in range(_TRIES):
        text = shorten_json(value, room)
        if budget.fits(text):
            return text
        room = min(room, len(text)) * budget.most * 9 // (budget.measure(text) * 10)
    while text and not budget.fits(text):
        text = text[: len(text) // 2]
    return text

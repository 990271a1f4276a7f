"""JSON made short, and still JSON: keys before values, long lists sampled, long texts cut inside.

What is left out is counted where it was: ``"... 95 more items"`` in a list, ``"...": "3 more
keys"`` in an object, ``[... 1234 characters left out ...]`` in a text, ``"{... 12 keys}"`` for an
object without room. Texts come out clean (``catalogs.text``). Knows characters, no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls.sizes import (
    DEPTH,
    SHORTEST,
    counted,
    entries,
    least,
    quoted,
    scalar,
    size,
    summary,
)

_ITEM = 200
"""Characters that an item of a list is to have before a further item is shown."""

_ENTRY = 40
"""The same for each key of an item that is an object."""

_KEY = 80
"""Characters of a key in an object that is shortened."""

_INSIDE = 80
"""Room from which a text is cut in the middle; in less its beginning alone says more."""


def shortened(value: Any, room: int, depth: int = 0) -> str:
    """Return a value as JSON of at most ``room`` characters, whole if it fits.

    Where there is less room than a value's shortest form needs (``sizes.least``), that stands.
    The time grows with the room, not with the value.
    """
    if isinstance(value, str):
        return _text(value, room)
    if not isinstance(value, dict | list):
        text = scalar(value)
        return text if len(text) <= max(room, least(value, depth)) else _text(text, room)
    if size(value, room, depth) <= room:
        return _whole(value, depth)
    short = ""
    if depth < DEPTH:
        short = (
            _object(value, room, depth) if isinstance(value, dict) else _array(value, room, depth)
        )
    return short or (summary(value) if len(summary(value)) <= room else SHORTEST)


def _whole(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return quoted(clean(value, len(value)))
    if not isinstance(value, dict | list):
        return scalar(value)
    if value and depth >= DEPTH:
        return summary(value)
    written = [_whole(one, depth + 1) for one in entries(value)]
    if isinstance(value, list):
        return f"[{', '.join(written)}]"
    return _braced(
        f"{quoted(clean(key, len(key)))}: {one}" for key, one in zip(value, written, strict=True)
    )


def _object(value: dict[str, Any], room: int, depth: int) -> str:
    """Return as many keys as fit, their values in the room that is left; "" for none."""
    keys = [_text(key, _KEY) for key in islice(value, room // 4)]
    inner = list(islice(value.values(), len(keys)))
    costs = [len(key) + 4 + least(one, depth + 1) for key, one in zip(keys, inner, strict=True)]
    count = _fitting(costs, room)
    if count < len(value):
        room -= len(_more(len(value), "key")) + len('"...": , ')
        count = _fitting(costs, room)
        if count == 0:
            return ""
    rooms = _rooms(inner[:count], room - sum(costs[:count]), depth + 1)
    parts = [
        f"{key}: {shortened(one, most, depth + 1)}"
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
    free = room - sum(least(one, depth + 1) + 2 for one in shown)
    if free < 0:
        return ""
    rooms = _rooms(shown, free, depth + 1)
    parts = [shortened(one, most, depth + 1) for one, most in zip(shown, rooms, strict=True)]
    if all(part == SHORTEST for part in parts):
        return ""
    if left := len(value) - len(shown):
        parts.insert(head, f'"... {_more(left, "item")[1:]}')
    return f"[{', '.join(parts)}]"


def _cost(item: Any, depth: int) -> int:
    room = max(_ITEM, _ENTRY * len(item)) if isinstance(item, dict) else _ITEM
    return min(size(item, room, depth + 1), room) + 2


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
    low = [least(one, depth) for one in values]
    wanted = [size(one, a + free, depth) - a for one, a in zip(values, low, strict=True)]
    rooms = list(low)
    for turn, at in enumerate(sorted(range(len(values)), key=wanted.__getitem__)):
        given = min(wanted[at], free // (len(values) - turn))
        rooms[at] += max(0, given)
        free -= max(0, given)
    return rooms


def _text(text: str, room: int) -> str:
    """Return a text as JSON, cut in the middle where it is too long."""
    if len(text) <= room:
        whole = quoted(clean(text, len(text)))
        if len(whole) <= max(room, len(SHORTEST)):
            return whole
    take = min(room - len(quoted(_gap(len(text), room))), len(text) - 1)
    while take > 0:
        tail = take // 3 if room >= _INSIDE else 0
        head = take - tail
        shown = clean(text[:head], head) + _gap(len(text) - take, room)
        short = quoted(shown + clean(text[len(text) - tail :], take))
        if len(short) <= room:
            return short
        take -= (len(short) - room + 1) // 2  # a character is written as two at most
    return SHORTEST


def _gap(left: int, room: int) -> str:
    return f" [... {counted(left, 'character')} left out ...] " if room >= _INSIDE else "..."

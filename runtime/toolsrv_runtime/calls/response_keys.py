"""Key paths of an API's example responses, and the response schema of those that are kept.

A schema has ToolBench's form (ToolLLM, A.2; ``compress.filter_by_schema`` applies it): keys with
``"str"``, ``"int"`` …, nested objects, a list as a list of one item; ``True`` where anything may stand.
Only what is the same in other responses becomes a choice: an object whose keys are data (ids,
dates) is one choice, and so is what is nested too deep or too wide. Pure. Time grows with the size of the
examples.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api

FEWEST_KEYS = 4
"""Key paths of an API below which there is nothing to choose."""
MOST_KEYS = 100
"""Key paths of one API; an object that would bring more is one choice."""

MOST_DEPTH = 8
ITEMS = 20
"""Items of a list whose keys are merged."""

_SAMPLES = 60
_KEY_LIMIT = 80
_MAP_OBJECTS = 4
"""Entries of the same keys each, from which an object's own keys count as data."""
_MAP_SCALARS = 16
"""The same for values of one type."""
_SPARSE = 3.0
"""Times more keys in all samples of an object than in one of them, from which they count as data."""

_WORD_END = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")
_TYPES = {str: "str", bool: "bool", int: "int", float: "float"}


@dataclass(slots=True)
class _Shape:
    """What stands in one place of all examples; ``path`` is set where that is one choice."""

    kind: Literal["object", "list", "scalar", "any"]
    name: str = "any"
    keys: dict[str, _Shape] = field(default_factory=dict)
    """Of an object; those of a list are its items' under ``""``."""
    odd: tuple[str, ...] = ()
    """Keys that no prompt can show; they are always kept."""
    path: str | None = None

    def inner(self) -> dict[str, _Shape]:
        """Return the keys of an object or of a list's items."""
        if self.kind == "list":
            return self.keys[""].inner()
        return self.keys if self.kind == "object" else {}

    def choices(self) -> Iterator[_Shape]:
        """Yield what is a choice, in the order of the example."""
        if self.path is not None:
            yield self
            return
        for one in self.keys.values():
            yield from one.choices()

    def kept(self, paths: Collection[str], documented: Any) -> Any:
        """Return the schema of what is kept, None for nothing; see ``ResponseKeys.schema``."""
        if self.path is not None:
            return _leaf(self) if self.path in paths else None
        if self.kind == "list":
            below = documented[0] if isinstance(documented, list) and documented else None
            item = self.keys[""].kept(paths, below)
            return None if item is None else [item]
        named = documented if isinstance(documented, dict) else {}
        found = {
            key: schema
            for key, one in self.keys.items()
            if (schema := one.kept(paths, named.get(key))) is not None
        }
        if not found:
            return None
        unseen = {key: one for key, one in named.items() if key not in self.keys}
        return found | dict.fromkeys(self.odd, True) | unseen


class ResponseKeys:
    """The key paths of an API's responses; ``response_keys`` reads them.

    ``types`` has the type of each path, in the order of the examples. A path is written
    ``data[].user.name``; a key with a dot, a bracket or a space is quoted.
    """

    def __init__(self, root: _Shape) -> None:
        self._root = root
        self.types: Mapping[str, str] = {
            one.path: _type_name(one) for one in root.choices() if one.path
        }

    def schema(self, paths: Collection[str], documented: Any = None) -> Any:
        """Return the schema that keeps these paths; None for none of them.

        ``documented`` is a schema that names every key of the responses: those which no example has
        are kept.
        """
        return self._root.kept(frozenset(paths), documented)


def response_keys(examples: Sequence[Any]) -> ResponseKeys:
    """Return the key paths of responses of one API; the keys of all of them are merged.

    There are none where the responses are no objects or lists of objects, or have other keys each
    time.
    """
    root = _shape(list(islice(examples, ITEMS)), 0)
    room = MOST_KEYS
    waiting = deque([(root, "")])
    while waiting:  # level by level: what is wide below takes no room from what stands above
        shape, path = waiting.popleft()
        inner = shape.inner()
        if not inner or len(inner) > room:
            shape.path = path
            continue
        room -= len(inner)
        head = f"{path}[]" if shape.kind == "list" else path
        waiting.extend((one, _joined(head, key)) for key, one in inner.items())
    return ResponseKeys(root)


def _joined(head: str, key: str) -> str:
    plain = key.isprintable() and not any(char in '.[]" ' for char in key)
    name = key if plain else json.dumps(key, ensure_ascii=False)
    return f"{head}.{name}" if head else name


def _shape(samples: list[Any], depth: int) -> _Shape:
    values = [one for one in samples[:_SAMPLES] if one is not None]
    if not values or depth > MOST_DEPTH:
        return _Shape("any")
    if all(isinstance(one, dict) for one in values):
        return _object(values, depth)
    if all(isinstance(one, list) for one in values):
        items = [item for one in values for item in one[:ITEMS]]
        item = _shape(items, depth + 1)
        nested = any(isinstance(one, list) for one in items)  # a filter leaves those as they are
        return _Shape("any") if item.kind == "any" or nested else _Shape("list", keys={"": item})
    kinds = {_TYPES.get(type(one), "") for one in values}
    name = "float" if kinds == {"int", "float"} else next(iter(kinds))
    return (
        _Shape("scalar", name) if name and (len(kinds) == 1 or name == "float") else _Shape("any")
    )


def _object(values: list[dict[str, Any]], depth: int) -> _Shape:
    keys = list(dict.fromkeys(key for one in values for key in one))
    if not keys or len(keys) > MOST_KEYS * 2 or _keys_are_data(values, keys):
        return _Shape("any")
    odd = tuple(key for key in keys if not key or clean(key, _KEY_LIMIT) != key)
    found = {
        key: _shape([one[key] for one in values if key in one], depth + 1)
        for key in keys
        if key not in odd
    }
    return _Shape("object", keys=found, odd=odd) if found else _Shape("any")


def _keys_are_data(values: list[dict[str, Any]], keys: Sequence[str]) -> bool:
    """Whether the keys of an object are values (ids, dates), so that others come with each call."""
    inner = [item for one in values for item in one.values()]
    if len(keys) >= _MAP_OBJECTS and all(isinstance(one, dict) and one for one in inner):
        first = inner[0].keys()
        return all(one.keys() == first for one in inner)
    kinds = {type(one) for one in inner}
    if len(keys) >= _MAP_SCALARS and len(kinds) == 1 and kinds <= _TYPES.keys():
        return True
    mean = len(inner) / len(values)
    return len(keys) >= _MAP_SCALARS and len(values) > 1 and len(keys) > _SPARSE * mean


def _leaf(shape: _Shape) -> Any:
    if shape.kind == "scalar":
        return shape.name
    if shape.kind == "list" and shape.keys[""].kind == "scalar":
        return [shape.keys[""].name]
    return True


def _type_name(shape: _Shape) -> str:
    if shape.kind == "list":
        return f"list of {_type_name(shape.keys[''])}"
    return shape.name if shape.kind == "scalar" else shape.kind


def identifier_paths(keys: ResponseKeys, api: Api, required: Collection[str]) -> frozenset[str]:
    """Return the paths that may hold what APIs of the tool require, by those names.

    ``userId``, ``user.id`` and any ``id`` may be what takes ``user_id``. What the API itself requires
    is known to its caller already.
    """
    own = {_letters(one.name) for one in api.required}
    wanted = {name for name in required if _letters(name) not in own}
    names = {_letters(one) for one in wanted} | {_last_word(one) for one in wanted}
    return frozenset(path for path in keys.types if _last_keys(path) & (names - {""}))


def _last_keys(path: str) -> set[str]:
    last = path.rsplit(".", 2)[-2:]
    return {_letters(last[-1]), _letters("".join(last))}


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _last_word(name: str) -> str:
    return _letters(_WORD_END.split(name.strip("_- "))[-1])

"""YAML as JSON values: safe, flat in memory, and in YAML 1.2's core schema.

Built from the parser's events, so that depth and aliases are limited before anything large
exists: an alias counts with all that it stands for. No tags are obeyed, ``no`` is a word and a
date is a text, as in JSON; what YAML reads as a number or a boolean is the text as it is written
where it is a key, or a default, an example or an allowed value beside ``type: string``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

DEPTH_LIMIT = 100
NODES_LIMIT = 5_000_000
"""Values of a document, with every alias written out."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_OTHER_INTEGER = re.compile(r"0o[0-7]{1,100}|0x[0-9a-fA-F]{1,100}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_MERGE = "<<"
_VALUES, _LISTS = ("default", "example", "const"), ("enum", "examples")
"""Keys of a schema, or of what holds one, that stand for values of its type, or lists of them."""
_SHORT, _KNOWN_LIMIT = 64, 100_000
_TOO_DEEP = f"nested deeper than {DEPTH_LIMIT} levels"
_SCANNER_LIMIT = "maximum nesting depth"


@dataclass(slots=True)
class _Open:
    """A list or mapping under construction; ``size`` counts the values in it.

    ``written`` has by key or index the text of what was no text, ``lists`` that of a list's items.
    """

    value: list[Any] | dict[str, Any]
    anchor: str | None
    key: str | None = None
    size: int = 1
    own: set[str] = field(default_factory=set)
    written: dict[str | int, str] = field(default_factory=dict)
    lists: dict[str, dict[str | int, str]] = field(default_factory=dict)


def load(text: str, twice: list[str] | None = None) -> Any:
    """Return the value of the first document in ``text``.

    ``twice`` takes the keys that a mapping has twice, of which the last one counts.

    Raises:
        ValueError: not YAML, nested or expanded beyond reason, or an alias to nothing.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder([] if twice is None else twice).build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())[:200]
        if _SCANNER_LIMIT in said:
            # The scanner reads ahead of its events, and newer ones stop by a limit of their own.
            raise ValueError(_TOO_DEEP) from error
        raise ValueError(said) from error


class _Builder:
    def __init__(self, twice: list[str]) -> None:
        self._twice = twice
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._root: Any = None
        self._size = 0
        # Keys and short values repeat by the hundred thousand: one copy of each is kept.
        self._known: dict[str, Any] = {}

    def build(self, events: Any) -> Any:
        for event in events:
            match event:
                case yaml.ScalarEvent():
                    value = self._scalar(event.value, plain=event.implicit[0])
                    told = isinstance(value, bool | int | float)
                    self._put(value, 1, event.anchor, event.value if told else None)
                case yaml.SequenceStartEvent():
                    self._open([], event.anchor)
                case yaml.MappingStartEvent():
                    self._open({}, event.anchor)
                case yaml.CollectionEndEvent():
                    done = self._stack.pop()
                    if isinstance(done.value, dict):
                        _keep_texts(done.value, done)
                    elif done.written and self._stack and self._stack[-1].key is not None:
                        self._stack[-1].lists[self._stack[-1].key] = done.written
                    self._put(done.value, done.size, done.anchor)
                case yaml.AliasEvent():
                    if event.anchor not in self._anchors:
                        raise ValueError(f"the alias *{event.anchor} stands for nothing yet")
                    value, size = self._anchors[event.anchor]
                    self._put(value, size, None)
                case yaml.DocumentEndEvent():
                    break
                case _:
                    continue
        return self._root

    def _scalar(self, text: str, *, plain: bool) -> Any:
        if not plain or len(text) > _SHORT:
            return _scalar(text, plain=plain)
        if text not in self._known and len(self._known) < _KNOWN_LIMIT:
            self._known[text] = _scalar(text, plain=True)
        return self._known[text] if text in self._known else _scalar(text, plain=True)

    def _open(self, value: list[Any] | dict[str, Any], anchor: str | None) -> None:
        if len(self._stack) >= DEPTH_LIMIT:
            raise ValueError(_TOO_DEEP)
        self._anchors.pop(anchor or "", None)
        self._stack.append(_Open(value, anchor))

    def _put(self, value: Any, size: int, anchor: str | None, written: str | None = None) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._stack:
            self._root = value
            return
        inner = self._stack[-1]
        inner.size += size
        self._size = max(self._size, inner.size)
        if self._size > NODES_LIMIT:
            raise ValueError(f"its aliases expand to more than {NODES_LIMIT} values")
        if isinstance(inner.value, list):
            if written is not None:
                inner.written[len(inner.value)] = written
            inner.value.append(value)
        elif inner.key is None:
            inner.key = _key(value if written is None else written)
        else:
            if written is not None:
                inner.written[inner.key] = written
            if inner.key in inner.own and inner.key != _MERGE:
                self._twice.append(inner.key)
            inner.own.add(inner.key)
            _enter(inner.value, inner.key, value)
            inner.key = None


def _enter(mapping: dict[str, Any], key: str, value: Any) -> None:
    if key == _MERGE:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                for name, inherited in one.items():
                    mapping.setdefault(name, inherited)
        return
    mapping[key] = value


def _key(value: Any) -> str:
    """Return a key as JSON would have it: text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    raise ValueError("a list or a mapping stands as a key")


def _keep_texts(mapping: dict[str, Any], done: _Open) -> None:
    """Put texts as they are written in place of numbers and booleans where texts are meant."""
    if not done.written and not done.lists:
        return
    schema = mapping.get("schema", mapping)
    items = schema.get("items") if isinstance(schema, dict) else None
    if _is_text(schema):
        for key in _VALUES:
            if key in done.written:
                mapping[key] = done.written[key]
        keys: tuple[str, ...] = _LISTS
    elif _is_text(items):
        keys = _VALUES
    else:
        return
    for key in keys:
        if key in done.lists and isinstance(mapping[key], list):
            texts = done.lists[key]
            mapping[key] = [texts.get(at, one) for at, one in enumerate(mapping[key])]


def _is_text(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = kind if isinstance(kind, list) else [kind]
    return "string" in kinds and all(one in ("string", "null") for one in kinds)


def _scalar(text: str, *, plain: bool) -> Any:
    if not plain:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OTHER_INTEGER.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text

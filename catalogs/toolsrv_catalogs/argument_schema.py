"""JSON Schemas of arguments: self-contained, bounded, and never stricter than the source.

A schema of a document becomes JSON Schema 2020-12 without references: OpenAPI 3.0's ``nullable``
is a type, its ``exclusiveMinimum: true`` a number, and a discriminator is a property with allowed
values. What lies too deep, is too much or cannot be followed admits anything; what would then be
stricter is left out (``not``, ``if``, ``unevaluatedProperties``), and ``oneOf`` becomes ``anyOf``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from toolsrv_catalogs import fields
from toolsrv_catalogs.openapi_refs import Node, ReferenceFault, split_reference, variants
from toolsrv_catalogs.text import NAME_LIMIT, clean

TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
NODES_LIMIT = 300
"""Schemas within one argument's that are kept."""
_DEPTHS = (12, 6, 4, 3, 2, 1)
"""Levels that are kept: the most with which a schema stays within its limit."""
_LEVEL_LIMIT = 500
_PATTERN_LIMIT = 1_000
_TEXT_LIMIT = 80
"""Characters of a description, and of a default's JSON, below the first level."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?", re.ASCII)
_PLAIN = {"type", "items", "properties", "required", "format", "contentEncoding"}
_NOTHING = {"not": dict[str, Any]()}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset(
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
)
_CHOICES = ("anyOf", "oneOf")
_UNEVALUATED = "unevaluatedProperties"
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "discriminator", "if", "dependentSchemas"})
_COMPOSING = _COMPOSED | {"not"}
_LIMITING = _BOUNDS | _COUNTS | {"multipleOf", "pattern", "format"}

Follow = Callable[[Node], Node]


def argument_schema(node: Node, follow: Follow, nodes: int = NODES_LIMIT) -> dict[str, Any]:
    """Return the schema at ``node`` made self-contained; ``{}`` where anything may stand there.

    Args:
        node: a schema of an OpenAPI document, or whatever stands in its place.
        follow: returns what a node stands for; raises ReferenceFault where it leads to nothing.
        nodes: schemas within it that are kept; of more those of the first levels.
    """
    for depth in _DEPTHS:
        try:
            schema = _Builder(follow, depth, nodes, is_last=depth == 1).build(node, 0)
        except _TooLargeError:
            continue
        schema.pop("description", None)  # the argument has its own
        return schema
    return {}


def kept_schema(value: Any) -> dict[str, Any] | None:
    """Return a schema that an export wrote down, made harmless; None where none is there."""
    if not isinstance(value, dict):
        return None
    # Wider limits than those it was made by: it comes back as it was written.
    return _Builder(_no_references, 4 * _DEPTHS[0], 4 * NODES_LIMIT).build(Node(value, None), 0)


class _TooLargeError(Exception):
    """A schema has more within it than is kept."""


def _no_references(node: Node) -> Node:
    if isinstance(node.value, dict) and "$ref" in node.value:
        raise ReferenceFault("references are not followed here")
    return node


class _Level:
    """The names of one object's read-only properties, in all parts of its schema."""

    def __init__(self, builder: _Builder, node: Node) -> None:
        self._builder = builder
        self._node = node

    @cached_property
    def read_only(self) -> frozenset[str]:
        waiting, seen, found = [self._node], 0, set[str]()
        while waiting and seen < _LEVEL_LIMIT:
            seen += 1
            reference, beside = split_reference(waiting.pop())
            if beside is not None:
                waiting += [reference, beside]
                continue
            value, resolver = self._builder.looked_up(reference)
            for name, entry in _mapping(value.get("properties")).items():
                seen += 1
                if self._builder.looked_up(Node(entry, resolver)).value.get("readOnly") is True:
                    found.add(str(name))
            for key in ("allOf", *_CHOICES):
                waiting += variants(Node(value, resolver), key)
        return frozenset(found)


class _Builder:
    def __init__(self, follow: Follow, depth: int, nodes: int, *, is_last: bool = True) -> None:
        self._follow = follow
        self._depth = depth
        self._left = nodes
        self._is_last = is_last
        self._lost = 0
        self._unnamed = 0
        self._open: set[int] = set()

    def looked_up(self, node: Node) -> Node:
        """Return the object that a node stands for, an empty one where it is none."""
        try:
            found = self._follow(node)
        except ReferenceFault:
            return Node({}, node.resolver)
        return found if isinstance(found.value, dict) else Node({}, node.resolver)

    def build(
        self, node: Node, depth: int, level: _Level | None = None, *, part: bool = False
    ) -> dict[str, Any]:
        """Return a schema; ``level`` is that of the object it describes a ``part`` of."""
        self._left -= 1
        if self._left < 0 and not self._is_last:
            raise _TooLargeError
        if depth > self._depth or self._left < 0:
            self._lose(True, names=True)
            return {}
        level = level or _Level(self, node)
        reference, beside = split_reference(node)
        if beside is not None:
            rest = {key: one for key, one in beside.value.items() if key != _UNEVALUATED}
            both, unnamed = (reference, Node(rest, beside.resolver)), self._unnamed
            parts = [self.build(one, depth + 1, level, part=True) for one in both]
            result = _shorter({"allOf": [one for one in parts if one]})
            self._unevaluated(beside, depth, unnamed, result, part=part)
            return _nullable(result) if beside.value.get("nullable") is True else result
        try:
            value, resolver = self._follow(node)
        except ReferenceFault:
            self._lose(True, names=True)
            return {}
        if value is False:
            return dict(_NOTHING)
        if not isinstance(value, dict):
            return {}
        result: dict[str, Any] = {}
        unnamed = self._unnamed
        if value.get("not") == {}:  # nothing at all is allowed
            result |= _NOTHING
        types = _types(value)
        if (allowed := _allowed(value)) is not None:
            types, allowed = _agreed(types, allowed)
            result["enum"] = allowed
        self._lose(not types and "type" in value)
        self._lose(allowed is None and not value.keys().isdisjoint({"enum", "const"}))
        if types:
            result["type"] = types[0] if len(types) == 1 else types
        result |= _limits(value)
        self._lose(not value.keys() & {"pattern", "format"} <= result.keys())
        if not types or "string" in types:
            result |= _bytes(value)
        if depth > 0:
            result |= _annotations(value)
        elif value.get("default", 0) == "":  # what else is a default stands beside the schema
            result["default"] = ""
        elif "default" in value and value["default"] is None and _takes_null(value):
            result["default"] = None
        self._list(value, resolver, depth, result)
        self._object(value, resolver, depth, level, result, part=part)
        self._composed(Node(value, resolver), depth, level, result, part=part)
        result = _shorter(result)
        self._unevaluated(Node(value, resolver), depth, unnamed, result, part=part)
        return _nullable(result) if value.get("nullable") is True else result

    def _lose(self, is_lost: bool, *, names: bool = False) -> None:
        """Note that what is kept may admit more than the schema does, or lacks ``names`` of it."""
        self._lost += is_lost
        self._unnamed += is_lost and names

    def _unevaluated(
        self, node: Node, depth: int, unnamed: int, result: dict[str, Any], *, part: bool
    ) -> None:
        """Keep what a schema says of properties that no part of it names, if all parts are kept."""
        told = node.value.get(_UNEVALUATED, True)
        if told is True:
            return
        if part or unnamed != self._unnamed:  # a part would forbid what the others describe
            self._lose(True)
        elif told is False:
            result[_UNEVALUATED] = False
        elif isinstance(told, dict):
            result |= _unless_empty(_UNEVALUATED, self._within(told, node.resolver, depth))

    def _within(self, value: Any, resolver: Any, depth: int) -> dict[str, Any]:
        unnamed = self._unnamed
        built = self.build(Node(value, resolver), depth + 1)
        self._unnamed = unnamed  # of another value
        return built

    def _list(
        self, value: Mapping[str, Any], resolver: Any, depth: int, result: dict[str, Any]
    ) -> None:
        first = value.get("prefixItems")
        if isinstance(first, list) and first:
            result["prefixItems"] = [self._within(one, resolver, depth) for one in first]
        if "items" in value:
            result |= _unless_empty("items", self._within(value["items"], resolver, depth))
        if value.get("uniqueItems") is True:
            result["uniqueItems"] = True
        counted = "maxContains" in value or value.get("minContains") == 0
        self._lose(counted)
        if "contains" in value and not counted:
            contained = self._within(value["contains"], resolver, depth)
            result |= _unless_empty("contains", contained)

    def _object(
        self,
        value: Mapping[str, Any],
        resolver: Any,
        depth: int,
        level: _Level,
        result: dict[str, Any],
        *,
        part: bool,
    ) -> None:
        entries = _mapping(value.get("properties"))
        built = {
            str(name): self._within(one, resolver, depth)
            for name, one in entries.items()
            if clean(str(name), NAME_LIMIT) == str(name)
        }
        if built:
            result["properties"] = built
        needed = [one for one in _texts(value.get("required")) if one not in level.read_only]
        if needed:
            result["required"] = needed
        self._lose(len(needed) < len(set(map(str, _list(value.get("required"))))))
        patterned = _mapping(value.get("patternProperties"))
        patterns = {
            name: self._within(one, resolver, depth)
            for name, one in patterned.items()
            if _is_pattern(name)
        }
        if patterns:
            result["patternProperties"] = patterns
        others = value.get("additionalProperties")
        if others is True or (isinstance(others, dict) and not others):
            result["additionalProperties"] = True
        elif isinstance(others, dict):
            result["additionalProperties"] = self._within(others, resolver, depth)
        is_whole = len(built) + len(patterns) == len(entries) + len(patterned)
        self._lose(not is_whole, names=True)
        if others is False and is_whole and not part and not value.keys() & _COMPOSED:
            # Beside parts it would forbid what those describe, which hardly a document means.
            result["additionalProperties"] = False
        else:
            self._lose(others is False)
        if "propertyNames" in value:
            named = self._within(value["propertyNames"], resolver, depth)
            result |= _unless_empty("propertyNames", named)
        dependent = {
            str(name): _texts(one) for name, one in _mapping(value.get("dependentRequired")).items()
        }
        result |= _unless_empty("dependentRequired", dependent)

    def _composed(
        self, node: Node, depth: int, level: _Level, result: dict[str, Any], *, part: bool
    ) -> None:
        value, resolver = node
        if not value.keys() & _COMPOSING and "allOf" not in result:
            return
        beside = part or "allOf" in value or "properties" in value
        parts = [result["allOf"]] if "allOf" in result else []

        def built(one: Node) -> dict[str, Any]:
            return self.build(one, depth + 1, level, part=True)

        self._lose(id(value) in self._open, names=True)
        if id(value) not in self._open:
            self._open.add(id(value))
            for key in _CHOICES:
                lost = self._lost
                chosen = [
                    self.build(one, depth + 1, level, part=beside) for one in variants(node, key)
                ]
                if chosen and all(chosen):  # one that admits anything makes all of them do
                    parts.append({key if lost == self._lost else "anyOf": chosen})
                self._lose(not all(chosen), names=True)
            self._open.discard(id(value))
        parts += [one for one in map(built, variants(node, "allOf")) if one]
        for name, one in _mapping(value.get("dependentSchemas")).items():
            if then := built(Node(one, resolver)):
                parts.append({"dependentSchemas": {str(name): then}})
        lost = self._lost
        if isinstance(value.get("not"), dict) and value["not"]:
            refused = built(Node(value["not"], resolver))
            if lost == self._lost and refused:
                parts.append({"not": refused})
        if isinstance(value.get("if"), dict):
            branch = {
                key: built(Node(value[key], resolver))
                for key in ("if", "then", "else")
                if key in value
            }
            if lost == self._lost:  # a condition without a part of it would hold too often
                parts.append(branch)
            else:
                self._lose(True, names=True)
        if parts:
            result["allOf"] = parts


def _types(value: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema names, none where it names one that does not exist."""
    named = value.get("type")
    types = named if isinstance(named, list) else [] if named is None else [named]
    known = [one for one in types if isinstance(one, str) and one in TYPES]
    return list(dict.fromkeys(known)) if len(known) == len(types) else []


def _allowed(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the allowed values, None where all are or where they are too many to be held."""
    values = [value["const"]] if "const" in value else value.get("enum")
    if not isinstance(values, list) or not values or len(values) > fields.ENUM_LIMIT:
        return None
    whole = all(
        clean(one, NAME_LIMIT) == one for one in (fields.spelled(value) for value in values)
    )
    return values if whole and not any(_endless(one) for one in values) else None


def _bytes(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the keyword that says that a text stands for bytes, where one does."""
    if value.get("contentEncoding") in ("base64", "base64url"):
        return {"contentEncoding": value["contentEncoding"]}
    if value.get("format") == "byte":
        return {"contentEncoding": "base64"}
    return {"format": "binary"} if value.get("format") == "binary" else {}


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _agreed(types: list[str], allowed: list[Any]) -> tuple[list[str], list[Any]]:
    """Return types and allowed values that fit each other.

    Values are often written in another type than the one that is declared (``enum: [1, 2]`` of a
    string, in YAML). They are meant in the declared one; where they cannot be, they decide.
    """
    if not types:
        return [], allowed
    meant = []
    for value in allowed:
        if _is_of(value, types):
            meant.append(value)
        elif value is None:  # allowed by another word, or not at all
            continue
        elif "boolean" in types and value in ("true", "false"):
            meant.append(value == "true")
        elif "string" in types and not isinstance(value, dict | list):
            meant.append(fields.spelled(value))
        elif isinstance(value, str) and (number := _number(value)) is not None:
            meant.append(number)
        else:
            return [], allowed
    return (types, meant) if meant and all(_is_of(one, types) for one in meant) else ([], allowed)


def _is_of(value: Any, types: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer" in types or "number" in types
    kinds: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null") in types


def _number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that admits null beside what it admits."""
    if "type" in schema and not schema.keys() & {"enum", "allOf", "anyOf", "not", "if"}:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema | {"type": list(dict.fromkeys([*types, "null"]))}
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _shorter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``allOf`` of one part without it, where that says the same."""
    parts: list[dict[str, Any]] | None = schema.get("allOf")
    if parts is None:
        return schema
    rest = {key: one for key, one in schema.items() if key != "allOf"}
    if not parts:
        return rest
    apart = rest.keys() & parts[0].keys() or rest.keys() | parts[0].keys() >= {"enum", "type"}
    return schema if len(parts) > 1 or (rest and apart) else rest | parts[0]


def _limits(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bounds of texts, numbers, lists and objects, OpenAPI 3.0's in 2020-12's form."""
    if not value.keys() & _LIMITING:
        return {}
    found: dict[str, Any] = {key: int(value[key]) for key in _COUNTS if _is_count(value.get(key))}
    found |= {key: value[key] for key in _BOUNDS if _is_number(value.get(key))}
    for open_end, end in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if value.get(open_end) is True and end in found:
            found[open_end] = found.pop(end)
    step = value.get("multipleOf")
    if step is not None and _is_number(step) and step > 0:
        found["multipleOf"] = step
    if _is_pattern(value.get("pattern")):
        found["pattern"] = value["pattern"]
    form = value.get("format")
    if isinstance(form, str) and form and clean(form, _TEXT_LIMIT) == form:
        found["format"] = form
    return found


def _takes_null(value: Mapping[str, Any]) -> bool:
    return value.get("nullable") is True or "null" in _types(value)


def _annotations(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reader of the schema wants to know beside what it demands."""
    found: dict[str, Any] = {}
    told = value.get("description") or value.get("title")
    if isinstance(told, str) and (line := " ".join(clean(told, 400).split())[:_TEXT_LIMIT]):
        found["description"] = line
    if value.get("readOnly") is True:
        found["readOnly"] = True
    if value.get("default") is not None and _is_short(value["default"]):
        found["default"] = value["default"]
    return found


def _is_short(value: Any) -> bool:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return False
    return len(text) <= _TEXT_LIMIT and clean(text, _TEXT_LIMIT) == text


def _is_pattern(value: Any) -> bool:
    return isinstance(value, str) and clean(value, _PATTERN_LIMIT) == value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not _endless(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and int(value) == value


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    """Return the clean names of a list, each once."""
    named = [one for one in _list(value) if isinstance(one, str) and clean(one, NAME_LIMIT) == one]
    return list(dict.fromkeys(named))


def _unless_empty(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema} if schema else {}

"""JSON Schemas of single arguments: self-contained, bounded, and never stricter than the source.

A schema of a document becomes JSON Schema 2020-12 without references: OpenAPI 3.0's ``nullable``
is a type, ``oneOf`` is ``anyOf``. What lies too deep, is too much or cannot be followed admits
anything. Kept are types, allowed values, items, properties and required ones: texts and numbers
are not bounded here, and patterns are left out, because a hostile one takes for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from toolsrv_catalogs import fields
from toolsrv_catalogs.openapi_refs import Node, ReferenceFault, split_reference
from toolsrv_catalogs.text import NAME_LIMIT, clean

TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_DEPTH_LIMIT = 4
_NODES_LIMIT = 64
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?", re.ASCII)
_PLAIN = {"type", "items", "properties", "required", "format", "contentEncoding"}
_NOTHING = {"not": dict[str, Any]()}

Follow = Callable[[Node], Node]


def argument_schema(node: Node, follow: Follow) -> dict[str, Any]:
    """Return the schema at ``node`` made self-contained; ``{}`` where anything may stand there.

    Args:
        node: a schema of an OpenAPI document, or whatever stands in its place.
        follow: returns what a node stands for; raises ReferenceFault where it leads to nothing.
    """
    return _Builder(follow, _DEPTH_LIMIT, _NODES_LIMIT).build(node, 0)


def kept_schema(value: Any) -> dict[str, Any] | None:
    """Return a schema that an export wrote down, made harmless; None where none is there."""
    if not isinstance(value, dict):
        return None
    # Wider limits than those it was made by: it comes back as it was written.
    return _Builder(_no_references, 4 * _DEPTH_LIMIT, 4 * _NODES_LIMIT).build(Node(value, None), 0)


def _no_references(node: Node) -> Node:
    if isinstance(node.value, dict) and "$ref" in node.value:
        raise ReferenceFault("references are not followed here")
    return node


class _Builder:
    def __init__(self, follow: Follow, depth: int, nodes: int) -> None:
        self._follow = follow
        self._depth = depth
        self._nodes = nodes

    def build(self, node: Node, depth: int) -> dict[str, Any]:
        self._nodes -= 1
        if depth > self._depth or self._nodes < 0:
            return {}
        reference, beside = split_reference(node)
        if beside is not None:
            parts = [self.build(one, depth + 1) for one in (reference, beside)]
            both = _shorter({"allOf": [part for part in parts if part]})
            return _nullable(both) if beside.value.get("nullable") is True else both
        try:
            value, resolver = self._follow(node)
        except ReferenceFault:
            return {}
        if value is False:
            return dict(_NOTHING)
        if not isinstance(value, dict):
            return {}
        result: dict[str, Any] = {}
        if value.get("not") == {}:  # nothing at all is allowed
            result |= _NOTHING
        types = _types(value)
        if (allowed := _allowed(value)) is not None:
            types, allowed = _agreed(types, allowed)
            result["enum"] = allowed
        if types:
            result["type"] = types[0] if len(types) == 1 else types
        if not types or "string" in types:
            result |= _bytes(value)
        if "items" in value and "prefixItems" not in value:  # then they are those behind
            result |= _unless_empty("items", self.build(Node(value["items"], resolver), depth + 1))
        self._properties(value, resolver, depth, result)
        for key in ("anyOf", "oneOf"):
            variants = self._parts(value.get(key), resolver, depth)
            if variants and all(variants):  # one that admits anything makes all of them do
                result.setdefault("allOf", []).append({"anyOf": variants})
        if parts := self._parts(value.get("allOf"), resolver, depth):
            result["allOf"] = [*result.get("allOf", []), *(part for part in parts if part)]
        result = _shorter(result)
        if value.get("nullable") is True:
            return _nullable(result)
        return result

    def _parts(self, value: Any, resolver: Any, depth: int) -> list[dict[str, Any]]:
        parts = value if isinstance(value, list) else []
        return [self.build(Node(part, resolver), depth + 1) for part in parts]

    def _properties(
        self, value: Mapping[str, Any], resolver: Any, depth: int, result: dict[str, Any]
    ) -> None:
        properties = value.get("properties")
        entries = properties if isinstance(properties, dict) else {}
        built = {
            str(name): self.build(Node(one, resolver), depth + 1)
            for name, one in entries.items()
            if clean(str(name), NAME_LIMIT) == str(name)
        }
        if built:
            result["properties"] = built
        required = value.get("required")
        names = [
            name
            for name in (required if isinstance(required, list) else [])
            if isinstance(name, str)
            and name in built  # another part of an allOf may say that it is read-only
            and not self._read_only(entries.get(name), resolver)
        ]
        if names:
            result["required"] = list(dict.fromkeys(names))

    def _read_only(self, entry: Any, resolver: Any) -> bool:
        try:
            value = self._follow(Node(entry, resolver)).value
        except ReferenceFault:
            return False
        return isinstance(value, dict) and value.get("readOnly") is True


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
    if set(schema) <= _PLAIN and "type" in schema:
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


def _unless_empty(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema} if schema else {}

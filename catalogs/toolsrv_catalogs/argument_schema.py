"""JSON Schemas of arguments: self-contained, bounded, and never stricter than the source.

A schema of a document becomes JSON Schema 2020-12 without references: OpenAPI 3.0's ``nullable``
(and ``x-nullable``, which Swagger 2's documents write) is a type, its ``exclusiveMinimum: true`` a number, and a discriminator is a property with allowed
values. What lies too deep, is too much or cannot be followed admits anything; what would then be
stricter is left out (``not``, ``if``, ``unevaluatedProperties``), and ``oneOf`` becomes ``anyOf``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from toolsrv_catalogs import fields
from toolsrv_catalogs.fields import listed, mapping
from toolsrv_catalogs.openapi.references import (
    Node,
    ReferenceFault,
    all_of,
    split_reference,
    variants,
)
from toolsrv_catalogs.text import NAME_LIMIT, clean
from toolsrv_registry import numerals
from toolsrv_registry.flat_view import spelled

TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
NODES_LIMIT = 300
"""Schemas within one argument's that are kept."""
_DEPTHS = (12, 6, 4, 3, 2, 1)
"""Levels that are kept: the most with which a schema stays within its limit."""
_PATTERN_LIMIT = 1_000
_TEXT_LIMIT = 80
"""Characters of a description, and of a default's JSON, below the first level."""
_PLAIN = {"type", "items", "properties", "required", "format", "contentEncoding"}
_OBJECT = frozenset({"type", "properties", "required", "description"})
_NOTHING = {"not": dict[str, Any]()}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS = frozenset(
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
)
_CONTAINED = ("minContains", "maxContains")
_CHOICES = ("anyOf", "oneOf")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
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
        schema.pop("description", None)
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


class _Builder:
    def __init__(self, follow: Follow, depth: int, nodes: int, *, is_last: bool = True) -> None:
        self._follow = follow
        self._depth = depth
        self._left = nodes
        self._is_last = is_last
        self._lost = 0
        self._unnamed = 0
        self._open: set[int] = set()

    def build(
        self, node: Node, depth: int, *, part: bool = False, inherited: bool = False
    ) -> dict[str, Any]:
        """Return a schema; a ``part`` describes a value that another schema describes too.

        ``inherited``: it stands under the ``allOf`` of that other one.
        """
        self._left -= 1
        if self._left < 0 and not self._is_last:
            raise _TooLargeError
        if depth > self._depth or self._left < 0:
            return self._cut(node)
        unnamed = self._unnamed
        reference, beside = split_reference(node)
        if beside is not None:
            rest = {key: one for key, one in beside.value.items() if key not in _UNEVALUATED}
            both = (reference, Node(rest, beside.resolver))
            built = [self.build(one, depth + 1, part=True, inherited=inherited) for one in both]
            result, here = {"allOf": [one for one in built if one]}, beside
        else:
            try:
                here = self._follow(node)
            except ReferenceFault:
                return self._cut(node)
            if not isinstance(here.value, dict):
                return dict(_NOTHING) if here.value is False else {}
            result = self._own(here.value, depth)
            self._inner(here, depth, result, part=part)
            if here.value.keys() & _COMPOSING:
                parts = self._composed(here, depth, part=part, inherited=inherited)
                result |= _unless_empty("allOf", parts)
        result = _shorter(result)
        self._unevaluated(here, depth, unnamed, result, part=part)
        if not part and (names := _read_only(result)):
            self._lose(_ask_less(result, names))
        is_nullable = True in (here.value.get("nullable"), here.value.get("x-nullable"))
        return _nullable(result) if is_nullable else result

    def _cut(self, node: Node) -> dict[str, Any]:
        """Return what stands for a schema that is not kept: of a property whether it is read-only."""
        self._lose(True, names=True)
        try:
            value = self._follow(node).value
        except ReferenceFault:
            return {}
        return {"readOnly": True} if mapping(value).get("readOnly") is True else {}

    def _lose(self, is_lost: bool, *, names: bool = False) -> None:
        """Note that what is kept may admit more than the schema does, or lacks ``names`` of it."""
        self._lost += is_lost
        self._unnamed += is_lost and names

    def _own(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return what a schema says without schemas within it."""
        types, result = _types(value), _limits(value)
        self._lose(not types and "type" in value)
        self._lose(not value.keys() & {"pattern", "format"} <= result.keys())
        if (allowed := _allowed(value)) is not None:
            types, result["enum"] = _agreed(types, allowed)
        else:
            self._lose(not value.keys().isdisjoint({"enum", "const"}))
        if types:
            result["type"] = types[0] if len(types) == 1 else types
        if not types or "string" in types:
            result |= _bytes(value)
        if value.get("uniqueItems") is True:
            result["uniqueItems"] = True
        if needed := _texts(value.get("required")):
            result["required"] = needed
        named = mapping(value.get("dependentRequired")).items()
        result |= _unless_empty("dependentRequired", {str(key): _texts(one) for key, one in named})
        return result | _annotations(value) if depth > 0 else result  # the argument has its own

    def _inner(self, node: Node, depth: int, result: dict[str, Any], *, part: bool) -> None:
        """Add the schemas of what is in a list or an object."""
        value, resolver = node

        def within(one: Any) -> dict[str, Any]:
            unnamed = self._unnamed
            built = self.build(Node(one, resolver), depth + 1)
            self._unnamed = unnamed  # of another value
            return built

        for key in ("items", "propertyNames"):
            if key in value:
                result |= _unless_empty(key, within(value[key]))
        self._unnamed += part and "items" in value and "items" not in result
        result |= _unless_empty("prefixItems", list(map(within, listed(value.get("prefixItems")))))
        if "contains" in value:
            lost = self._lost
            result |= _contained(value, within(value["contains"]))
            if lost != self._lost and "maxContains" in result:  # more items would count
                del result["maxContains"]
        is_whole = True
        for key, limit in (("properties", NAME_LIMIT), ("patternProperties", _PATTERN_LIMIT)):
            entries = mapping(value.get(key))
            kept = {str(name): one for name, one in entries.items() if _is_text(str(name), limit)}
            is_whole = is_whole and len(kept) == len(entries)
            result |= _unless_empty(key, {name: within(one) for name, one in kept.items()})
        self._lose(not is_whole, names=True)
        others = value.get("additionalProperties")
        if isinstance(others, dict) or others is True:
            result["additionalProperties"] = within(others) if others not in (True, {}) else True
        elif others is False and is_whole and not part and not value.keys() & _COMPOSED:
            # Beside parts it would forbid what those describe, which hardly a document means.
            result["additionalProperties"] = False
        else:
            self._lose(others is False)

    def _unevaluated(
        self, node: Node, depth: int, unnamed: int, result: dict[str, Any], *, part: bool
    ) -> None:
        """Keep what a schema says of what no part of it names, if all parts are kept."""
        for key in _UNEVALUATED:
            told = node.value.get(key, True)
            if told is not False and not isinstance(told, dict):
                continue
            if key == "unevaluatedItems" and "items" in node.value:  # it describes all of them
                continue
            if part or unnamed != self._unnamed:  # a part would forbid what the others describe
                self._lose(True)
            else:
                others = self.build(Node(told, node.resolver), depth + 1) if told else told
                result |= {key: others} if others != {} else {}

    def _composed(
        self, node: Node, depth: int, *, part: bool, inherited: bool
    ) -> list[dict[str, Any]]:
        """Return the parts of a schema that describe the same value."""
        value, resolver = node
        parts: list[dict[str, Any]] = [dict(_NOTHING)] if value.get("not") == {} else []
        beside = part or "allOf" in value or "properties" in value
        is_told = "discriminator" in value  # which variant is meant, whatever else fits

        def built(one: Any) -> dict[str, Any]:
            return self.build(Node(one, resolver), depth + 1, part=True)

        self._lose(id(value) in self._open, names=True)
        if id(value) not in self._open:
            self._open.add(id(value))
            for key in _CHOICES:
                lost = self._lost
                each = variants(node, key, inherited=inherited)
                chosen = [self.build(one, depth + 1, part=beside) for one in each]
                if chosen and all(chosen):  # one that admits anything makes all of them do
                    parts.append({"anyOf" if is_told or lost != self._lost else key: chosen})
                self._lose(not all(chosen), names=True)
            self._open.discard(id(value))
        for one, inherits in all_of(node):
            parts.append(self.build(one, depth + 1, part=True, inherited=inherited or inherits))
        for name, one in mapping(value.get("dependentSchemas")).items():
            parts.append(_unless_empty("dependentSchemas", _unless_empty(str(name), built(one))))
        # A negation or a condition without a part of it would hold too often.
        for keys in (("not",), ("if", "then", "else")):
            if isinstance(value.get(keys[0]), dict) and value[keys[0]]:
                lost = self._lost
                whole = {key: built(value[key]) for key in keys if key in value}
                parts.append(whole if lost == self._lost and whole != {"not": {}} else {})
                self._lose(lost != self._lost, names=keys[0] == "if")
        return [one for one in parts if one]


def _read_only(schema: Mapping[str, Any]) -> set[str]:
    """Return the read-only properties of an object, in all parts of its schema."""
    found = {
        name
        for name, one in schema.get("properties", {}).items()
        if any(inner.get("readOnly") for inner in (one, *one.get("allOf", ())))
    }
    for key in ("allOf", *_CHOICES):
        for part in schema.get(key, ()):
            found |= _read_only(part)
    return found


def _ask_less(schema: dict[str, Any], names: set[str]) -> bool:
    """Demand properties in no part of a schema any more; return whether one did."""
    needed = schema.pop("required", [])
    schema |= _unless_empty("required", [name for name in needed if name not in names])
    asked = len(schema.get("required", [])) < len(needed)
    for key in ("allOf", *_CHOICES):
        changed = [_ask_less(part, names) for part in schema.get(key, ())]
        asked |= any(changed)
        if key == "oneOf" and any(changed):  # variants may have differed in that alone
            schema["anyOf"] = schema.pop("oneOf")
    for key in ("if", "then", "else"):
        asked |= key in schema and _ask_less(schema[key], names)
    return asked


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
    whole = all(clean(one, NAME_LIMIT) == one for one in (spelled(value) for value in values))
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
    meant = [_meant(one, types) for one in allowed if one is not None or "null" in types]
    return (types, meant) if meant and all(_is_of(one, types) for one in meant) else ([], allowed)


def _meant(value: Any, types: list[str]) -> Any:
    if _is_of(value, types):
        return value
    if "boolean" in types and value in ("true", "false"):
        return value == "true"
    if "string" in types and not isinstance(value, dict | list):
        return spelled(value)
    number = numerals.number(value) if isinstance(value, str) else None
    return value if number is None else number


def _is_of(value: Any, types: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer" in types or "number" in types
    kinds: dict[type, str] = {str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "number") in types


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that admits null beside what it admits."""
    if "type" in schema and not schema.keys() & {"enum", "allOf", "anyOf", "not", "if"}:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema | {"type": list(dict.fromkeys([*types, "null"]))}
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _shorter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with those parts of its ``allOf`` in it that say the same there."""
    if "allOf" not in schema:
        return schema
    rest = {key: one for key, one in schema.items() if key != "allOf"}
    parts: list[dict[str, Any]] = []
    for part in schema["allOf"]:
        if (joined := _joined(rest, part)) is None:
            parts.append(part)
        else:
            rest = joined
    if not parts:
        return rest
    apart = rest.keys() & parts[0].keys() or rest.keys() | parts[0].keys() >= {"enum", "type"}
    if len(parts) == 1 and not (rest and apart):
        return rest | parts[0]
    return rest | {"allOf": parts}


def _joined(schema: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema of objects with the properties of a part in it, None where that differs."""
    described, more = schema.get("properties", {}), part.get("properties", {})
    if part.keys() - _OBJECT or schema.keys() & {"additionalProperties", "enum"}:
        return None
    if any(one.get("type", "object") != "object" for one in (schema, part)):
        return None
    if any(described[name] != more[name] for name in described.keys() & more.keys()):
        return None
    needed = [*schema.get("required", ()), *part.get("required", ())]
    return {
        **part,
        **schema,
        **_unless_empty("properties", {**described, **more}),
        **_unless_empty("required", list(dict.fromkeys(needed))),
    }


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
    if _is_text(value.get("pattern"), _PATTERN_LIMIT):
        found["pattern"] = value["pattern"]
    form = value.get("format")
    if form and _is_text(form, _TEXT_LIMIT):
        found["format"] = form
    return found


def _contained(value: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return how many items of a list fulfil a schema; at least one where nothing else is said."""
    counts = {key: int(value[key]) for key in _CONTAINED if _is_count(value.get(key))}
    return {"contains": schema} | counts


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


def _is_text(value: Any, limit: int) -> bool:
    return isinstance(value, str) and clean(value, limit) == value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not _endless(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and int(value) == value


def _texts(value: Any) -> list[str]:
    """Return the clean names of a list, each once."""
    return list(dict.fromkeys(one for one in listed(value) if _is_text(one, NAME_LIMIT)))


def _unless_empty(key: str, schema: Any) -> dict[str, Any]:
    return {key: schema} if schema else {}

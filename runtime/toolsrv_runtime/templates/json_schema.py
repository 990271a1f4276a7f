"""Tool parameters as a schema that a grammar can hold: known keywords, every text bounded. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST_TEXT = 2000
"""Characters of a string for which a schema sets no limit, so that a loop ends."""
MOST_ITEMS = 100
"""Items of an array for which a schema sets no limit."""
LARGEST_INTEGER = 10**15
SMALLEST_STEP = 1e-9
"""Bounds the digits of a number, so that it ends."""
_DEEPEST = 16
_KEPT = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum",
         "exclusiveMinimum", "exclusiveMaximum")  # fmt: skip
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_FORMATS = frozenset({"date", "time", "date-time", "uuid", "ipv4", "ipv6"})


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON Schema that llguidance holds, bounded; no type is an object.

    Unknown keywords, patterns and references that lead nowhere are dropped: arguments are
    validated again when a call is made. Properties stay in their order; others are excluded.
    """
    root = _Root(schema)
    if schema.get("type", "object") != "object" or "anyOf" in schema or "$ref" in schema:
        return _cleaned(schema, root, 0)
    return _object(schema, root, 0)


class _Root:
    """Where ``$ref`` leads."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def find(self, reference: Any) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return {}
        found: Any = self._schema
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}


def _cleaned(schema: Any, root: _Root, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST_TEXT}
    if "$ref" in schema:
        return _cleaned(root.find(schema["$ref"]), root, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return {"enum": choices}
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return {"anyOf": [_cleaned(one, root, depth + 1) for one in options]}
    merged = schema.get("allOf")
    if isinstance(merged, list) and len(merged) == 1:
        return _cleaned(merged[0], root, depth + 1)
    kinds = schema.get("type")
    wanted = [one for one in (kinds if isinstance(kinds, list) else [kinds]) if one in _TYPES]
    if not wanted and "properties" in schema:
        wanted = ["object"]
    if len(wanted) > 1:
        return {"anyOf": [_typed(one, schema, root, depth) for one in wanted]}
    return _typed(wanted[0] if wanted else "", schema, root, depth)


def _typed(kind: str, schema: Mapping[str, Any], root: _Root, depth: int) -> dict[str, Any]:
    kept = {key: schema[key] for key in _KEPT if _is_number(schema.get(key))}
    match kind:
        case "string":
            if schema.get("format") in _FORMATS:
                return {"type": "string", "format": schema["format"]}
            return {"type": "string", **_limits(kept, "minLength", "maxLength", LONGEST_TEXT)}
        case "integer" | "number":
            digits = {"multipleOf": SMALLEST_STEP} if kind == "number" else {}
            return {"type": kind, **_range(kept), **digits}
        case "array":
            items = _cleaned(schema.get("items", {}), root, depth + 1)
            return {
                "type": "array",
                "items": items,
                **_limits(kept, "minItems", "maxItems", MOST_ITEMS),
            }
        case "object":
            return _object(schema, root, depth)
        case "boolean" | "null":
            return {"type": kind}
    return _cleaned(None, root, depth)


def _object(schema: Mapping[str, Any], root: _Root, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    given = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    open_ended = not given and depth > 0 and schema.get("additionalProperties", True) is not False
    return {
        "type": "object",
        "properties": {str(name): _cleaned(one, root, depth + 1) for name, one in given.items()},
        "required": [one for one in required if one in given] if isinstance(required, list) else [],
        "additionalProperties": _cleaned(None, root, depth) if open_ended else False,
    }


def _limits(kept: Mapping[str, Any], least: str, most: str, limit: int) -> dict[str, int]:
    low = max(0, int(kept.get(least, 0)))
    high = int(kept.get(most, max(limit, low)))
    return {least: low, most: max(high, low)} if low else {most: max(high, 0)}


def _range(kept: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {
        key: kept[key]
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        if key in kept
    }
    if not {"minimum", "exclusiveMinimum"} & set(bounds):
        bounds["minimum"] = -LARGEST_INTEGER
    if not {"maximum", "exclusiveMaximum"} & set(bounds):
        bounds["maximum"] = LARGEST_INTEGER
    low = bounds.get("minimum", bounds.get("exclusiveMinimum", 0))
    high = bounds.get("maximum", bounds.get("exclusiveMaximum", 0))
    return bounds if low <= high else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Object schemas without given values: calls that must not be made again. Pure.

An object differs from an excluded one in a first property: those before it are equal, those after
it are free. Each property gives one schema of that form, and their union is the complement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_runtime.templates.json_schema import LONGEST_TEXT

MOST_VARIANTS = 48
"""Schemas of one tool; exclusions that would need more are left to the caller's own check."""
_COMPARED = 60


def without(schema: dict[str, Any], excluded: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas whose union is ``schema`` (of ``grammar_schema``) without the objects.

    Empty where nothing else fulfils it. Values that no schema can exclude (arrays, objects) count
    as different.
    """
    variants = [schema]
    for one in excluded:
        rest = [other for variant in variants for other in _without(variant, one)]
        if len(rest) > MOST_VARIANTS:
            break
        variants = rest
    return variants


def _without(schema: dict[str, Any], value: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties: dict[str, Any] = schema["properties"]
    required = set(schema["required"])
    if not set(value) <= set(properties) or not required <= set(value):
        return [schema]
    names = list(properties)
    found = []
    equal: dict[str, Any] = {}
    for index, name in enumerate(names):
        rest = {other: properties[other] for other in names[index + 1 :]}
        if name not in value:
            found.append(_object({**equal, name: properties[name]}, rest, required))
            continue
        other = _different(properties[name], value[name])
        if other is not None:
            found.append(_object({**equal, name: other}, rest, required))
        if name not in required:
            found.append(_object(equal, rest, required))
        equal[name] = {"const": value[name]}
    return found


def _object(fixed: dict[str, Any], rest: dict[str, Any], required: set[str]) -> dict[str, Any]:
    properties = {**fixed, **rest}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name in fixed or name in required],
        "additionalProperties": False,
    }


def _different(schema: dict[str, Any], value: Any) -> dict[str, Any] | None:
    """Return the part of ``schema`` that is not ``value``, or None where nothing is left."""
    if "const" in schema:
        return None if _same(schema["const"], value) else schema
    if "enum" in schema:
        left = [one for one in schema["enum"] if not _same(one, value)]
        return {"enum": left} if left else None
    if "anyOf" in schema:
        options = [_different(one, value) for one in schema["anyOf"]]
        kept = [one for one in options if one is not None]
        return {"anyOf": kept} if kept else None
    match schema.get("type"):
        case "string" if isinstance(value, str):
            least = int(schema.get("minLength", 0))
            pattern = _other_text(value[:_COMPARED], schema.get("maxLength", LONGEST_TEXT), least)
            return {"type": "string", "pattern": f"^{pattern}$"}
        case "integer" | "number" if isinstance(value, int | float) and not isinstance(value, bool):
            step = 1 if schema["type"] == "integer" else 0
            below = (
                {**schema, "maximum": value - step}
                if step
                else {**schema, "exclusiveMaximum": value}
            )
            above = (
                {**schema, "minimum": value + step}
                if step
                else {**schema, "exclusiveMinimum": value}
            )
            if not step:
                below.pop("maximum", None)
                above.pop("minimum", None)
            kept = []
            if schema.get("minimum", schema.get("exclusiveMinimum", value - 1)) <= value - step:
                kept.append(below)
            if schema.get("maximum", schema.get("exclusiveMaximum", value + 1)) >= value + step:
                kept.append(above)
            return {"anyOf": kept} if kept else None
        case "boolean" if isinstance(value, bool):
            return {"enum": [not value]}
        case "null":
            return None if value is None else schema
    return schema


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and first == second


def _other_text(value: str, most: int, least: int) -> str:
    """Return the expression of texts of at most ``most`` characters that are not ``value``.

    They end earlier, leave it at some character, or go on after it.
    """

    def free(begun: int) -> str:
        return f"(?s:.{{{max(0, least - begun)},{max(0, most - begun)}}})"

    longer = f"(?s:.){free(len(value) + 1)}"
    expression = longer if most > len(value) else "[^\\s\\S]"
    for index in range(len(value) - 1, -1, -1):
        sign = re.escape(value[index])
        barred = f"[^{_in_class(value[index])}]{free(index + 1)}"
        ended = "|" if index >= least else ""
        expression = (
            f"({ended}{barred}|{sign}{expression})" if ended else f"({barred}|{sign}{expression})"
        )
    if not value:
        return longer
    return expression


def _in_class(sign: str) -> str:
    return f"\\{sign}" if sign in "\\]^-[&~" else sign

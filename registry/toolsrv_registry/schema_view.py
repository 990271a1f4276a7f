"""JSON Schemas of arguments as their readers see them: a model's tools, a person's lines.

A schema is self-contained, as an import makes it. What a reader has no use for (bounds, patterns,
dependencies) is left out here and enforced by a call all the same. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CHOICES = frozenset({"anyOf", "oneOf"})
"""Keywords of variants. An import never puts both in one schema."""
ENUM_LIMIT = 256
"""Allowed values that a model is shown; of more it is shown none."""
NODES_LIMIT = 400
LINES_LIMIT = 60
"""Lines of one argument's fields."""
_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_BESIDE = ("type", "properties", "required")
_LISTED = 12
_LINE = 160
_NAME = 60
_EXAMPLE_DEPTH = 6


def alternatives(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of which a value has to fit one, by ``anyOf`` or ``oneOf``, but null's."""
    parts = [one for key in CHOICES for one in schema.get(key, ()) if isinstance(one, dict)]
    return [one for one in parts if one.get("type") != "null"]


def kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the JSON types that a schema takes, in its order; none where it does not say."""
    found = tuple(map(str, _listed(schema.get("type")))) or _kinds_of(schema.get("enum", ()))
    for key in CHOICES:
        chosen = [kinds(one) for one in schema.get(key, ()) if isinstance(one, dict)]
        if chosen and all(chosen):
            found = narrower(found, tuple(dict.fromkeys(kind for one in chosen for kind in one)))
    for part in schema.get("allOf", ()):
        found = narrower(found, kinds(part) if isinstance(part, dict) else ())
    return found


def narrower(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types that two parts of a schema both take; ``integer`` is a ``number`` too."""
    if not some or not others:
        return some or others
    wide = {*others, *(("integer",) if "number" in others else ())}
    kept = [one for one in some if one in wide]
    kept += [one for one in others if one == "integer" and "number" in some]
    return tuple(dict.fromkeys(kept)) or some


def _kinds_of(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the types of allowed values whose type is not declared."""
    return tuple(dict.fromkeys(_KINDS.get(type(one), "null") for one in values))


def merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with what its ``allOf`` says in it; of two lists of variants the first stays."""
    result = {key: one for key, one in schema.items() if key != "allOf"}
    for part in schema.get("allOf", ()):
        inner = merged(part) if isinstance(part, dict) else {}
        for key in ("properties", "patternProperties"):
            both = dict(result.get(key, {}))
            for name, one in inner.get(key, {}).items():
                both[name] = merged({"allOf": [both[name], one]}) if name in both else one
            if both:
                result[key] = both
        if names := [*result.get("required", ()), *inner.get("required", ())]:
            result["required"] = list(dict.fromkeys(names))
        if "enum" in result and "enum" in inner:
            narrowed = [one for one in result["enum"] if one in inner["enum"]]
            result["enum"] = narrowed or result["enum"]
        if result.get("type") == "number" and inner.get("type") == "integer":
            result["type"] = "integer"
        if result.keys() & CHOICES:
            inner = {key: one for key, one in inner.items() if key not in CHOICES}
        result = inner | result
    return result


def model_schema(schema: Mapping[str, Any], *, texts: bool, optional: bool) -> dict[str, Any]:
    """Return what a model is shown of a schema: types, fields, allowed values and variants.

    Args:
        schema: a self-contained JSON Schema; of more than ``NODES_LIMIT`` schemas in it the first
            ones are shown.
        texts: with the fields' descriptions.
        optional: with the fields that need not be given.
    """
    return _ModelView(texts, optional).shown(schema)


class _ModelView:
    def __init__(self, texts: bool, optional: bool) -> None:
        self._texts = texts
        self._optional = optional
        self._left = NODES_LIMIT

    def shown(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        self._left -= 1
        if self._left < 0:
            return {}
        whole = merged(schema)
        found: dict[str, Any] = {}
        kinds = [one for one in _listed(whole.get("type")) if one != "null"]
        if kinds:
            found["type"] = kinds[0] if len(kinds) == 1 else kinds
        values = [one for one in whole.get("enum", ()) if one is not None]
        if 0 < len(values) <= ENUM_LIMIT:
            found["enum"] = values
        if self._texts and isinstance(whole.get("description"), str):
            found["description"] = whole["description"]
        variants = alternatives(whole)
        if len(variants) > 1:
            # A reader of variants looks at nothing beside them.
            beside = {key: whole[key] for key in _BESIDE if key in whole}
            parts = [self.shown({**beside, "allOf": [one]}) for one in variants]
            text = {"description": found["description"]} if "description" in found else {}
            return text | {"anyOf": parts}
        if variants:
            return self.shown(_but_variants(whole) | {"allOf": variants})
        if isinstance(whole.get("items"), dict):
            found["items"] = self.shown(whole["items"])
        return found | self._properties(whole)

    def _properties(self, whole: Mapping[str, Any]) -> dict[str, Any]:
        needed = list(whole.get("required", ()))
        shown = {
            name: self.shown(one)
            for name, one in whole.get("properties", {}).items()
            if (self._optional or name in needed)
            and isinstance(one, dict)
            and not one.get("readOnly")
            and (self._left > 0 or name in needed)
        }
        if not shown:
            return {}
        return {"properties": shown, "required": [name for name in needed if name in shown]}


def field_lines(schema: Mapping[str, Any], limit: int = LINES_LIMIT) -> tuple[str, ...]:
    """Return what stands within an argument: a line a field, deeper ones indented.

    A line has name, type, whether it is required, allowed values, default and description.
    """
    lines: list[str] = []
    for line in _lines(schema, 0):
        if len(lines) >= limit:
            lines.append("…")
            break
        lines.append(line.replace("\n", " "))
    return tuple(lines)


def example(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value to start from: what is needed, of variants the first, "…" for a text."""
    whole = merged(schema)
    for key in ("default", "const"):
        if whole.get(key) not in (None, ""):
            return whole[key]
    if whole.get("enum"):
        return whole["enum"][0]
    if depth < _EXAMPLE_DEPTH and (variants := alternatives(whole)):
        return example(_but_variants(whole) | {"allOf": [variants[0]]}, depth + 1)
    kind = next((one for one in _listed(whole.get("type")) if one != "null"), "")
    if kind == "object" or (not kind and "properties" in whole):
        fields = whole.get("properties", {})
        needed = [name for name in whole.get("required", ()) if isinstance(fields.get(name), dict)]
        deeper = needed if depth < _EXAMPLE_DEPTH else []
        return {name: example(fields[name], depth + 1) for name in deeper}
    if kind == "array":
        items = whole.get("items")
        if isinstance(items, dict) and whole.get("minItems") and depth < _EXAMPLE_DEPTH:
            return [example(items, depth + 1)]
        return []
    if kind in ("integer", "number"):
        return max(1, whole.get("minimum", 1))
    return True if kind == "boolean" else "…"


def without_texts(schema: Any) -> Any:
    """Return a schema without its descriptions and examples."""
    if isinstance(schema, list):
        return [without_texts(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, one in schema.items():
        if key in ("properties", "patternProperties") and isinstance(one, dict):
            found[key] = {name: without_texts(inner) for name, inner in one.items()}
        elif key not in ("description", "examples", "title"):
            found[key] = one if key in ("enum", "const", "default") else without_texts(one)
    return found


def _lines(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    whole = merged(schema)
    indent = "  " * depth
    needed = whole.get("required", ())
    for name, one in whole.get("properties", {}).items():
        if isinstance(one, dict) and not one.get("readOnly"):
            yield f"{indent}{_field(str(name), one, is_needed=name in needed)}"[:_LINE]
            yield from _lines(one, depth + 1)
    items = whole.get("items")
    if isinstance(items, dict):
        yield from _headed(f"{indent}each item:", items, depth + 1)
    others = whole.get("additionalProperties")
    if isinstance(others, dict) and others:
        yield f"{indent}{_field('any other name', others, is_needed=False)}"[:_LINE]
        yield from _lines(others, depth + 1)
    variants = alternatives(whole)
    if len(variants) == 1:
        yield from _lines(variants[0], depth)
    elif any(next(_lines(one, 0), None) for one in variants):
        for number, one in enumerate(variants, start=1):
            inner = list(_lines(one, depth + 1))
            head = f"{'either' if number == 1 else 'or'} {', '.join(_summary(merged(one)))}"
            yield f"{indent}{head}{':' if inner else ''}"[:_LINE]
            yield from inner


def _headed(head: str, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a schema under a head; none where there are none."""
    for number, line in enumerate(_lines(schema, depth)):
        if number == 0:
            yield head
        yield line


def _field(name: str, schema: Mapping[str, Any], *, is_needed: bool) -> str:
    whole = merged(schema)
    kind, *more = _summary(whole)
    told = [kind, *(["required"] if is_needed else ()), *more]
    about = whole.get("description")
    text = f": {about}" if isinstance(about, str) and about else ""
    return f"{name[:_NAME]} ({', '.join(told)}){text}"


def _summary(whole: Mapping[str, Any]) -> list[str]:
    """Return the types of a schema, and what else a line says of it."""
    told = [_kind(whole)]
    items = whole.get("items")
    for lead, one in (("", whole), ("each ", merged(items) if isinstance(items, dict) else {})):
        if values := one.get("enum", ()):
            more = f", … ({len(values)} in all)" if len(values) > _LISTED else ""
            listed = ", ".join(_spelled(value) for value in values[:_LISTED])
            told.append(f"{lead}one of {listed}{more}")
    if "default" in whole:
        told.append(f"default {_spelled(whole['default'])}")
    if isinstance(form := whole.get("format"), str):
        told.append(form)
    return told


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the types of a schema in words."""
    kinds = _listed(schema.get("type"))
    if not kinds:
        kinds = [kind for one in alternatives(schema) for kind in _kind(merged(one)).split(" or ")]
    if not kinds and "properties" in schema:
        kinds = ["object"]
    if not kinds and "enum" in schema:
        return "value"
    if kinds == ["array"] and isinstance(schema.get("items"), dict):
        return f"array of {_kind(merged(schema['items']))}"
    return " or ".join(dict.fromkeys(map(str, kinds))) or "any"


def _but_variants(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in schema.items() if key not in CHOICES}


def _listed(kinds: Any) -> list[Any]:
    return kinds if isinstance(kinds, list) else [] if kinds is None else [kinds]


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

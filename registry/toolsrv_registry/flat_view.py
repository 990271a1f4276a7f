"""The flat view of an argument's JSON Schema: ToolBench's type, description, default and values.

Derived whenever an argument with a schema is read, and stored nowhere beside it. A schema is
self-contained, as an import makes it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolsrv_registry.schema_view import CHOICES, alternatives, kinds, merged

FLAT_FIELDS = ("type", "description", "default", "enum", "example")
"""Fields of a parameter that its schema implies."""
ANNOTATIONS = ("description", "default", "examples", "deprecated")
"""Keywords of an argument's schema that no value is held to."""
_TYPES = {
    "string": "STRING",
    "integer": "NUMBER",
    "number": "NUMBER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
_FORMATS = {
    "date": "DATE (YYYY-MM-DD)",
    "time": "TIME (24-hour HH:MM)",
    "binary": "BINARY",
    "byte": "BINARY",
}
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")
_BOUND_LIMIT = 80
_FORMAT_LIMIT = 40
_SKETCH_LIMIT = 12
_VALUES_LIMIT = 50
_DEPRECATED = "Deprecated."
_HEADS = ("Fields: ", "List of objects with: ")


def flat_view(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``FLAT_FIELDS`` that a schema implies."""
    whole = _collapsed(schema)
    values = [spelled(one) for one in _allowed(whole) if one is not None]
    default = schema.get("default")
    return {
        "type": _type(whole),
        "description": " ".join(filter(None, [_text(schema), *_details(whole, schema)])),
        "default": "" if default is None else default,
        "enum": tuple(dict.fromkeys(values)),
        "example": next(iter(schema.get("examples", ())), None),
    }


def with_annotations(schema: Mapping[str, Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the annotations it lacks, taken from flat fields that stood beside it.

    Earlier versions stored both: there a description ends with what the schema implies.
    """
    found = dict(schema)
    text = flat.get("description")
    if isinstance(text, str) and text and "description" not in schema:
        if text.endswith(_DEPRECATED) and "deprecated" not in schema:
            text, found["deprecated"] = text.removesuffix(_DEPRECATED).rstrip(), True
        implied = " ".join(_details(_collapsed(schema), {}))
        text = text.removesuffix(implied)
        if (head := next((one for one in _HEADS if one in implied), None)) is not None:
            text = text.partition(head)[0]  # its fields were told from more than was kept
        if text := text.rstrip():
            found = {"description": text} | found
    if "default" not in schema and flat.get("default") not in ("", None):
        found["default"] = flat["default"]
    if "examples" not in schema and flat.get("example") is not None:
        found["examples"] = [flat["example"]]
    return found


def spelled(value: Any) -> str:
    """Return a JSON value as a person would write it."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return str(value)


def _collapsed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its parts in it, and its variant where there is one beside null."""
    whole = merged(schema)
    while len(variants := alternatives(whole)) == 1:
        rest = {key: one for key, one in whole.items() if key not in CHOICES}
        whole = merged(rest | {"allOf": variants})
    return whole


def _type(whole: Mapping[str, Any]) -> str:
    types = [one for one in kinds(whole) if one != "null"]
    if not types:
        types = ["object"] if whole.get("properties") else ["array"] if "items" in whole else []
    if "string" not in types:
        return _TYPES.get(types[0], "STRING") if types else "STRING"
    if _allowed(whole):
        return "ENUM"
    if len(types) > 1:
        return "STRING"
    if whole.get("contentEncoding") in ("base64", "base64url"):
        return "BINARY"
    form = whole.get("format")
    return _FORMATS.get(form, "STRING") if isinstance(form, str) else "STRING"


def _allowed(whole: Mapping[str, Any]) -> list[Any]:
    """Return the allowed values, none where any variant admits others."""
    if "enum" in whole:
        return list(whole["enum"])
    listed = [_allowed(_collapsed(one)) for one in alternatives(whole)]
    return [value for one in listed for value in one] if all(listed) else []


def _items(whole: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of a list's items, of its variants' too; None where there is none."""
    every = [whole, *map(_collapsed, alternatives(whole))]
    found = [one["items"] for one in every if isinstance(one.get("items"), dict)]
    return None if not found else found[0] if len(found) == 1 else {"anyOf": found}


def _text(schema: Mapping[str, Any]) -> str:
    text = schema.get("description")
    return text if isinstance(text, str) else ""


def _details(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a description goes on with: items' values, bounds, fields, deprecation."""
    items = _items(whole)
    if items is not None and not _allowed(whole):
        values = [spelled(one) for one in _allowed(_collapsed(items)) if one is not None]
        if values:
            yield f"Each one of: {', '.join(values[:_VALUES_LIMIT])}."
    yield from filter(None, [_bounds(whole), _sketch(whole, items)])
    if schema.get("deprecated") is True:
        yield _DEPRECATED


def _bounds(whole: Mapping[str, Any]) -> str:
    found = [
        f"{key}: {spelled(whole[key])[:_BOUND_LIMIT]}"
        for key in _BOUNDS
        if isinstance(whole.get(key), int | float | str)
    ]
    form = whole.get("format")
    if isinstance(form, str) and form not in _FORMATS:
        found.insert(0, f"format: {form[:_FORMAT_LIMIT]}")
    return f"({', '.join(found)})" if found else ""


def _sketch(whole: Mapping[str, Any], items: Mapping[str, Any] | None) -> str:
    """Return the fields of an object, or of a list's objects, in a line."""
    head, inner = "Fields", whole
    if items is not None:
        head, inner = "List of objects with", _collapsed(items)
    fields = dict(_fields(inner))
    if not fields:
        kind = _kind(inner) if items is not None else ""
        return f"List of {kind}s." if kind else ""
    names = [
        f"{name} ({kind})" if (kind := _kind(one)) else name
        for name, one in list(fields.items())[:_SKETCH_LIMIT]
    ]
    return f"{head}: {', '.join(names)}{', …' if len(fields) > _SKETCH_LIMIT else ''}."


def _fields(whole: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for one in (whole, *map(_collapsed, alternatives(whole))):
        yield from one.get("properties", {}).items()


def _kind(schema: Any) -> str:
    whole = _collapsed(schema) if isinstance(schema, dict) else {}
    types = [one for one in kinds(whole) if one in _TYPES]
    if not types:
        return "object" if whole.get("properties") else "array" if "items" in whole else ""
    return "string" if "string" in types else types[0]

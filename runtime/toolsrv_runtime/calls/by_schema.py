"""The part of a response that a schema of ToolBench names (paper, A.2; spec: formats 7).

A schema mirrors what is worth keeping: keys with ``"str"``, ``"int"`` …, nested objects, lists as
a list of one object. Pure; a response is never changed. Where the reference crashes, what the
schema says nothing of is left out. ``True``, which ToolBench's schemas never hold and those of
OpenAPI documents may, keeps whatever stands there.
"""

from __future__ import annotations

from typing import Any

_DEPTH = 64
"""Levels that a schema is followed down; what lies deeper is kept as it is."""


def by_schema(response: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the response without the keys that the schema does not name.

    Under a text a key counts as named when the text contains it, as in the reference.
    """
    return _kept(response, schema, 0)


def _kept(value: dict[str, Any], schema: Any, depth: int) -> dict[str, Any]:
    if depth >= _DEPTH or schema is True:
        return value
    return {
        key: _below(inner, schema[key] if isinstance(schema, dict) else None, depth + 1)
        for key, inner in value.items()
        if _names(schema, key)
    }


def _below(value: Any, schema: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return _kept(value, schema, depth)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        one = _of_items(schema)
        return [_kept(item, one, depth) if isinstance(item, dict) else item for item in value]
    return value


def _of_items(schema: Any) -> Any:
    """Return the schema of a list's items: the first; of a text its first letter."""
    if isinstance(schema, list | str):
        return schema[0] if schema else None
    return schema


def _names(schema: Any, key: str) -> bool:
    return isinstance(schema, dict | list | str) and key in schema

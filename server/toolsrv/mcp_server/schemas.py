"""Published schemas in the form that clients pass on whole.

Some clients drop defaults and limits, so the descriptions say them too; some show a union with
null as an unknown type, and a value is as well left out. Pure, on the schemas in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ERROR: dict[str, dict[str, Any]] = {
    "error": {"type": "string", "description": "Set when the tool failed: what is wrong."},
    "hint": {"type": "string", "description": "What to do next."},
    "ignored_arguments": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Arguments that this tool does not have.",
    },
}


def publish_input(schema: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Make a tool's arguments plain; ``settings`` are the defaults of those left to them."""
    _drop_titles(schema)
    for one in schema.get("properties", {}).values():
        _drop_null(one)
    for name, one in schema.get("properties", {}).items():
        default = one.get("default")
        if default is None and name not in schema.get("required", ()):
            default = settings.get(name)
        limits = _limits(one, default)
        one["description"] = " ".join(part for part in (one.get("description", ""), limits) if part)


def publish_output(schema: dict[str, Any]) -> None:
    """Make a tool's result plain, and let an error be one: clients hold errors to the schema too.

    An error has the fields ``error`` and ``hint`` and may have none of the others.
    """
    _drop_titles(schema)
    schema.pop("required", None)
    properties = schema.setdefault("properties", {})
    for name, one in _ERROR.items():
        properties.setdefault(name, dict(one))


def _limits(schema: Mapping[str, Any], default: Any) -> str:
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    said = []
    if low is not None and high is not None:
        above = "over " if "exclusiveMinimum" in schema else ""
        said.append(f"{above}{low:g} to {high}")
    if (longest := schema.get("maxLength")) is not None:
        said.append(f"at most {longest} characters")
    if (most := schema.get("maxItems")) is not None:
        said.append(f"{schema.get('minItems', 0)} to {most}")
    if default not in (None, "", {}):
        said.append(f"default {str(default).lower() if isinstance(default, bool) else default}")
    line = ", ".join(said)
    return f"{line[:1].upper()}{line[1:]}." if line else ""


def _drop_null(schema: dict[str, Any]) -> None:
    """Turn a union with null into the other type."""
    options = schema.get("anyOf", ())
    kept = [one for one in options if one != {"type": "null"}]
    if len(kept) == 1 and len(options) == 2:
        del schema["anyOf"]
        schema.update({key: value for key, value in kept[0].items() if key not in schema})
        if "default" in schema and schema["default"] is None:
            del schema["default"]


def _drop_titles(schema: dict[str, Any]) -> None:
    """Drop pydantic's titles: each repeats a name and costs a client's model tokens."""
    schema.pop("title", None)
    for table in ("properties", "$defs"):
        for one in schema.get(table, {}).values():
            _drop_titles(one)
    for one in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(one, dict):
            _drop_titles(one)

"""Published schemas in the form that clients pass on whole, and as short as they can be.

A client's model reads what goes in with every request. Some clients drop defaults and limits, so the
descriptions say them too; some know no ``$ref``, or show a union with null as an unknown type, and a
value is as well left out. Of what comes out only names and types are published: the results
themselves say what to do with them. Pure, on the schemas in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ERROR: dict[str, dict[str, Any]] = {
    "error": {"type": "string"},
    "hint": {"type": "string"},
    "ignored_arguments": {"type": "array"},
}
_LIMITS = ("minimum", "exclusiveMinimum", "maximum", "default")


def publish_input(schema: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Make a tool's arguments plain; ``settings`` are the defaults of those left to them."""
    definitions = schema.pop("$defs", {})
    _drop_titles(schema)
    for name, one in schema.get("properties", {}).items():
        _drop_null(one)
        if "$ref" in one:
            choices = definitions[one.pop("$ref").rpartition("/")[2]]
            publish_input(choices, settings)
            for choice in choices["properties"].values():
                for limit in _LIMITS:  # the description has them
                    choice.pop(limit, None)
            one.update({"type": "object", "properties": choices["properties"]})
            one["additionalProperties"] = False
        default = one.get("default")
        if default is None and name not in schema.get("required", ()):
            default = settings.get(name)
        limits = _limits(one, default)
        one["description"] = " ".join(part for part in (one.get("description", ""), limits) if part)


def publish_output(schema: dict[str, Any]) -> None:
    """Leave of a tool's result the names and types of its fields; an error may be one too.

    An error has the fields ``error`` and ``hint`` and may have none of the others.
    """
    properties = {
        name: {"type": types} for name, one in schema.get("properties", {}).items()
        if (types := _types(one)) is not None
    }  # fmt: skip
    schema.clear()
    schema.update({"type": "object", "properties": properties | _ERROR})


def _types(schema: Mapping[str, Any]) -> str | list[str] | None:
    """Return the JSON type of a field, or all that it may have; None where it may be anything."""
    if "type" in schema:
        return str(schema["type"])
    if "$ref" in schema:
        return "object"
    found = [_types(one) for one in schema.get("anyOf", ())]
    types = sorted({one for one in found if isinstance(one, str)})
    return types if types and len(found) == len(schema["anyOf"]) else None


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
    for one in schema.get("properties", {}).values():
        _drop_titles(one)
    for one in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(one, dict):
            _drop_titles(one)

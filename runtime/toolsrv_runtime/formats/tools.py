"""Functions as tools of a chat model: plain JSON schema, whole or without what describes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function

_SHORT = 80
"""Characters of a description in the shorter form."""


def function_tool(function: Function) -> dict[str, Any]:
    """Return a function as a tool: its parameters as plain JSON schema, examples in words."""
    shown = function.to_json()
    told = shown["parameters"]["properties"]
    schema = function.argument_schema()
    properties = {
        key: {**one, "description": _described(told.get(key, {}))}
        for key, one in schema["properties"].items()
    }
    return tool(shown["name"], clean(shown["description"], 2000), properties, schema["required"])


def forms(function: Function) -> tuple[dict[str, Any], ...]:
    """Return the tool whole, with the head of its description alone, without any text."""
    whole = function_tool(function)
    parameters = whole["parameters"]
    bare = {
        key: {name: value for name, value in one.items() if name != "description"}
        for key, one in parameters["properties"].items()
    }
    text = whole["description"]
    short = text if len(text) <= _SHORT else f"{text[:_SHORT]}..."
    return whole, *(tool(whole["name"], said, bare, parameters["required"]) for said in (short, ""))


def tool(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]
) -> dict[str, Any]:
    """Return a function object whose parameters are a closed schema."""
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
    }


def _described(told: Mapping[str, Any]) -> str:
    example = told.get("example_value", "")
    text = str(told.get("description", ""))
    return clean(f"{text} For example: {example}" if example != "" else text, 600).strip()

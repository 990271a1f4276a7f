"""APIs as tools of a chat model: JSON Schema in the forms that a prompt may have room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry import numerals
from toolsrv_registry.api import Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.schema_view import model_schema
from toolsrv_runtime.contract.chat import Tool

DESCRIPTION_LIMIT = 600
"""Characters of a description; more hardly helps a choice and every one is paid for."""

SHORT_LIMIT = 80


NO_FUNCTION_FITS = "no_function_fits"


def forms(function: Function) -> tuple[Tool, ...]:
    """Return the tool whole, with short descriptions, and without any.

    Fields within arguments have descriptions in the first form alone; in the last one there are
    only those that have to be given.
    """
    schema = function.argument_schema()
    properties = {
        key: _numeric(one, function.parameters.get(key))
        for key, one in schema["properties"].items()
    }
    text = _line(function.api.description or function.api.name)
    whole = {
        key: _with(one, describe(function.parameters.get(key))) for key, one in properties.items()
    }
    bare = {key: _nested(_with(one, ""), optional=True) for key, one in properties.items()}
    least = {key: _nested(one, optional=False) for key, one in bare.items()}
    short = text if len(text) <= SHORT_LIMIT else f"{text[:SHORT_LIMIT]}…"
    return (
        tool(function.name, text, whole, schema["required"]),
        tool(function.name, short, bare, schema["required"]),
        tool(function.name, "", least, schema["required"]),
    )


def describe(parameter: Parameter | None) -> str:
    """Return a parameter's description with its example, as one text."""
    if parameter is None:
        return ""
    text = _line(parameter.description)
    shown = parameter.example
    if shown is None and parameter.json_schema is None:
        shown = parameter.default  # ToolBench's defaults are examples
    if shown in (None, "") or parameter.enum:
        return text
    return f"{text} (e.g. {clean(str(shown), 60)})".strip()


def _line(text: str) -> str:
    """Return a description cleaned and cut, as one line: some templates write a function a line."""
    return " ".join(clean(text, DESCRIPTION_LIMIT).split())


def tool(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]
) -> Tool:
    """Return a tool whose parameters are a closed schema."""
    return Tool(
        name,
        description,
        {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
    )


def no_function_fits() -> Tool:
    """Return the tool that ends an attempt for which nothing offered is of use."""
    reason = {"type": "string", "maxLength": 200, "description": "What is missing, in a few words."}
    return tool(
        NO_FUNCTION_FITS,
        "Say that none of the other functions can help with the request.",
        {"reason": reason},
        ["reason"],
    )


def _numeric(schema: dict[str, Any], parameter: Parameter | None) -> dict[str, Any]:
    """Return the schema of ToolBench's NUMBER as a number, unless its example is a code.

    Providers declare ZIP codes as NUMBER too, and only an example shows it. Left the choice, small models
    write numbers as texts with units and signs.
    """
    if schema.get("type") != ["number", "string"] or parameter is None:
        return schema
    shown = str(parameter.default or parameter.example or "")
    is_code = shown != "" and numerals.number(shown) is None
    return schema if is_code else {"type": "number"}


def _nested(schema: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    """Return a list's or an object's schema without texts, without optional fields perhaps."""
    if not schema.keys() & {"items", "properties", "anyOf"}:
        return schema
    return model_schema(schema, texts=False, optional=optional)


def _with(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    rest = {key: value for key, value in schema.items() if key != "description"}
    return {**rest, "description": description} if description else rest

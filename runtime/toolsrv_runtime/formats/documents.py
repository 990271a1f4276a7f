"""A function's document in the forms that a prompt may have room for. Pure."""

from __future__ import annotations

import json
from typing import Any

from toolsrv_registry.functions import Function

_SHORT = 80
"""Characters of a description in the shorter form."""


def forms(function: Function) -> tuple[str, ...]:
    """Return the document as JSON: whole, with the head of its description, without any text."""
    whole = function.to_json()
    text = str(whole.get("description", ""))
    short = text if len(text) <= _SHORT else f"{text[:_SHORT]}..."
    bare = {"name": whole["name"], "parameters": _bare(whole["parameters"])}
    return tuple(
        json.dumps(one, ensure_ascii=False) for one in (whole, {**bare, "description": short}, bare)
    )


def _bare(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions and examples; types and allowed values stay."""
    properties = {
        key: {name: value[name] for name in ("type", "enum") if name in value}
        for key, value in parameters["properties"].items()
    }
    return {**parameters, "properties": properties}

"""MirrorAPI's format: an API's document and a request in, an error and a response out (spec: 6.5).

Document and arguments stand as Python prints them, as its checkpoints were trained. Its system
sentences are not part of this program; ``INSTRUCTIONS`` says the same in words of our own. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter

INSTRUCTIONS = (
    "You stand in for an API server. The user shows the API's document and a request. Invent the "
    "response that this API would give to it: plausible, in keeping with the document and with the "
    "values of the request. Reply with one JSON object and nothing else, with two keys: error, "
    "empty where the request succeeds, and response, the body."
)
TEMPERATURE = 0.1
MAX_TOKENS = 2048
SEED = 42
"""How the reference samples."""

_HIDDEN = "toolbench_key"
_TOLD = re.compile(r'"error":\s*"([^"]*)",\s*"response":\s*"(.*)', re.DOTALL)
_REASONED = re.compile(
    r'"mechanism_of_the_api"\s*:\s*".*?",\s*"error"\s*:\s*"(.*?)",\s*"response"\s*:\s*"(.*)',
    re.DOTALL,
)


def document(api: Api, *, normalised: bool = False) -> dict[str, Any]:
    """Return an API as MirrorAPI reads it; ``normalised`` gives its name as MirrorAPI-Cache does."""
    return {
        "api_name": api.id.rpartition("/")[2] if normalised else api.name,
        "api_description": api.description,
        "required_parameters": [_parameter(one) for one in api.required],
        "optional_parameters": [_parameter(one) for one in api.optional],
        "tool_description": api.tool_description,
        "tool_name": api.tool,
        "tool_category": api.category,
    }


def user_message(doc: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what MirrorAPI is asked."""
    request = {key: value for key, value in arguments.items() if key != _HIDDEN}
    return f"API doc:\n{dict(doc)}\n\nRequest:\n{request}"


def parse(text: str) -> tuple[Any, Any] | None:
    """Return the error and the response that a reply holds, None where it holds neither.

    A broken reply is read as far as it goes: the error up to a quote, the response to the end.
    """
    try:
        value = wellformed.loads(text)
    except (ValueError, RecursionError):
        found = (_REASONED if "mechanism_of_the_api" in text else _TOLD).search(text)
        return None if found is None else (found[1], found[2])
    if not isinstance(value, dict) or "error" not in value or "response" not in value:
        return None
    return value["error"], value["response"]


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "type": one.type,
        "description": one.description,
        "default": one.default,
    }

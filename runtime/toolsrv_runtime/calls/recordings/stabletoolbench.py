"""StableToolBench's cache: where a reply lies in it, and whether anybody ever really gave it.

The cache holds real and simulated replies and does not say which is which (spec: formats 6.4,
vectors ``stb_cache_location`` and ``stb_check_result``). Pure; the files are read elsewhere.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any, Literal

from toolsrv_registry.names import api_name, standardize, standardize_category
from toolsrv_runtime.calls import toolbench_codes as codes

ROOT = "tool_response_cache"
Judgement = Literal["real", "simulated", "unclear"]

NO_SIMULATION = "Failed to generate fake response"
_KEY_LIMIT = 100_000
_UNUSABLE = (
    "http", "connection", "rate limit", "time out", "timed out", "does not exist",
    "404", "504", "500", "internal error", "api doesn't exist", "service not found",
    "authoriz", "authenticat", "unsubscribe", "blocked", "401", "403", "credential",
    "disabled for your subscription", "access_denied", "parameter", "parse",
    "is not defined", "status_code=50", "status_code=429",
)  # fmt: skip
_ALWAYS_USED = "got an unexpected keyword argument"
_SERVICE_ERRORS = ("Function executing ", "Tool input parse error")
CUT = 2048
"""Characters at which ToolBench's service cuts a response."""


def cache_file(category: str, tool_name: str, api: str) -> str:
    """Return the file of an API's replies, for the names as a request gives them."""
    place = standardize_category(category)
    name = api_name(api).partition(f"_for_{tool_name}")[0]
    suffix = f"_for_{place}"
    tool = standardize(tool_name.removesuffix(suffix))
    return f"{ROOT}/{place}/{tool}{suffix}/{name}.json"


def cache_key(arguments: Mapping[str, Any]) -> str:
    """Return the key of a reply inside its file: order and types of the arguments count."""
    return str(dict(arguments))


def read_key(key: str) -> dict[str, Any] | None:
    """Return the arguments that a key was made of, None where it is no such key."""
    if len(key) > _KEY_LIMIT:
        return None
    try:
        found = ast.literal_eval(key)  # literals only
        json.dumps(found)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    named = isinstance(found, dict) and all(isinstance(name, str) for name in found)
    return found if named else None


def usable(reply: Mapping[str, Any]) -> bool:
    """Return whether the reference would have used, and kept, such a reply of a real service."""
    if reply.get("error") != "" or "response" not in reply:
        return False
    text = str(reply["response"])
    if _ALWAYS_USED in text:
        return True
    lower = text.lower()
    return bool(text) and not any(words in lower for words in _UNUSABLE)


def judge(reply: Mapping[str, Any]) -> Judgement:
    """Tell a reply of a real API from one that a model made up, as well as can be.

    The service always answers with text: Python's ``str`` of what the API returned, cut at a
    fixed length, or an error label of its own. A model answers in JSON, mostly with an object.
    Plain text is said by both, unless the reference would not have kept it from a service.
    """
    error, response = reply.get("error"), reply.get("response")
    if error in codes.LABELS or str(error).startswith(_SERVICE_ERRORS):
        return "real"
    if error == NO_SIMULATION or not isinstance(response, str):
        return "simulated"
    if len(response) == CUT or _only_python(response):
        return "real"
    return "unclear" if usable(reply) else "simulated"


def _only_python(text: str) -> bool:
    """Whether a text is a list or object as Python prints it, and no JSON."""
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _is_literal(text)
    return False


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True

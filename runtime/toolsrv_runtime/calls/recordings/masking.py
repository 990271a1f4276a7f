"""What never enters a recording: keys, tokens, passwords and Authorization headers.

Values that are known to be secrets are taken out wherever they stand; so are arguments whose name
says that they are a credential, and what looks like a bearer token. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from toolsrv_registry.names import standardize
from toolsrv_runtime.calls.body import without

MASK = "[key]"
_SHORTEST = 8
"""Characters from which an argument's value is searched for in what came back."""

_CREDENTIAL = re.compile(
    r"(^|_)((api|app|access|secret|private|rapidapi|toolbench|subscription)_?key"
    r"|(auth|access|refresh|session|bearer|bot|api|user)_?token"
    r"|(client_?)?secret|authorization|bearer|password|passwd|pwd|credentials?|cookie"
    r"|session_?id)($|_)"
)
_PERHAPS = re.compile(r"(^|_)(token|key|appid|app_id|auth|signature)($|_)")
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")
_HEADER = re.compile(r"\b(bearer|basic)\s+(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,}", re.IGNORECASE)


def masked_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return arguments without credentials, and the values that were taken out."""
    found: list[str] = []
    return {name: _masked(name, value, found) for name, value in arguments.items()}, tuple(found)


def masked(value: Any, secrets: Collection[str]) -> Any:
    """Return a JSON value without the secrets and without credentials of HTTP headers."""
    if isinstance(value, str):
        return _HEADER.sub(rf"\1 {MASK}", without(value, secrets))
    if isinstance(value, dict):
        return {masked(key, secrets): masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, secrets) for inner in value]
    if isinstance(value, (int, float)) and str(value) in secrets:
        return MASK
    return value


def _masked(name: str, value: Any, found: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, inner, found) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(name, inner, found) for inner in value]
    key, text = standardize(name), str(value)
    secret = _CREDENTIAL.search(key) or (_PERHAPS.search(key) and _RANDOM.fullmatch(text))
    if not secret or value in ("", None) or isinstance(value, bool):
        return value
    if len(text) >= _SHORTEST:
        found.append(text)
    return MASK

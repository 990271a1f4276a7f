"""What ToolBench's service would say of a call: its error label and its status code.

A view on our typed results (spec: formats 6.1 and 6.2, vectors ``process_error`` and
``env_step``). The label of a success is guessed from words in the response, as the reference does;
whether a call succeeded is never decided here.
"""

from __future__ import annotations

from typing import Any

from toolsrv_runtime.calls.result import CallResult, Kind
from toolsrv_runtime.search.tree import Code

NOT_WORKING = "API not working error..."
UNAUTHORIZED = "Unauthorized error..."
UNSUBSCRIBED = "Unsubscribed error..."
TOO_MANY = "Too many requests error..."
RATE_LIMIT = "Rate limit error..."
RATE_LIMIT_PER_MINUTE = "Rate limit per minute error..."
GATEWAY = "Gateway error..."
BLOCKED = "Blocked error..."
MESSAGE = "Message error..."
TIMEOUT = "Timeout error..."
LABELS = frozenset(
    {
        NOT_WORKING,
        UNAUTHORIZED,
        UNSUBSCRIBED,
        TOO_MANY,
        RATE_LIMIT,
        RATE_LIMIT_PER_MINUTE,
        GATEWAY,
        BLOCKED,
        MESSAGE,
        TIMEOUT,
    }
)
INVALID = "request invalid, data error. status_code={status}"

_WORDS: tuple[tuple[str, str], ...] = (
    ("API (not working)", NOT_WORKING),
    ("Unauthorized", UNAUTHORIZED),
    ("unauthorized", UNAUTHORIZED),
    ("You are not subscribed to this API.", UNSUBSCRIBED),
    ("Too many requests", TOO_MANY),
    ("You have exceeded", RATE_LIMIT),
    ("you are being rate limited", RATE_LIMIT),
    ("Access restricted. Check credits balance", RATE_LIMIT),
    ("Oops, an error in the gateway", GATEWAY),
    ("Blocked User", BLOCKED),
    ("error", MESSAGE),
)
_LABELS: dict[Kind, str] = {
    "unauthorized": UNAUTHORIZED,
    "not_subscribed": UNSUBSCRIBED,
    "rate_limited": TOO_MANY,
    "not_found": NOT_WORKING,
    "gone": NOT_WORKING,
    "timed_out": TIMEOUT,
    "blocked_by_policy": BLOCKED,
    "needs_consent": BLOCKED,
    "declined": BLOCKED,
}
_CODES = {
    TIMEOUT: Code.TIMEOUT,
    NOT_WORKING: Code.NOT_FOUND,
    UNAUTHORIZED: Code.UNAUTHORIZED,
    UNSUBSCRIBED: Code.NOT_SUBSCRIBED,
    TOO_MANY: Code.TOO_MANY,
    RATE_LIMIT_PER_MINUTE: Code.RATE_LIMITED,
    MESSAGE: Code.MESSAGE,
}


def label_of_words(returned: Any) -> str:
    """Return the label of what an API returned: the first known words in its ``str``, else ""."""
    text = str(returned)
    return next((label for words, label in _WORDS if words in text), "")


def label(result: CallResult) -> str:
    """Return the reference's error label of a call, ``""`` for a success without such words."""
    if result.kind in _LABELS:
        return _LABELS[result.kind]
    if found := label_of_words(result.response):
        return found
    return "" if result.ok else result.error


def code_of_label(text: str) -> Code:
    """Return the status code of an error label; 0 for one without a code."""
    return _CODES.get(text, Code.OK)


def code(result: CallResult) -> Code:
    """Return the reference's status code of a call."""
    if result.kind in {"network_error", "server_error", "too_large", "replay_miss"}:
        return Code.ERROR
    return code_of_label(label(result))

"""What one reply says about an API: the quality filter of the ToolLLM paper (A.1).

Pure and total: the same reply gives the same verdict, and nothing that a server can send raises.
Knows replies; does not know who asked, how often, or what becomes of a verdict.

Labels follow ToolBench's server where it has one (not subscribed, unauthorized, too many
requests, rate limit, not working); but a label counts only where the reply is an error, never
because a word stands somewhere in good data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from toolsrv_registry.health import Verdict

Failure = Literal["", "timed_out", "unreachable", "broken"]
"""Why there is no response: none in time, nobody there, or a connection that broke."""

SLOW_SECONDS = 10.0
"""Beyond this a reply counts as slow; ToolBench's client gives up after 15."""

_TEXT_LIMIT = 2_000
_MESSAGE_LIMIT = 500
_BAD_REQUESTS = frozenset({400, 406, 409, 411, 412, 413, 414, 415, 416, 417, 422, 425, 428, 431})
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}\?>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE
)

_SUBSCRIBE = re.compile(
    r"not subscribed|subscription (?:is )?required|upgrade your plan", re.IGNORECASE
)
_RATE = re.compile(
    r"too many requests|rate.?limit|you have exceeded|quota (?:is )?exceeded|exceeded your"
    r"|access restricted.{0,80}credits",
    re.IGNORECASE | re.DOTALL,
)
_UNAUTHORIZED = re.compile(
    r"unauthori[sz]ed|not authori[sz]ed|forbidden|access denied|blocked user"
    r"|(?:invalid|missing|wrong|incorrect|expired|no).{0,20}(?:api|access)?.?(?:key|token|credentials)\b"
    r"|authentication (?:is )?required",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\berrors?\b|\bnot (?:be )?found\b|does(?: not|n't) exists?|\bnot working\b|\bfail(?:ed|ure)\b"
    r"|\binvalid\b|\bexception\b|\btraceback\b|went wrong|\bunavailable\b|\bunreachable\b"
    r"|timed out|\bdeprecated\b|\bdiscontinued\b|no longer (?:available|supported)"
    r"|\bnot supported\b|\b(?:is|are) (?:required|missing)\b|\bmissing (?:required )?parameter",
    re.IGNORECASE,
)

_ERROR_KEYS = frozenset(
    {"error", "errors", "errormessage", "errormsg", "error_message", "error_description",
     "exception", "fault"}
)  # fmt: skip
_MESSAGE_KEYS = frozenset(
    {"message", "messages", "msg", "detail", "details", "reason", "title", "info", "description",
     "result", "response", "data", "body", "value"}
)  # fmt: skip
# Beside these an error is still nothing but an error.
_FRAME_KEYS = frozenset(
    {"status", "statuscode", "status_code", "code", "errorcode", "error_code", "errno", "success",
     "ok", "type", "timestamp", "time", "path", "url", "method", "request_id", "requestid", "id",
     "trace_id", "traceid", "instance", "documentation", "docs", "help", "version", "statustext"}
)  # fmt: skip
_FAILED = frozenset({"error", "fail", "failed", "failure", "ko", "false", "not_found", "notfound"})


def judge(
    status: int,
    latency: float,
    headers: Mapping[str, str],
    body: Any,
    *,
    failure: Failure = "",
    method: str = "GET",
    slow: float = SLOW_SECONDS,
) -> Verdict:
    """Return what a reply says about the API.

    Args:
        status: the HTTP status; 0 when no response came.
        latency: seconds from the request to the whole response.
        headers: of the response, names in lower case.
        body: the parsed JSON value, or the text where it is not JSON.
        failure: why no response came.
        method: of the request; a reply to HEAD has no body.
        slow: seconds beyond which a good reply counts as slow.
    """
    if failure:
        return Verdict(failure)
    if not 200 <= status < 300:
        return _of_status(status, body)
    if method.upper() != "HEAD":
        found = _of_body(headers.get("content-type", "").lower(), body)
        if found not in {Verdict.OK, Verdict.NOT_JSON}:
            return found
    else:
        found = Verdict.OK
    return Verdict.SLOW if latency > slow else found


def _of_status(status: int, body: Any) -> Verdict:
    if status < 100 or status > 599:
        return Verdict.BROKEN
    text = message(body)
    if status == 429 or (400 <= status < 500 and _RATE.search(text)):
        return Verdict.RATE_LIMITED
    if status == 402 or (status in {401, 403} and _SUBSCRIBE.search(text)):
        return Verdict.NOT_SUBSCRIBED
    if status in {401, 403, 407}:
        return Verdict.UNAUTHORIZED
    if status == 408:
        return Verdict.TIMED_OUT
    return Verdict.BAD_REQUEST if status in _BAD_REQUESTS else Verdict.HTTP_ERROR


def _of_body(kind: str, body: Any) -> Verdict:
    if isinstance(body, str):
        return _of_text(kind, body)
    if body in (None, [], {}):
        return Verdict.NO_DATA
    return _labelled(message(body)) if only_error(body) else Verdict.OK


def _of_text(kind: str, text: str) -> Verdict:
    head = text[:_TEXT_LIMIT].strip()
    if not head and not text.strip():
        return Verdict.EMPTY
    if _HTML.match(head) or ("html" in kind and head.startswith("<")):
        return Verdict.HTML
    if len(text) <= _MESSAGE_LIMIT and _complains(head):
        return _labelled(head)
    return Verdict.OK if "json" in kind and len(text) <= _MESSAGE_LIMIT else Verdict.NOT_JSON


def _labelled(text: str) -> Verdict:
    if _SUBSCRIBE.search(text):
        return Verdict.NOT_SUBSCRIBED
    if _RATE.search(text):
        return Verdict.RATE_LIMITED
    return Verdict.UNAUTHORIZED if _UNAUTHORIZED.search(text) else Verdict.ERROR_TEXT


def _complains(text: str) -> bool:
    return any(one.search(text) for one in (_WRONG, _SUBSCRIBE, _RATE, _UNAUTHORIZED))


def only_error(body: Any) -> bool:
    """Return whether a JSON value says nothing but that something failed.

    An object does when it names an error (a filled ``error`` key, ``success`` false, a failed
    ``status``, or a message that reads like one) and every other filled key only frames it.
    """
    if isinstance(body, list):
        return len(body) == 1 and isinstance(body[0], dict) and only_error(body[0])
    if not isinstance(body, dict) or not body:
        return False
    fields = {str(key).strip().lower(): value for key, value in body.items()}
    filled = {key: value for key, value in fields.items() if _filled(value)}
    said = (
        any(key in _ERROR_KEYS for key in filled)
        or fields.get("success", fields.get("ok")) is False
        or str(fields.get("status", "")).strip().lower() in _FAILED
        or _complains(message(body))
    )
    return said and all(_frames(key, value) for key, value in filled.items())


def _filled(value: Any) -> bool:
    return value not in (None, "", False, 0, [], {})


def _frames(key: str, value: Any) -> bool:
    if key in _ERROR_KEYS:
        return True
    if key in _MESSAGE_KEYS:  # text may be the message; structure under such a key is data
        return isinstance(value, str) and len(value) <= _MESSAGE_LIMIT
    return key in _FRAME_KEYS and not isinstance(value, list | dict)


def message(body: Any) -> str:
    """Return what a reply says in words: its text, or the texts under error and message keys."""
    if isinstance(body, str):
        return body[:_TEXT_LIMIT]
    if isinstance(body, list):
        body = body[0] if len(body) == 1 else None
    if not isinstance(body, dict):
        return ""
    parts: list[str] = []
    for key, value in body.items():
        name = str(key).strip().lower()
        if name in _ERROR_KEYS or name in _MESSAGE_KEYS:
            parts.extend(_texts(value, deep=2))
    return "; ".join(parts)[:_TEXT_LIMIT]


def _texts(value: Any, *, deep: int) -> list[str]:
    """Return the texts of a value, a few levels down and a few of each level."""
    if isinstance(value, str):
        return [value[:_MESSAGE_LIMIT]]
    if not deep:
        return []
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list):
        return []
    return [text for one in inner[:20] for text in _texts(one, deep=deep - 1)]

"""Replies of checked APIs: the backend port, calls through the call machinery, and the verdict.

A ``Backend`` says which APIs it can call and turns a call into an ``ApiReply``. ``judge`` is the
quality filter of the ToolLLM paper (A.1): pure and total, and nothing that a server sends makes it
raise. Labels follow ToolBench's server where it has one, and count only where the reply is an
error, never because of a word in good data. How often APIs are called is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import httpx

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry.api import Api
from toolsrv_registry.storage.health import HealthStatus
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.rate_limits import CallUsage
from toolsrv_runtime.calls.request import web_address
from toolsrv_runtime.errors import ArgumentError, PolicyError
from toolsrv_runtime.outcome import Source

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
) -> HealthStatus:
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
        return HealthStatus(failure)
    if not 200 <= status < 300:
        return _of_status(status, body)
    if method.upper() != "HEAD":
        found = _of_body(headers.get("content-type", "").lower(), body)
        if found not in {HealthStatus.OK, HealthStatus.NOT_JSON}:
            return found
    else:
        found = HealthStatus.OK
    return HealthStatus.SLOW if latency > slow else found


def _of_status(status: int, body: Any) -> HealthStatus:
    if status < 100 or status > 599:
        return HealthStatus.BROKEN
    text = error_message(body)
    if status == 429 or (400 <= status < 500 and _RATE.search(text)):
        return HealthStatus.RATE_LIMITED
    if status == 402 or (status in {401, 403} and _SUBSCRIBE.search(text)):
        return HealthStatus.NOT_SUBSCRIBED
    if status in {401, 403, 407}:
        return HealthStatus.UNAUTHORIZED
    if status == 408:
        return HealthStatus.TIMED_OUT
    return HealthStatus.BAD_REQUEST if status in _BAD_REQUESTS else HealthStatus.HTTP_ERROR


def _of_body(kind: str, body: Any) -> HealthStatus:
    if isinstance(body, str):
        return _of_text(kind, body)
    if body in (None, [], {}):
        return HealthStatus.NO_DATA
    return _labelled(error_message(body)) if only_error(body) else HealthStatus.OK


def _of_text(kind: str, text: str) -> HealthStatus:
    head = text[:_TEXT_LIMIT].strip()
    if not head and not text.strip():
        return HealthStatus.EMPTY
    if _HTML.match(head) or ("html" in kind and head.startswith("<")):
        return HealthStatus.HTML
    if len(text) <= _MESSAGE_LIMIT and _complains(head):
        return _labelled(head)
    return (
        HealthStatus.OK if "json" in kind and len(text) <= _MESSAGE_LIMIT else HealthStatus.NOT_JSON
    )


def _labelled(text: str) -> HealthStatus:
    if _SUBSCRIBE.search(text):
        return HealthStatus.NOT_SUBSCRIBED
    if _RATE.search(text):
        return HealthStatus.RATE_LIMITED
    return HealthStatus.UNAUTHORIZED if _UNAUTHORIZED.search(text) else HealthStatus.ERROR_TEXT


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
        or _complains(error_message(body))
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


def error_message(body: Any) -> str:
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


_KEPT_HEADERS = frozenset({"content-type", "retry-after"})
_HEADER_LIMIT = 200
_SECRET_LENGTH = 8


@dataclass(frozen=True, slots=True)
class ApiReply:
    """What came back: ``status`` 0 means no response and ``failure`` says why.

    ``body`` is the parsed JSON value or the text; ``headers`` holds the few that matter, names in
    lower case; ``error`` is the call machinery's own line about a failure.
    """

    status: int
    seconds: float
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    failure: Failure = ""
    error: str = ""
    source: Source = "live"
    reached: bool = True
    """Whether somebody was there: this tells a dead host from a dead network."""


class Backend(Protocol):
    """Answers calls."""

    def refuses(self, api: Api) -> str:
        """Return in a few words why the API cannot be called here, "" when it can."""

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> ApiReply:
        """Call the API.

        Raises:
            ArgumentError: an argument is missing or wrong.
            PolicyError: the call is not allowed.
        """

    async def aclose(self) -> None:
        """Let go of connections and files."""


@dataclass(slots=True)
class _Captured:
    """What the transport saw of the call that this task is making."""

    headers: dict[str, str] = field(default_factory=dict)
    connected: bool = False
    answered: bool = False
    failure: Failure = ""


_captured: ContextVar[_Captured | None] = ContextVar("toolsrv_check_heard", default=None)


class CapturingTransport(httpx.AsyncBaseTransport):
    """Hands everything to another transport and notes headers and failures for ``CallerBackend``."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request."""
        heard = _captured.get() or _Captured()

        async def trace(event: str, _: object) -> None:
            heard.connected = heard.connected or event == "connection.connect_tcp.complete"

        request.extensions = {**request.extensions, "trace": trace}
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            heard.failure = "unreachable"
            raise
        except httpx.TimeoutException:
            heard.failure = "timed_out"
            raise
        except httpx.TransportError:
            heard.failure = "broken"
            raise
        heard.answered = True
        for name, value in response.headers.items():
            if name.lower() in _KEPT_HEADERS:
                heard.headers[name.lower()] = value[:_HEADER_LIMIT]
        return response

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class CallerBackend:
    """Backend that makes calls: host -> its caller, over ``CapturingTransport``.

    ``timeout`` is the callers' in seconds. ``secrets`` are taken out of every reply that repeats
    them. ``elsewhere`` says why a host without a caller is not called, ``own`` whether a host and
    port are a person's own, which may be called over plain HTTP. ``paid`` are ids of APIs that cost
    money, which a check does not spend; ``usage`` counts the calls of a day, for the ``catalog`` of
    an API.
    """

    def __init__(
        self,
        callers: Mapping[str, Caller],
        *,
        policy: Policy,
        timeout: float,
        elsewhere: Callable[[str], str],
        secrets: tuple[str, ...] = (),
        own: Callable[[str, int], bool] = lambda _host, _port: False,
        paid: Collection[str] = (),
        usage: CallUsage | None = None,
        catalog: Callable[[Api], str] = lambda _: "",
    ) -> None:
        self._paid = paid
        self._catalog = catalog
        self._usage = usage
        self._callers = callers
        self._policy = policy
        self._timeout = timeout
        self._secrets = tuple(one for one in secrets if len(one) >= _SECRET_LENGTH)
        self._elsewhere = elsewhere
        self._own = own

    def refuses(self, api: Api) -> str:
        """Return why the API cannot be called here, "" when it can."""
        method = api.method.upper()
        if method not in self._policy.methods:
            return f"{method} may change something"
        if api.id in self._paid:
            return "a call costs money (PAID)"
        try:
            url = web_address(api.url)
        except httpx.InvalidURL:
            return "its address is no URL"
        if not url.host:
            return "it has no address"
        plain = url.scheme == "http" and self._own(url.host, url.port or 80)
        if url.scheme != "https" and not plain:
            return f"{url.scheme or 'its address'} is not https"
        return "" if url.host in self._callers else self._elsewhere(url.host)

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> ApiReply:
        """Call the API through the caller of its host."""
        await self._count(api)
        heard = _Captured()
        token = _captured.set(heard)
        try:
            result = await self._callers[host_of(api)].call(api, arguments)
        finally:
            _captured.reset(token)
        if result.kind == "bad_arguments" and result.refused:
            raise ArgumentError(result.error, hint=result.hint)
        if result.refused:
            raise PolicyError(result.error, hint=result.hint)
        return self._discreet(_reply(result, heard, self._timeout))

    async def _count(self, api: Api) -> None:
        """Count a call; raise PolicyError where its host has none left today."""
        host = host_of(api)
        if self._usage is None or host == OFFLINE_HOST:
            return
        if spent := await asyncio.to_thread(self._usage.take, host, self._catalog(api)):
            raise PolicyError(
                f"{host}: {spent.describe}", hint="go on then, or raise the setting calls_per_day"
            )

    async def aclose(self) -> None:
        """Close all callers."""
        if self._usage is not None:
            self._usage.close()
        for caller in {id(one): one for one in self._callers.values()}.values():
            await caller.aclose()

    def _discreet(self, reply: ApiReply) -> ApiReply:
        if not self._secrets:
            return reply
        body, error = json.dumps(reply.body), reply.error
        for secret in self._secrets:
            body = body.replace(json.dumps(secret)[1:-1], "[key]")
            error = error.replace(secret, "[key]")
        return replace(reply, body=json.loads(body), error=error)


def host_of(api: Api) -> str:
    """Return the host an API lives at, "" when its address names none."""
    try:
        return web_address(api.url).host
    except httpx.InvalidURL:
        return ""


def _reply(result: CallResult, heard: _Captured, timeout: float) -> ApiReply:
    failure: Failure = ""
    if result.status == 0:
        failure = heard.failure or "timed_out"
        if heard.answered and result.seconds < timeout:
            failure = "broken"  # the head came, and the body never ended
    return ApiReply(
        status=result.status,
        seconds=result.seconds,
        headers=heard.headers,
        body=result.response,
        failure=failure,
        error=result.error,
        source=result.source,
        reached=heard.connected or heard.answered,
    )

"""One HTTP exchange of a call: deadline, redirects, retries and size limits; failures are values.

Redirects are followed within the host only. Only idempotent calls are retried. Knows requests and
responses; does not know whether a call is allowed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls import response_body as bodies
from toolsrv_runtime.calls.rate_limits import (
    MCP_PREFIX,
    Cooldown,
    DailyCount,
    HostLimiter,
    retry_after_seconds,
)
from toolsrv_runtime.calls.request import web_address
from toolsrv_runtime.calls.response_body import Attachment
from toolsrv_runtime.calls.result import (
    ResultKind,
    Spool,
    Spooled,
    SpoolError,
    declared_size,
    kind_of_status,
    read_or_spool,
)

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "QUERY"})
"""Methods that may be sent twice (RFC 9110, 9.2.2)."""

_AGAIN: frozenset[ResultKind] = frozenset({"network_error", "rate_limited"})
_BUSY = frozenset({502, 503, 504})
_STATUSES = range(100, 1_000)
_KEPT_HEADERS = ("location", "content-location", "link", "etag", "retry-after", "x-total-count")
_HEADER_LIMIT = 2_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNSENT = (httpx.PoolTimeout, httpx.UnsupportedProtocol)
"""Errors of a request that nobody has seen, so that they say nothing of the host.

LocalProtocolError is none: over HTTP/2 it may be what the host sent.
"""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long and how much.

    ``seconds`` for the whole call, repeats included; ``connect_s`` and ``read_s`` for a connection
    and for each silence; ``size`` bytes of a body, on the wire and decompressed; ``retries``
    further tries after ``backoff_s`` seconds, twice as long each time. ``spool`` is where a larger
    body goes, None where none is kept; it may take longer than ``seconds`` as long as it arrives.
    """

    seconds: float = 20.0
    connect_s: float = 8.0
    read_s: float = 15.0
    size: int = 4_000_000
    retries: int = 0
    backoff_s: float = 0.5
    redirects: int = 5
    spool: Spool | None = None


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What is sent. ``secrets`` are in it, and are taken out of what comes back.

    ``login`` answers a challenge of the host (HTTP Digest). ``may_follow`` says of the target of a
    redirect whether a person's rules let it be called. ``catalog`` is the one that the call is made
    for; what is not ``counted`` is no call of the day, as a request for a token.
    """

    method: str
    url: httpx.URL
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = b""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    login: httpx.Auth | None = field(default=None, repr=False)
    may_follow: Callable[[httpx.URL], bool] = field(default=lambda _: True, repr=False)
    catalog: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back: ``status`` 0 means no response, and ``error`` says why.

    ``sent`` is False where nothing has left this machine; ``headers`` are those that lead on, by
    their names in lower case; ``files`` are what came as bytes, ``hint`` says what to do where the
    kind alone does not tell, ``note`` what to know of a call that went well. ``spooled`` is a body
    that was written to a file, and whoever gets it owns that.
    """

    kind: ResultKind
    status: int
    response: Any
    error: str
    retry_after: float | None = None
    sent: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Attachment, ...] = ()
    hint: str = ""
    note: str = ""
    spooled: Spooled | None = None


async def exchange(
    transport: httpx.AsyncBaseTransport,
    message: PreparedRequest,
    limits: CallLimits,
    hosts: HostLimiter | None = None,
) -> Exchange:
    """Send a message until it is answered, or the limits end.

    Raises:
        PolicyError: the host's address may not be called, or the call cannot be counted.
    """
    if hosts is None:
        return await _with_retries(transport, message, limits, None)
    with hosts.attempt(message.url.host) as rest:
        if rest is not None:
            return _cooldown_result(message.url.host, rest)
        return await _with_retries(transport, message, limits, hosts)


async def call_limited(
    call: Callable[[], Awaitable[Exchange]], host: str, hosts: HostLimiter | None, catalog: str = ""
) -> Exchange:
    """Make one call that is no HTTP exchange, within the limits of ``host``.

    Raises:
        PolicyError: as for ``exchange``, and whatever ``call`` raises.
    """
    if hosts is None:
        return await call()
    with hosts.attempt(host) as rest:
        if rest is not None:
            return _cooldown_result(host, rest)
        async with hosts.slot(host):
            if (spent := await hosts.count(f"{MCP_PREFIX}{host}", catalog)) is not None:
                return _quota_result(spent)
            got = await call()
        hosts.record_outcome(host, failed=got.kind in {"network_error", "timed_out"})
        return got


async def _with_retries(
    transport: httpx.AsyncBaseTransport,
    message: PreparedRequest,
    limits: CallLimits,
    hosts: HostLimiter | None,
) -> Exchange:
    end = time.monotonic() + limits.seconds
    host = message.url.host
    before: Exchange | None = None
    for attempt in range(limits.retries + 1):
        got = await _with_deadline(transport, message, limits, hosts, end)
        if before is not None and not got.sent and got.kind == "rate_limited":
            return before  # the day has no call left for another try
        before = got
        if hosts is not None and got.sent:
            hosts.record_outcome(
                host, failed=got.kind in {"network_error", "timed_out", "server_error"}
            )
        wait = limits.backoff_s * 2**attempt if got.retry_after is None else got.retry_after
        last = attempt == limits.retries or time.monotonic() + wait >= end
        if last or not _is_retryable(message, got) or (hosts is not None and hosts.cooldown(host)):
            break
        await asyncio.sleep(wait)
    if hosts is not None and got.kind == "rate_limited" and got.sent and got.retry_after:
        hosts.pause(host, got.retry_after)
    return got


def _is_retryable(message: PreparedRequest, got: Exchange) -> bool:
    again = got.sent and (got.kind in _AGAIN or got.status in _BUSY)
    return again and message.method in IDEMPOTENT


def _cooldown_result(host: str, rest: Cooldown) -> Exchange:
    if rest.asked:
        error = f"{host} asked to be left alone for {rest.seconds:.0f} more seconds"
        return Exchange("rate_limited", 0, None, error, retry_after=rest.seconds, sent=False)
    error = f"{host} keeps failing and is left alone for {rest.seconds:.0f} more seconds"
    if not rest.seconds:
        error = f"{host} keeps failing and is left alone while another call tries it"
    wait = rest.seconds or None
    return Exchange("network_error", 0, None, error, retry_after=wait, sent=False)


def _quota_result(spent: DailyCount) -> Exchange:
    """Return the end of a call that its host has no room for today."""
    error = (
        f"{spent.host} was called {spent.calls} times today, and the setting calls_per_day allows "
        f"{spent.limit}; it opens again at {spent.opens:%Y-%m-%d %H:%M} UTC"
    )
    wait = max((spent.opens - datetime.now(UTC)).total_seconds(), 0.0)
    hint = "call again then, or allow more: toolsrv config set calls_per_day"
    return Exchange("rate_limited", 0, None, error, wait, sent=False, hint=hint)


async def _with_deadline(
    transport: httpx.AsyncBaseTransport,
    message: PreparedRequest,
    limits: CallLimits,
    hosts: HostLimiter | None,
    end: float,
) -> Exchange:
    host, waits = message.url.host, hosts is not None
    try:
        async with asyncio.timeout(end - time.monotonic()) as timer:
            if hosts is None:
                return await _with_redirects(transport, message, limits, timer)
            async with hosts.slot(host):
                waits = False
                if message.counted and (spent := await hosts.count(host, message.catalog)):
                    return _quota_result(spent)
                return await _with_redirects(transport, message, limits, timer)
    except (TimeoutError, httpx.TimeoutException) as error:
        if hosts is not None and waits:
            what = f"its turn did not come within {limits.seconds:g} seconds"
            limit = f"the limit for {host} is {hosts.describe()}"
            return Exchange("timed_out", 0, None, f"{what}: {limit}", sent=False)
        what = f"no answer within {limits.seconds:g} seconds"
        if isinstance(error, httpx.ConnectTimeout):
            what = f"no connection within {limits.connect_s:g} seconds"
        elif isinstance(error, httpx.ReadTimeout):
            what = f"nothing came for {limits.read_s:g} seconds"
        return Exchange("timed_out", 0, None, what, sent=not isinstance(error, _UNSENT))
    except _ChallengeError as error:
        told = bodies.redact(f"its Digest challenge cannot be answered: {error}", message.secrets)
        return Exchange("unauthorized", 401, None, clean(told, 200))
    except bodies.EncodingError as error:
        return Exchange("network_error", 0, None, str(error))
    except (httpx.HTTPError, httpx.StreamError) as error:
        told = bodies.redact(f"{type(error).__name__}: {error}", message.secrets)
        sent = not isinstance(error, _UNSENT)
        return Exchange("network_error", 0, None, told[:200], sent=sent)


async def _with_redirects(
    transport: httpx.AsyncBaseTransport,
    message: PreparedRequest,
    limits: CallLimits,
    timer: asyncio.Timeout,
) -> Exchange:
    status = 0
    for _ in range(limits.redirects + 1):
        answer = await _send_once(transport, message, limits, timer)
        if isinstance(answer, Exchange):
            return answer
        status = answer.status_code
        safe = message.method in {"GET", "HEAD"}
        if not safe and status in (301, 302):  # clients differ: POST again, or GET
            return _unfollowed_redirect(answer, message)
        target = _redirect_target(message.url, answer.headers["location"])
        if target is None and status == 303 and not safe:
            return _unfollowed_redirect(answer, message)
        if target is None:
            where = bodies.redact(answer.headers["location"][:200], message.secrets)
            return Exchange(
                "blocked_by_policy",
                status,
                None,
                f"the API redirects to {where!r}, which is not at {message.url.host}",
            )
        if not message.may_follow(target):
            error = f"the API redirects to {target.scheme}://{target.netloc.decode()}, which your "
            return Exchange("blocked_by_policy", status, None, f"{error}settings do not allow")
        message = _redirected(message, target, status)
    return Exchange(
        "server_error",
        status,
        None,
        f"the API redirects more than {limits.redirects} times",
    )


def _redirected(message: PreparedRequest, target: httpx.URL, status: int) -> PreparedRequest:
    """Return the message that follows a redirect (RFC 9110, 15.4): after 303 a GET without body."""
    if status != 303 or message.method in {"GET", "HEAD"}:
        return replace(message, url=target)
    kept = {
        name: value
        for name, value in message.headers.items()
        if not name.lower().startswith("content-")
    }
    return replace(message, url=target, method="GET", headers=kept, content=b"")


def _unfollowed_redirect(answer: httpx.Response, message: PreparedRequest) -> Exchange:
    """Return the end of a call whose redirect is not followed, though it was carried out or may be."""
    where = bodies.redact(answer.headers["location"][:200], message.secrets)
    headers = _kept_headers(answer.headers, message.secrets)
    if answer.status_code == 303:
        return Exchange("ok", 303, f"done; the result is at {where}", "", headers=headers)
    error = f"the API redirects to {where!r}, and a {message.method} is not sent twice"
    return Exchange("blocked_by_policy", answer.status_code, None, error, headers=headers)


def _kept_headers(headers: httpx.Headers, secrets: tuple[str, ...]) -> dict[str, str]:
    """Return the headers that lead on from a response: to its parts, its result, its version."""
    return {
        name: clean(bodies.redact(headers[name][:_HEADER_LIMIT], secrets), _HEADER_LIMIT)
        for name in _KEPT_HEADERS
        if name in headers
    }


async def _send_once(
    transport: httpx.AsyncBaseTransport,
    message: PreparedRequest,
    limits: CallLimits,
    timer: asyncio.Timeout,
) -> Exchange | httpx.Response:
    """Send one request; return what came, or the response that redirects."""
    request = httpx.Request(
        message.method,
        message.url,
        headers={"Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "toolsrv"}
        | dict(message.headers),
        content=message.content or None,
        extensions={"timeout": _timeouts(limits)},
    )
    response = await _send_with_login(transport, request, message.login)
    try:
        if response.status_code not in _STATUSES:  # HTTP/2 lets any number pass
            error = f"the API answered with the status {response.status_code}, which is none"
            return Exchange("network_error", 0, None, error)
        if response.status_code in _REDIRECTS and "location" in response.headers:
            return response
        told = await _read_response(response, message, limits, timer)
    finally:
        await response.aclose()
    return replace(told, headers=_kept_headers(response.headers, message.secrets))


async def _read_response(
    response: httpx.Response, message: PreparedRequest, limits: CallLimits, timer: asyncio.Timeout
) -> Exchange:
    """Return what a response came to; a large body goes where the limits say."""
    status, spool = response.status_code, limits.spool
    if spool is None or kind_of_status(status) != "ok":
        data, too_large = await bodies.read_body(response, limits.size)
        return _parse_response(response, data, too_large, message, limits)

    def arriving(done: int, in_all: int | None) -> None:
        timer.reschedule(None)  # a silence of ``read_s`` ends it now
        spool.progress(done, in_all)

    try:
        data, spooled, too_large = await read_or_spool(
            response, limits.size, replace(spool, progress=arriving), message.secrets
        )
    except SpoolError as error:
        told = bodies.redact(str(error), message.secrets)
        return Exchange("too_large", status, None, told, hint=error.hint)
    if spooled is None:
        return _parse_response(response, data, too_large, message, limits)
    told = f"{spooled.size:,} bytes, {spooled.media}"
    return Exchange("ok", status, told, "", spooled=spooled)


async def _send_with_login(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, login: httpx.Auth | None
) -> httpx.Response:
    """Send a request, and again with what the host's challenge asks for."""
    if login is None:
        return await transport.handle_async_request(request)
    flow = login.auth_flow(request)
    try:
        request = next(flow)
        while True:
            response = await transport.handle_async_request(request)
            response.request = request
            try:
                request = flow.send(response)
            except StopIteration:
                return response
            except (ValueError, KeyError, NotImplementedError, httpx.ProtocolError) as error:
                await response.aclose()
                raise _ChallengeError(str(error)) from error
            await response.aclose()
    finally:
        flow.close()


class _ChallengeError(Exception):
    """A host's challenge is malformed, or asks for what is not supported."""


def _timeouts(limits: CallLimits) -> dict[str, float]:
    return {
        "connect": limits.connect_s,
        "read": limits.read_s,
        "write": limits.read_s,
        "pool": limits.seconds,
    }


def _parse_response(
    response: httpx.Response,
    data: bytes,
    too_large: bool,
    message: PreparedRequest,
    limits: CallLimits,
) -> Exchange:
    status = response.status_code
    if status == 304:
        return Exchange("ok", status, "not modified: what was there before still holds", "")
    size = declared_size(response) if too_large else None
    body = bodies.parse_body(
        data, response.headers, too_large=too_large, secrets=message.secrets, size=size
    )
    got = _classify(status, body, response.headers, limits, size)
    return got if body.file is None else replace(got, files=(body.file,))


def _classify(
    status: int,
    body: bodies.ParsedBody,
    headers: httpx.Headers,
    limits: CallLimits,
    size: int | None,
) -> Exchange:
    kind = kind_of_status(status)
    if status == 202:
        asked = retry_after_seconds(headers, datetime.now(UTC))
        return Exchange("ok", status, body.value, "", asked)
    if kind != "ok":
        kind = _refine_kind(kind, body.value)
        asked = retry_after_seconds(headers, datetime.now(UTC))
        return Exchange(kind, status, body.value, f"HTTP status {status}", asked)
    if body.too_large:
        return Exchange("too_large", status, body.value, _too_large(body, limits, size))
    if body.web_page:
        return Exchange("not_json", status, body.value, "the API answered with a web page")
    if body.broken_json:
        return Exchange("not_json", status, body.value, "the response says JSON and is none")
    return Exchange("ok", status, body.value, "")


def _too_large(body: bodies.ParsedBody, limits: CallLimits, size: int | None) -> str:
    """Return how large a response is, as far as that is known, and what of it was kept."""
    told = f"more than {limits.size:,} bytes" if size is None else f"{size:,} bytes"
    most = f", and {limits.size:,} are read at most" if size is not None else ""
    if limits.spool is not None and size is not None and size > limits.spool.limit:
        most = f", and {limits.spool.limit:,} are saved at most"
    kept = "nothing of it is kept"
    if isinstance(body.value, str) and not body.file and not body.binary:
        kept = f"its first {len(body.value):,} characters are kept"
    return f"the response has {told}{most}; {kept}"


def _refine_kind(kind: ResultKind, value: Any) -> ResultKind:
    """Tell apart what gateways answer with one status, by the message they always send."""
    words = str(value.get("message", "") if isinstance(value, dict) else value)[:500].lower()
    if kind == "unauthorized" and "not subscribed" in words:
        return "not_subscribed"
    if kind == "unauthorized" and "exceeded" in words:
        return "rate_limited"
    if kind == "not_found" and "api doesn't exist" in words:
        return "gone"
    return kind


def _redirect_target(base: httpx.URL, location: str) -> httpx.URL | None:
    """Return where a redirect leads, None unless it stays at the host (or turns to TLS there)."""
    try:
        url = web_address(str(base.join(location))).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError):  # ValueError from urllib, which joins them
        return None
    same = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
    upgraded = (
        (base.scheme, url.scheme) == ("http", "https")
        and url.host == base.host
        and base.port is None
        and url.port is None
    )
    return url if (same or upgraded) and not url.userinfo else None

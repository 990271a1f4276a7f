"""Who answers the calls of a check: the call machinery, or a file of recorded replies.

A ``World`` says which APIs it can call, and turns a call into a ``Reply``. How often, in which
order and what it means is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import httpx

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.request import web_address
from toolsrv_runtime.calls.usage import Usage
from toolsrv_runtime.check.judge import Failure
from toolsrv_runtime.errors import ArgumentError, PolicyError
from toolsrv_runtime.outcome import Source

_KEPT_HEADERS = frozenset({"content-type", "retry-after"})
_HEADER_LIMIT = 200
_SECRET_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Reply:
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


class World(Protocol):
    """Answers calls."""

    def refuses(self, api: Api) -> str:
        """Return in a few words why the API cannot be called here, "" when it can."""

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> Reply:
        """Call the API.

        Raises:
            ArgumentError: an argument is missing or wrong.
            PolicyError: the call is not allowed.
        """

    async def aclose(self) -> None:
        """Let go of connections and files."""


@dataclass(slots=True)
class _Heard:
    """What the transport saw of the call that this task is making."""

    headers: dict[str, str] = field(default_factory=dict)
    connected: bool = False
    answered: bool = False
    failure: Failure = ""


_heard: ContextVar[_Heard | None] = ContextVar("toolsrv_check_heard", default=None)


class Listening(httpx.AsyncBaseTransport):
    """Hands everything to another transport and notes headers and failures for ``Called``."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request."""
        heard = _heard.get() or _Heard()

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


class Called:
    """A world that calls: host -> the caller that serves it, over ``Listening`` transports.

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
        usage: Usage | None = None,
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

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> Reply:
        """Call the API through the caller of its host."""
        await self._count(api)
        heard = _Heard()
        token = _heard.set(heard)
        try:
            result = await self._callers[host_of(api)].call(api, arguments)
        finally:
            _heard.reset(token)
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
                f"{host}: {spent.words}", hint="go on then, or raise the setting calls_per_day"
            )

    async def aclose(self) -> None:
        """Close all callers."""
        if self._usage is not None:
            self._usage.close()
        for caller in {id(one): one for one in self._callers.values()}.values():
            await caller.aclose()

    def _discreet(self, reply: Reply) -> Reply:
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


def _reply(result: CallResult, heard: _Heard, timeout: float) -> Reply:
    failure: Failure = ""
    if result.status == 0:
        failure = heard.failure or "timed_out"
        if heard.answered and result.seconds < timeout:
            failure = "broken"  # the head came, and the body never ended
    return Reply(
        status=result.status,
        seconds=result.seconds,
        headers=heard.headers,
        body=result.response,
        failure=failure,
        error=result.error,
        source=result.source,
        reached=heard.connected or heard.answered,
    )

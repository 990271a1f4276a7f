"""The Caller: bind arguments, check the policy, make the call, and record its source.

Every outcome is a typed result; a call raises nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

import httpx

from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_registry.storage.entries import Terms
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls import credentials
from toolsrv_runtime.calls.authenticated import (
    AddressRules,
    AuthenticatedCalls,
    FixedValues,
    FixedValuesLookup,
    TokenStore,
    no_fixed_values,
)
from toolsrv_runtime.calls.exchange import (
    CallLimits,
    Exchange,
    PreparedRequest,
    call_limited,
    exchange,
)
from toolsrv_runtime.calls.policy import PAYING, Policy
from toolsrv_runtime.calls.rate_limits import MCP_PREFIX, DailyCount, HostLimiter
from toolsrv_runtime.calls.request import OutgoingRequest, api_address, build_request
from toolsrv_runtime.calls.result import (
    CallReadiness,
    CallResult,
    Consent,
    KeyState,
    ResultKind,
    Spool,
)
from toolsrv_runtime.errors import ArgumentError, CredentialsError, PolicyError
from toolsrv_runtime.outcome import Source

NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class ApiOrigin:
    """Where an API belongs: its catalog, and its provider's page ("" when none is known).

    ``schema`` says what of a response is worth keeping (``compress.filter_by_schema``), None where
    nothing is known. ``waiting``: a changed text of the API waits to be accepted. ``terms`` are its
    provider's.
    """

    catalog: str = ""
    page: str = ""
    schema: Any = None
    waiting: bool = False
    terms: Terms = NO_TERMS


def unknown_origin(api: Api) -> ApiOrigin:
    """Know nothing of where an API belongs."""
    del api
    return ApiOrigin()


class ToolBackend(Protocol):
    """The MCP servers whose tools are APIs."""

    def can_call(self, api: Api) -> bool:
        """Whether a call of this tool could succeed as things are."""
        ...

    async def call(self, api: Api, arguments: dict[str, Any], limits: CallLimits) -> Exchange:
        """Call a tool. Raises PolicyError for one that is not as it was accepted."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True)
class Network:
    """How hosts without a transport of their own are reached.

    ``hosts`` keeps the limits of each host; None leaves that to whoever calls. ``own`` says whether
    a host is a person's own, so that keys may go there over plain HTTP. ``tools`` are the MCP
    servers, None where their tools cannot be called. ``fixed`` returns what is sent with each call
    of a catalog; it may raise a DataError. ``known`` returns ``credentials.ANY_SECRET`` for each
    key that there is, without looking at it; None leaves that to ``keys``. ``tokens`` keeps access
    tokens for other processes.
    """

    transport: httpx.AsyncBaseTransport
    keys: credentials.KeyLookup = credentials.no_keys
    hosts: HostLimiter | None = field(default_factory=HostLimiter)
    own: Callable[[str, int], bool] = lambda _host, _port: False
    tools: ToolBackend | None = None
    fixed: FixedValuesLookup = no_fixed_values
    known: credentials.KeyLookup | None = None
    tokens: TokenStore | None = None


class Caller:
    """Calls APIs, the hosts of ``transports`` through these, others over the network if there is.

    Use as an async context manager or aclose it. ``reaches``: its calls get to their hosts, so that
    they may cost something.
    """

    reaches = True

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        transports: Mapping[str, httpx.AsyncBaseTransport],
        source: Source = "offline",
        timeout: float | None = None,
        limits: CallLimits | None = None,
        network: Network | None = None,
        home: Callable[[Api], ApiOrigin] = unknown_origin,
    ) -> None:
        """Take the backends: ``transports`` answer as ``source``, the network as ``live``.

        ``timeout`` is short for limits that differ in their seconds only.
        """
        self._policy = policy or Policy()
        self._source: Source = source
        given = CallLimits() if timeout is None else CallLimits(seconds=timeout, read_s=timeout)
        self._limits = limits or given
        self._transports = dict(transports)
        self._network = network
        self._home = home
        self._signed = AuthenticatedCalls(None if network is None else network.tokens)

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call ``api``; the result says what came of it, whatever that is.

        ``tainted`` says that text of a response led here, so that consent is asked for more;
        ``consent`` is what a person has said yes to, as an earlier result named it. ``spool`` is
        where a response goes that is too large for memory; without it the rest of that is lost.
        """
        start = time.monotonic()
        bound: dict[str, Any] = dict(arguments)
        try:
            fixed = self._fixed(api)
            target, given = fixed.split(api, arguments)
            bound = args.bind(target, given)
            outgoing = fixed.added(api, build_request(target, bound))
            home = self._home(api)
            wanted = self._policy.check(
                api,
                outgoing,
                bound,
                hosts=None if self._network else self._transports.keys(),
                catalog=home.catalog,
                tainted=tainted,
                consent=consent,
                paid=home.terms.paid and self._costs(api),
            )
            if wanted is not None:
                return self._needs_consent(api, bound, wanted)
            got, source = await self._exchange(api, outgoing, spool)
            if got.kind == "ok" and source == "live":
                await self._note_success(api)
        except ArgumentError as error:
            return self._refused(api, args.json_safe(bound), "bad_arguments", error)
        except PolicyError as error:
            return self._refused(api, bound, "blocked_by_policy", error)
        except CredentialsError as error:
            return self._refused(api, bound, "unauthorized", error)
        return self._result(api, bound, outgoing, got, source, time.monotonic() - start)

    def _result(
        self,
        api: Api,
        bound: dict[str, Any],
        outgoing: OutgoingRequest,
        got: Exchange,
        source: Source,
        seconds: float,
    ) -> CallResult:
        host = outgoing.url.host
        subscribe = got.kind == "not_subscribed"
        return CallResult(
            api_id=api.id,
            arguments=bound,
            url=str(outgoing.url),
            status=got.status,
            response=got.response,
            error=got.error,
            source=source,
            seconds=seconds,
            kind=got.kind,
            hint=got.hint
            or credentials.recovery_hint(got.kind, api, host, got.retry_after)
            or got.note,
            page=credentials.subscription_page(api, host, self._home(api).page)
            if subscribe
            else "",
            retry_after=got.retry_after,
            headers=dict(got.headers),
            files=got.files,
            spooled=got.spooled,
        )

    def schema(self, api: Api) -> Any:
        """Return what is known of the shape of an API's responses, None for nothing."""
        return self._home(api).schema

    def can_call(self, api: Api, *, asks: bool = False) -> bool:
        """Whether a call of this API could succeed as things are: policy, address, key.

        ``asks`` says that a person can be asked for consent. Blocks while the keys do.
        """
        keys = credentials.no_keys if self._network is None else self._network.keys
        return self._can_call(api, keys, asks=asks)

    def _can_call(self, api: Api, keys: credentials.KeyLookup, *, asks: bool = False) -> bool:
        if self._serves(api):
            return self._policy.could_pass(api, asks=asks)
        host = _host(api) if api.mcp is None else api.mcp.server
        if self._network is None or not host:
            return False
        home = self._home(api)
        paid = home.terms.paid and self._costs(api)
        allowed = self._policy.could_pass(api, home.catalog, asks=asks, paid=paid)
        if allowed and (spent := self._spent(api)) is not None and spent.left == 0:
            return False
        if api.mcp is not None:
            tools = self._network.tools
            return allowed and not home.waiting and (tools is None or tools.can_call(api))
        return allowed and credentials.has_credentials(api, host, keys)

    def lacks(self, api: Api) -> str:
        """Return what a call of this API lacks of credentials, as ``missing_credentials``; "" for nothing.

        Nothing where its host is not called over the network, or the policy denies it. Blocks while
        the keys do.
        """
        if self._network is None or api.mcp is not None or self._serves(api):
            return ""
        host = _host(api)
        if not host or not self._policy.could_pass(api, self._home(api).catalog, asks=True):
            return ""
        return credentials.missing_credentials(api, host, self._network.keys)

    def ready(self, api: Api) -> CallReadiness:
        """Return what a call of this API has, and lacks, as things are. No key is looked at."""
        if self._serves(api):
            asks = not self._policy.could_pass(api)
            return CallReadiness(callable=self.can_call(api, asks=True), asks=asks, offline=True)
        network, host = self._network, _host(api)
        known: credentials.KeyLookup = credentials.no_keys
        key: KeyState = ""
        lacks = ""
        if network is not None:
            known = network.keys if network.known is None else network.known
            if host and credentials.key_names(api, host):
                lacks = credentials.missing_credentials(api, host, known)
                key = "missing" if lacks else "set"
        able = self._can_call(api, known, asks=True)
        return CallReadiness(
            callable=able,
            asks=able and not self._can_call(api, known),
            key=key,
            lacks=lacks,
            calls_left=self.calls_left(api),
        )

    def calls_left(self, api: Api) -> int | None:
        """Return how many calls an API's host has left today, None without a limit."""
        spent = self._spent(api)
        return None if spent is None or self._serves(api) else spent.left

    def _spent(self, api: Api) -> DailyCount | None:
        """Return the day's count of an API's host, None where nobody counts."""
        hosts = None if self._network is None else self._network.hosts
        if hosts is None or hosts.usage is None:
            return None
        host = _host(api) if api.mcp is None else f"{MCP_PREFIX}{api.mcp.server}"
        return hosts.usage.spent(host, self._home(api).catalog)

    def _costs(self, api: Api) -> bool:
        """Whether a call of a paid API would reach its provider."""
        return self.reaches and self._network is not None and not self._serves(api)

    async def _note_success(self, api: Api) -> None:
        hosts = None if self._network is None else self._network.hosts
        if hosts is not None and hosts.usage is not None:
            await asyncio.to_thread(hosts.usage.succeeded, api.id)

    def _serves(self, api: Api) -> bool:
        return _host(api) in self._transports

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()
        if self._network is not None:
            await self._network.transport.aclose()
            if self._network.hosts is not None and self._network.hosts.usage is not None:
                self._network.hosts.usage.close()
            if self._network.tools is not None:
                await self._network.tools.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _fixed(self, api: Api) -> FixedValues:
        """Return what is sent with each live call of the API's catalog.

        Raises:
            PolicyError: it cannot be read.
        """
        if self._network is None or api.mcp is not None or self._serves(api):
            return FixedValues()
        try:
            return self._network.fixed(self._home(api).catalog)
        except DataError as error:
            raise PolicyError(error.message, hint=error.hint) from error

    async def _exchange(
        self, api: Api, outgoing: OutgoingRequest, spool: Spool | None
    ) -> tuple[Exchange, Source]:
        url, network = outgoing.url, self._network
        limits = replace(self._limits, spool=spool)
        if (served := self._transports.get(url.host)) is not None:
            message = PreparedRequest(outgoing.method, url, outgoing.headers, outgoing.content)
            return await exchange(served, message, limits), self._source
        if network is None:
            raise PolicyError(f"{api.id}: nothing serves {url.host!r}", hint="choose another API")
        if api.mcp is not None:
            return await self._tool(api, outgoing, network), "live"
        catalog = self._home(api).catalog
        rules = AddressRules(
            partial(self._policy.may_follow, outgoing.method, catalog=catalog),
            lambda url: self._policy.verdict("POST", url, catalog) != "deny",
            catalog,
        )
        return await self._signed.send(api, outgoing, network, limits, rules), "live"

    async def _tool(self, api: Api, outgoing: OutgoingRequest, network: Network) -> Exchange:
        """Call a tool of an MCP server, within the limits of a host."""
        home = self._home(api)
        if home.waiting or network.tools is None:
            why = "changed, and the change waits" if home.waiting else "cannot be called here"
            raise PolicyError(
                f"{api.id}: this tool of an MCP server {why}",
                hint=f"see toolsrv catalog diff {home.catalog}, then toolsrv catalog accept "
                f"{home.catalog}"
                if home.waiting
                else "see the setting mode",
            )
        call = partial(network.tools.call, api, json.loads(outgoing.content), self._limits)
        return await call_limited(call, outgoing.url.host, network.hosts, home.catalog)

    def _needs_consent(self, api: Api, bound: dict[str, Any], wanted: Consent) -> CallResult:
        rule = "PAID" if PAYING in wanted.reason else wanted.method
        error = PolicyError(
            f"{api.id}: {wanted.method} {wanted.host}{wanted.path} needs a person's consent "
            f"({wanted.reason})",
            hint="a person may allow it at the terminal, or for good with the setting calls: "
            f"allow {rule} {wanted.host}",
        )
        result = self._refused(api, bound, "needs_consent", error)
        return result.model_copy(update={"consent": wanted})

    def _refused(
        self,
        api: Api,
        bound: dict[str, Any],
        kind: ResultKind,
        error: ToolsrvError,
    ) -> CallResult:
        return CallResult(
            api_id=api.id,
            arguments=bound,
            url=api.url,
            status=0,
            response=None,
            error=error.message,
            source=self._source if self._network is None or self._serves(api) else "live",
            seconds=0.0,
            kind=kind,
            hint=error.hint,
        )


def _host(api: Api) -> str:
    """Return the host of an API's web address, "" where it has none."""
    try:
        url = api_address(api.url)
    except httpx.InvalidURL:
        return ""
    return url.host if url.scheme in {"http", "https"} else ""


def default_caller() -> Caller:
    """Return a read-only caller of the catalog that ships."""
    from toolsrv_runtime.calls.transports import offline_transports  # noqa: PLC0415 - loads starlette

    return Caller(transports=offline_transports())


__all__ = ["ApiOrigin", "CallResult", "Caller", "Network", "default_caller"]

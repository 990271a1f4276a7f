"""Calls over the network with the credentials that they need: keys, Digest logins, OAuth 2 tokens.

Owns what is remembered between calls: access tokens, and the challenges that Digest logins answer. Does not know whether a call is allowed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import httpx

from toolsrv_registry.api import Api
from toolsrv_runtime.calls import auth
from toolsrv_runtime.calls.exchange import Exchange, Limits, Message, exchange
from toolsrv_runtime.calls.hosts import Hosts
from toolsrv_runtime.calls.oauth import TokenKeeper, Tokens
from toolsrv_runtime.calls.request import Outgoing
from toolsrv_runtime.errors import CredentialsError

_LOGINS_KEPT = 200
_LEAST_S = 0.05
_PORTS = {"http": 80, "https": 443}


class Way(Protocol):
    """How hosts are reached; ``caller.Network`` is one."""

    @property
    def transport(self) -> httpx.AsyncBaseTransport:
        """What sends requests."""

    @property
    def keys(self) -> auth.Keys:
        """The keys."""

    @property
    def hosts(self) -> Hosts | None:
        """The limits of each host."""

    @property
    def own(self) -> Callable[[str, int], bool]:
        """Whether a host and port are a person's own."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person's rules say.

    ``may_follow`` whether a redirect from one address to another may be followed, ``may_fetch``
    whether a token may come from an address. ``catalog`` is the one that they are asked for.
    """

    may_follow: Callable[[httpx.URL, httpx.URL], bool]
    may_fetch: Callable[[httpx.URL], bool]
    catalog: str = ""


class SignedCalls:
    """Sends requests with their credentials; ``keeper`` keeps tokens for other processes."""

    def __init__(self, keeper: TokenKeeper | None = None) -> None:
        self._tokens = Tokens(keeper)
        self._logins: dict[tuple[str, str, str], httpx.DigestAuth] = {}

    async def send(
        self, api: Api, outgoing: Outgoing, way: Way, limits: Limits, rules: Rules
    ) -> Exchange:
        """Return what came of a request; a token that a host refuses (401) is fetched anew once.

        Raises:
            ArgumentError: with a key in its query the address is too long.
            CredentialsError: the credentials are missing or not supported; nothing was sent.
            PolicyError: an address may not be called.
        """
        end = time.monotonic() + limits.seconds
        plain = way.own(outgoing.url.host, _port(outgoing.url))
        signed = await asyncio.to_thread(auth.authorize, api, outgoing, way.keys, plain=plain)
        if signed.client is None:
            got = await self._exchange(signed, outgoing, way, limits, rules)
            return replace(got, note=signed.note)
        self._check(signed.client, way, rules)
        while True:
            token = await self._tokens.get(
                signed.client,
                lambda message: exchange(
                    way.transport, message, replace(_left(limits, end), spool=None), way.hosts
                ),
            )
            if isinstance(token, Exchange):
                return token
            ready = signed.with_token(token.text)
            got = await self._exchange(ready, outgoing, way, _left(limits, end), rules)
            if got.status != 401 or token.fresh:
                return got
            await self._tokens.forget(signed.client, token)

    async def _exchange(
        self, signed: auth.Authorized, outgoing: Outgoing, way: Way, limits: Limits, rules: Rules
    ) -> Exchange:
        message = Message(
            outgoing.method,
            signed.url,
            signed.headers,
            outgoing.content,
            signed.secrets,
            self._login(signed),
            lambda target: rules.may_follow(signed.url, target),
            rules.catalog,
        )
        return await exchange(way.transport, message, limits, way.hosts)

    def _login(self, signed: auth.Authorized) -> httpx.DigestAuth | None:
        """Return the login of a host; it answers the next request without a new challenge."""
        if signed.digest is None:
            return None
        key = (signed.url.netloc.decode("ascii"), *signed.digest)
        if key not in self._logins and len(self._logins) >= _LOGINS_KEPT:
            self._logins.clear()
        return self._logins.setdefault(key, httpx.DigestAuth(*signed.digest))

    @staticmethod
    def _check(client: auth.ClientCredentials, way: Way, rules: Rules) -> None:
        url = client.url
        if url.scheme != "https" and not way.own(url.host, _port(url)):
            raise CredentialsError(
                f"access tokens come from {url.host} over unencrypted HTTP, and no key is sent that "
                "way",
                hint="for a service of your own: toolsrv config set own_hosts HOST",
            )
        if not rules.may_fetch(url):
            raise CredentialsError(
                f"access tokens come from {url.host}, which your settings deny",
                hint="see the setting calls: toolsrv config show",
            )


def _port(url: httpx.URL) -> int:
    return url.port or _PORTS.get(url.scheme, 0)


def _left(limits: Limits, end: float) -> Limits:
    """Return the limits with what is left of a call's time."""
    return replace(limits, seconds=max(_LEAST_S, end - time.monotonic()))

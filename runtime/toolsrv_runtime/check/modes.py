"""The worlds a check can ask, put together: offline, live, recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import httpx

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.addresses import Addresses
from toolsrv_runtime.calls.auth import on_rapidapi
from toolsrv_runtime.calls.caller import Caller, Home, Network, homeless
from toolsrv_runtime.calls.fixed import FixedOf, no_fixed
from toolsrv_runtime.calls.offline import transports
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.usage import Usage
from toolsrv_runtime.check.live import LiveTransport
from toolsrv_runtime.check.recorded import Recorded
from toolsrv_runtime.check.worlds import Called, Listening, World, host_of

NO_KEY = "RapidAPI needs a key, and none is stored"
ONLINE = "it is called over the network (--mode live)"


def offline_world(*, timeout: float) -> World:
    """Return the world of the catalog that ships; every other host is left alone."""
    policy = Policy()
    caller = _offline_caller(policy, timeout)
    return Called(
        {OFFLINE_HOST: caller}, policy=policy, timeout=timeout, elsewhere=lambda _: ONLINE
    )


def live_world(
    apis: Iterable[Api],
    *,
    timeout: float,
    key: str = "",
    via: str | None = None,
    own: Collection[str] = (),
    home: Callable[[Api], Home] = homeless,
    fixed: FixedOf = no_fixed,
    paid: Collection[str] = (),
    usage: Usage | None = None,
) -> World:
    """Return the world of the hosts that these APIs name, and of the catalog that ships.

    RapidAPI's hosts need ``key``. ``via`` is the URL of a server that gets every call instead.
    ``own`` are a person's own hosts: at any address and over plain HTTP, as in other calls.
    ``fixed`` returns what is sent with each call of the catalog that ``home`` names. ``paid`` are
    ids of APIs that are left alone since they cost money, ``usage`` counts the calls.

    Raises:
        UsageError: ``via`` is no http or https URL.
    """
    policy = Policy()
    target = None if via is None else _via(via)
    hosts = {host_of(api) for api in apis} - {"", OFFLINE_HOST}
    if not key and target is None:
        hosts = {host for host in hosts if not on_rapidapi(host)}
    is_own = Addresses(own=own).allows_any
    network = Network(
        transport=Listening(LiveTransport(key=key, via=target, own=own)),
        hosts=None,
        own=is_own,
        fixed=fixed,
    )
    live = Caller(policy=policy, transports={}, timeout=timeout, network=network, home=home)
    return Called(
        {**dict.fromkeys(hosts, live), OFFLINE_HOST: _offline_caller(policy, timeout)},
        policy=policy,
        timeout=timeout,
        secrets=(key,),
        own=is_own,
        paid=() if target else paid,
        usage=None if target else usage,
        catalog=lambda api: home(api).catalog,
        elsewhere=lambda host: NO_KEY if on_rapidapi(host) else "its host is not in the catalog",
    )


def recorded_world(path: Path) -> World:
    """Return the world of a file that a check recorded.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    return Recorded(path)


def _offline_caller(policy: Policy, timeout: float) -> Caller:
    served = {host: Listening(transport) for host, transport in transports().items()}
    return Caller(policy=policy, transports=served, source="offline", timeout=timeout)


def _via(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise UsageError(
            f"--via {text!r} is no URL: {error}", hint="for example http://localhost:8080"
        ) from error
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise UsageError(
            f"--via {text!r} is no http or https URL", hint="for example http://localhost:8080"
        )
    return url

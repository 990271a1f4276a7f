"""APIs to call, requests of their calls, and callers for hosts on loopback."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any

from tests.runtime.hosts.hostile import HostileHost

from toolsrv_registry.api import Api
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.rate_limits import HostLimiter, HostLimits
from toolsrv_runtime.calls.request import OutgoingRequest, build_request
from toolsrv_runtime.calls.transports import Connections

QUICK = CallLimits(seconds=0.6, connect_s=0.3, read_s=0.4, size=300_000, backoff_s=0.01)
PATIENT = CallLimits(seconds=8, connect_s=4, read_s=4, size=300_000, retries=2, backoff_s=0.01)


def api(url: str = "https://api.test/x", *, method: str = "GET", **more: Any) -> Api:
    """Return an API at an address."""
    return Api(id="C/t/a", category="C", tool="t", name="a", method=method, url=url, **more)


def request(target: Api, arguments: Mapping[str, Any]) -> OutgoingRequest:
    """Return what a call would send, without its keys."""
    return build_request(target, args.bind(target, arguments))


async def loopback(name: str, port: int) -> list[str]:
    """Resolve any name to this machine."""
    del name, port
    return ["127.0.0.1"]


def caller(
    host: HostileHost,
    limits: CallLimits = PATIENT,
    *,
    keys: Callable[[str], str | None] = lambda _: "",
    trust: ssl.SSLContext | None = None,
    hosts: HostLimiter | None = None,
    **more: Any,
) -> Caller:
    """Return a caller for which ``api.test`` is a host of the person's own, on loopback."""
    addresses = AddressResolver(own={f"api.test:{host.port}"}, resolve=loopback)
    network = Network(
        transport=Connections(addresses, trust=trust),
        keys=lambda name: keys(name) or "",
        hosts=hosts or HostLimiter(HostLimits(rate=0, failures=50)),
        own=addresses.allows_any,
    )
    return Caller(transports={}, limits=limits, network=network, **more)

"""Calls over the network: to the hosts of the catalog, at public addresses, with the right key.

One connection per call, so that latencies compare and no connection outlives its host. Knows
nothing of APIs or verdicts; which hosts may be called is the caller's policy.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading

import httpx

from toolsrv_runtime.errors import PolicyError

KEY_VARIABLE = "RAPIDAPI_KEY"
_RAPIDAPI = ".rapidapi.com"


def needs_key(host: str) -> bool:
    """Return whether a host answers only with RapidAPI's key."""
    return host.endswith(_RAPIDAPI)


class LiveTransport(httpx.AsyncBaseTransport):
    """Sends requests to their host; a host that resolves to a private address is refused.

    ``key`` goes to RapidAPI's hosts and nowhere else. ``via`` is another server that gets every
    request instead, with the host in the ``Host`` header and without the key: a mirror, a mock or
    a gateway, which may be on a private address since a person named it.
    """

    def __init__(self, *, key: str = "", via: httpx.URL | None = None) -> None:
        self._key = key
        self._via = via
        self._inner = httpx.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        host = request.url.host
        headers = request.headers.copy()
        if self._via is not None:
            url = self._via.copy_with(raw_path=request.url.raw_path)
            return await self._send(request, url, headers, {})
        if self._key and needs_key(host):
            headers["x-rapidapi-key"] = self._key
            headers["x-rapidapi-host"] = host
        failed: httpx.ConnectError | None = None
        for address in await public_addresses(host, request.url.port or 443):
            url = request.url.copy_with(host=address)
            try:
                return await self._send(request, url, headers, {"sni_hostname": host})
            except httpx.ConnectError as error:
                failed = error
        raise failed or httpx.ConnectError(f"{host!r} has no address", request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _send(
        self, request: httpx.Request, url: httpx.URL, headers: httpx.Headers, more: dict[str, str]
    ) -> httpx.Response:
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method,
                url,
                headers=headers,
                stream=request.stream,
                extensions={**request.extensions, **more},
            )
        )


async def public_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, IPv4 first.

    Raises:
        httpx.ConnectError: the name does not resolve.
        PolicyError: an address of it is private, link-local or otherwise not public.
    """
    try:
        addresses = await _addresses(host, port)
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"{host!r} does not resolve: {error}") from error
    for address in addresses:
        ip = ipaddress.ip_address(address)
        if not ip.is_global or ip.is_multicast:
            raise PolicyError(
                f"{host} resolves to {address}, which is not a public address",
                hint="name a server of your own with --via",
            )
    return sorted(addresses, key=lambda one: ":" in one)


async def _addresses(host: str, port: int) -> list[str]:
    """Resolve a name in a thread that nobody waits for at the end: it can hang for long."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[str]] = loop.create_future()

    def tell(addresses: list[str], error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(addresses)
        else:
            future.set_exception(error)

    def resolve() -> None:
        addresses: list[str] = []
        failed: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        except (OSError, UnicodeError) as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, addresses, failed)

    threading.Thread(target=resolve, name="toolsrv-resolve", daemon=True).start()
    return await future

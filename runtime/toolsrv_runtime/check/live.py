"""Calls of a check over the network: with the right key, or through a server in between.

One connection per call, so that latencies compare and no connection outlives its host. Connections
and addresses are those of every other call (``calls/connection.py``). Knows nothing of APIs or
verdicts; which hosts may be called is the caller's policy.
"""

from __future__ import annotations

from collections.abc import Collection

import httpx

from toolsrv_runtime.calls.addresses import Addresses
from toolsrv_runtime.calls.auth import on_rapidapi
from toolsrv_runtime.calls.connection import Connections
from toolsrv_runtime.calls.proxies import Proxies


class LiveTransport(httpx.AsyncBaseTransport):
    """Sends requests to their host; a private address is refused, but for ``own`` hosts.

    ``key`` goes to RapidAPI's hosts and nowhere else. ``via`` is another server that gets every
    request instead, with the host in the ``Host`` header and without the key: a mirror, a mock or
    a gateway, which may be on a private address since a person named it.
    """

    def __init__(
        self, *, key: str = "", via: httpx.URL | None = None, own: Collection[str] = ()
    ) -> None:
        named = own if via is None else {*own, via.host.lower()}
        self._key = key
        self._via = via
        self._inner = Connections(
            Addresses(own=named), reuse=False, proxies=Proxies.of_environment()
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        host, url = request.url.host, request.url
        headers = request.headers.copy()
        if self._via is not None:
            url = self._via.copy_with(raw_path=request.url.raw_path)
        elif self._key and on_rapidapi(host):
            headers["x-rapidapi-key"] = self._key
            headers["x-rapidapi-host"] = host
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method,
                url,
                headers=headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

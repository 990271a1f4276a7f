"""Connections to hosts: pooled, HTTP/2 where offered, made to the address that was checked.

An httpx transport over httpcore's own pool. A connection belongs to the host's name, so two hosts
at one address never share one; names are resolved and checked here, once per connection, and the
certificate is verified for the name. Knows nothing of APIs, keys or policies.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

import anyio
import httpcore
import httpx
from h2.exceptions import H2Error

from toolsrv_runtime.calls.addresses import Addresses

IDLE_S = 30.0
CONNECTIONS = 100


class Connections(httpx.AsyncBaseTransport):
    """Sends requests to their hosts.

    ``reuse`` keeps idle connections for the next call; without it each call makes its own.
    ``trust`` verifies certificates (the system's authorities when left out).
    """

    def __init__(
        self, addresses: Addresses, *, reuse: bool = True, trust: ssl.SSLContext | None = None
    ) -> None:
        self._addresses = addresses
        self._reuse = reuse
        self._trust = trust
        self._made: httpcore.AsyncConnectionPool | None = None

    def _pool(self) -> httpcore.AsyncConnectionPool:
        """Return the pool, made for the first call: reading certificates takes its time."""
        if self._made is None:
            # HPACK's debug log spells out every header, keys included.
            logging.getLogger("hpack").setLevel(logging.INFO)
            self._made = httpcore.AsyncConnectionPool(
                ssl_context=self._trust or httpx.create_ssl_context(trust_env=False),
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS // 2 if self._reuse else 0,
                keepalive_expiry=IDLE_S,
                http2=True,
                network_backend=_Checked(self._addresses),
            )
        return self._made

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raises httpx's transport errors, and PolicyError for an address."""
        stream = request.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError(f"not an asynchronous body: {stream!r}")
        with _httpx_errors():
            response = await self._pool().handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=stream,
                    extensions=request.extensions,
                )
            )
        if not isinstance(response.stream, AsyncIterable):
            raise TypeError(f"not an asynchronous body: {response.stream!r}")
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response, response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._made is not None:
            await self._made.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response, stream: AsyncIterable[bytes]) -> None:
        self._response = response
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        with _httpx_errors():
            await self._response.aclose()


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that ``Addresses`` lets pass, in their order."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the port
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                found = await self._addresses.of(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} did not resolve in {timeout:g} s") from error
        except OSError as error:
            raise httpcore.ConnectError(f"{host!r} does not resolve: {error}") from error
        failed: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in found:
            try:
                return _Stream(
                    await self._inner.connect_tcp(
                        address, port, timeout, local_address, socket_options
                    )
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError(f"{host!r} has no address")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A stream that is closed when a call is given up in the middle of its TLS handshake."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the port
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@contextlib.contextmanager
def _httpx_errors() -> Iterator[None]:
    """Turn httpcore's errors into httpx's of the same name, and those that it lets through."""
    try:
        yield
    except (
        httpcore.TimeoutException,
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
    ) as error:
        kind: type[httpx.TransportError] = getattr(
            httpx, type(error).__name__, httpx.TransportError
        )
        raise kind(str(error)) from error
    except (H2Error, ValueError) as error:  # ValueError for a status over HTTP/2 that is no number
        raise httpx.RemoteProtocolError(str(error)[:200]) from error
    except (OSError, anyio.EndOfStream) as error:  # TLS that breaks or ends once it is established
        raise httpx.NetworkError(str(error)[:200]) from error

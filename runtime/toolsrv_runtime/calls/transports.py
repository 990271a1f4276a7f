"""httpx transports: pooled connections to checked addresses, and the offline catalog in-process.

Connections are pooled, and use HTTP/2 where a host offers it. Each one is made to an address that
``AddressResolver`` has checked, directly or through the proxy that the environment names
(``HTTP_PROXY``, ``HTTPS_PROXY``, ``NO_PROXY``). Knows no limits and no credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib import request
from urllib.parse import unquote
from urllib.request import getproxies_environment

import anyio
import httpcore
import httpx
from h2.exceptions import H2Error

from toolsrv_catalogs.offline import OFFLINE_HOST, create_app
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.errors import PolicyError

_SCHEMES = frozenset({"http", "https"})
_SOCKS = frozenset({"socks5", "socks5h"})
_WRITE = "write it as http://HOST:PORT, or unset it"


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy; ``login`` is its user and password."""

    url: httpx.URL
    login: tuple[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies of an environment: scheme -> address, and ``no`` for what goes without one."""

    by_scheme: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_environment(cls) -> Self:
        """Return the proxies that the environment of this process names."""
        return cls(getproxies_environment())

    def for_url(self, url: httpx.URL) -> Proxy | None:
        """Return the proxy for an address, None where it is reached directly.

        Raises:
            PolicyError: the proxy cannot be used.
        """
        text = self.by_scheme.get(url.scheme) or self.by_scheme.get("all", "")
        if not text:
            return None
        netloc = f"[{url.host}]" if ":" in url.host else url.host
        netloc += f":{url.port}" if url.port else ""
        if self._goes_without(netloc):
            return None
        variable = f"{url.scheme}_proxy" if self.by_scheme.get(url.scheme) else "all_proxy"
        return _proxy(text, variable.upper())

    def _goes_without(self, netloc: str) -> bool:
        named = {"no": "", **self.by_scheme}
        return bool(request.proxy_bypass_environment(netloc, named))  # type: ignore[attr-defined]


def _proxy(text: str, variable: str) -> Proxy:
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}")
        login = (unquote(url.username), unquote(url.password)) if url.userinfo else None
        bare = url.copy_with(userinfo=b"", path="/", query=None, fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise PolicyError(f"{variable} names no proxy that can be used", hint=_WRITE) from None
    if url.scheme in _SOCKS:
        if importlib.util.find_spec("socksio") is None:
            raise PolicyError(
                f"{variable} names a SOCKS proxy, and the package socksio is not installed",
                hint='pip install "toolsrv[socks]", or set an HTTP proxy, or unset it',
            )
    elif url.scheme not in _SCHEMES:
        raise PolicyError(
            f"{variable} names a proxy of the kind {url.scheme[:20]!r}, which cannot be used",
            hint=_WRITE,
        )
    if not url.host or (url.port or 1) > 65_535:
        raise PolicyError(f"{variable} names no proxy that can be used", hint=_WRITE)
    return Proxy(bare, login)


IDLE_S = 30.0
CONNECTIONS = 100
_PORTS = {"http": 80, "https": 443}
_PROXY_LOGIN = 407


class Connections(httpx.AsyncBaseTransport):
    """Sends requests to their hosts.

    ``reuse`` keeps idle connections for the next call; without it each call makes its own.
    ``trust`` verifies certificates (the system's authorities when left out), and ``proxies`` says
    which proxy an address is reached through (none when left out).
    """

    def __init__(
        self,
        addresses: AddressResolver,
        *,
        reuse: bool = True,
        trust: ssl.SSLContext | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._addresses = addresses
        self._reuse = reuse
        self._trust = trust
        self._proxies = proxies or Proxies()
        self._made: dict[Proxy | None, httpcore.AsyncConnectionPool] = {}

    def _pool(self, proxy: Proxy | None) -> httpcore.AsyncConnectionPool:
        """Return the pool, made for the first call: reading certificates takes its time."""
        if (made := self._made.get(proxy)) is not None:
            return made
        # HPACK's debug log spells out every header, keys included.
        logging.getLogger("hpack").setLevel(logging.INFO)
        if self._trust is None:
            self._trust = httpx.create_ssl_context(trust_env=False)
        # A proxy may be anywhere: the person named it.
        named = self._addresses if proxy is None else AddressResolver(own=(proxy.url.host,))
        made = self._made[proxy] = httpcore.AsyncConnectionPool(
            ssl_context=self._trust,
            proxy=None if proxy is None else _as_httpcore(proxy, self._trust),
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS // 2 if self._reuse else 0,
            keepalive_expiry=IDLE_S,
            http2=True,
            network_backend=_CheckedBackend(named),
        )
        return made

    async def _way(self, request: httpx.Request) -> Proxy | None:
        """Return the proxy of a request, None for none, once its host's addresses are checked.

        A host of a person's own needs no address here: its name may be the proxy's to resolve.
        """
        url = request.url
        proxy = self._proxies.for_url(url)
        port = url.port or _PORTS.get(url.scheme, 0)
        if proxy is not None and not self._addresses.allows_any(url.host, port):
            timeout = request.extensions.get("timeout", {}).get("connect")
            await _resolve_checked(self._addresses, url.host, port, timeout)
        return proxy

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raises httpx's transport errors, and PolicyError for an address."""
        stream = request.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError(f"not an asynchronous body: {stream!r}")
        with _httpx_errors():
            proxy = await self._way(request)
            response = await self._pool(proxy).handle_async_request(
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
        if proxy is not None and response.status == _PROXY_LOGIN:
            await response.aclose()
            raise httpx.ProxyError("the proxy wants another user and password")
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response, response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._made.values():
            await pool.aclose()


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


async def _resolve_checked(
    addresses: AddressResolver,
    host: str,
    port: int,
    timeout: float | None,  # noqa: ASYNC109 - the port
) -> list[str]:
    """Return the addresses of a host, checked, in httpcore's errors."""
    try:
        async with asyncio.timeout(timeout):
            return await addresses.addresses_of(host, port)
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(f"{host} did not resolve in {timeout:g} s") from error
    except OSError as error:
        raise httpcore.ConnectError(f"{host!r} does not resolve: {error}") from error


def _as_httpcore(proxy: Proxy, trust: ssl.SSLContext) -> httpcore.Proxy:
    return httpcore.Proxy(
        url=httpcore.URL(
            scheme=proxy.url.raw_scheme,
            host=proxy.url.raw_host,
            port=proxy.url.port,
            target=proxy.url.raw_path,
        ),
        auth=proxy.login,
        ssl_context=trust if proxy.url.scheme == "https" else None,
    )


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that ``AddressResolver`` lets pass, in their order."""

    def __init__(self, addresses: AddressResolver) -> None:
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
        found = await _resolve_checked(self._addresses, host, port, timeout)
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
    except httpcore.ProxyError as error:
        raise httpx.ProxyError(f"the proxy answered {str(error)[:100]!r}") from error
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


def offline_transports() -> dict[str, httpx.AsyncBaseTransport]:
    """Return host -> transport for the offline catalog. Handlers load on first use."""
    return {
        OFFLINE_HOST: httpx.ASGITransport(app=create_app(), raise_app_exceptions=False),
    }

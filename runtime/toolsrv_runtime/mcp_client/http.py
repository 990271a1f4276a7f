"""The MCP client's HTTP over our own connections: every address is checked before it is reached.

Imports the client's HTTP library, so it is imported when a server is first connected to.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

import httpx
import httpx2

from toolsrv_runtime.calls.connection import Connections

BODY_LIMIT = 16_000_000
"""Bytes of one response; of a stream of events the client limits each."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of ``httpx2`` through ``Connections``."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises ``httpx2``'s transport errors, and PolicyError for an address."""
        headers = [one for one in request.headers.raw if one[0].lower() != b"accept-encoding"]
        sent = httpx.Request(
            request.method,
            str(request.url),
            headers=[*headers, (b"Accept-Encoding", b"identity")],
            stream=httpx.ByteStream(await request.aread()),
            extensions={"timeout": request.extensions.get("timeout", {})},
        )
        try:
            response = await self._connections.handle_async_request(sent)
        except httpx.TimeoutException as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except httpx.TransportError as error:
            raise httpx2.ConnectError(str(error) or type(error).__name__) from error
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):  # what it unpacks to would have no limit
            await response.aclose()
            raise httpx2.ReadError(f"the response is compressed as {encoding[:40]!r}")
        events = "text/event-stream" in response.headers.get("content-type", "")
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=_Body(response, None if events else BODY_LIMIT),
            request=request,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connections.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpx.Response, limit: int | None) -> None:
        self._response = response
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        got = 0
        stream = self._response.stream
        if not isinstance(stream, AsyncIterable):
            raise TypeError(f"not an asynchronous body: {stream!r}")
        try:
            async for part in stream:
                got += len(part)
                if self._limit is not None and got > self._limit:
                    raise httpx2.ReadError(f"the response has more than {self._limit:,} bytes")
                yield part
        except httpx.TimeoutException as error:
            raise httpx2.ReadTimeout(str(error)) from error
        except httpx.TransportError as error:
            raise httpx2.ReadError(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        await self._response.aclose()

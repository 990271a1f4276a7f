"""A persistent connection to one MCP server: opened on demand, reopened after a failure.

Uses the client of the ``mcp`` package, so this module is imported only when a server is connected
to. A connection belongs to one event loop; its own task enters and leaves it, as the client
requires.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Implementation
from pydantic import ValidationError

from toolsrv_catalogs.mcp_tools import TOOLS_LIMIT, fingerprint
from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.transports import Connections, Proxies
from toolsrv_runtime.errors import PolicyError
from toolsrv_runtime.mcp_client import QUERY_MARK, McpServer, SecretLookup
from toolsrv_runtime.mcp_client.transports import LINE_LIMIT, CheckedTransport, StdioServer

START_S = 60.0
"""Time for a server to start and to answer first; ``npx`` and ``uvx`` may have to fetch it."""
LIST_S = 30.0
"""Time for all pages of the list of tools."""
LISTED_S = 30.0
"""For so long a list stands for what a server offers, unless it says that it changed."""
_PAGES_LIMIT = 1_000
_ERROR_LENGTH = 300
_SECRET_LENGTH = 8


class UnreachableError(Exception):
    """A server cannot be started or reached, or ended; the message says how."""


class MessageTooLargeError(UnreachableError):
    """A server sent a message that is too large, and was ended for it."""


class Connection:
    """The connection to one server. ``secrets`` are the values that it was opened with."""

    def __init__(self, server: McpServer, keys: SecretLookup, addresses: AddressResolver) -> None:
        self.server = server
        self.secrets: tuple[str, ...] = ()
        self.complete = True
        self._keys = keys
        self._addresses = addresses
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._client: Client | None = None
        self._process: StdioServer | None = None
        self._prints: dict[str, str] = {}
        self._listed_at = float("-inf")

    async def client(self) -> Client:
        """Return the open client; open it where it is not.

        Raises:
            UnreachableError: the server cannot be started or reached, or a secret is missing.
            PolicyError: its address may not be called.
        """
        async with self._lock:
            if self._client is None or self._task is None or self._task.done():
                await self._close()
                self._client = await self._open()
            return self._client

    async def definitions(self) -> list[dict[str, Any]]:
        """Return what the server lists, page by page; ``complete`` says whether that was all.

        Raises:
            UnreachableError: it does not list its tools.
            PolicyError: its address may not be called.
        """
        client = await self.client()
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        self.complete = False
        try:
            async with asyncio.timeout(LIST_S):
                for _ in range(_PAGES_LIMIT):
                    page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                    found += [
                        one.model_dump(by_alias=True, mode="json", exclude_none=True)
                        for one in page.tools
                    ]
                    cursor = page.next_cursor
                    self.complete = cursor is None
                    if cursor is None or cursor in seen or len(found) > TOOLS_LIMIT:
                        break
                    seen.add(cursor)
        except TimeoutError:
            await self.close()
            raise UnreachableError(f"did not list its tools within {LIST_S:g} seconds") from None
        except (MCPError, ValidationError, ValueError) as error:
            raise await self._fault(error) from None
        self._prints = {one["name"]: fingerprint(one) for one in found}
        self._listed_at = time.monotonic()
        return found

    async def prints(self, *, fresh: bool) -> Mapping[str, str]:
        """Return tool name -> fingerprint as the server lists them now, or lately unless ``fresh``.

        Raises:
            UnreachableError: it does not list its tools, not after a restart either.
            PolicyError: its address may not be called.
        """
        await self.client()
        if fresh or time.monotonic() - self._listed_at > LISTED_S:
            try:
                await self.definitions()
            except UnreachableError:  # it ended since it was used last
                await self.close()
                await self.definitions()
        return self._prints

    def known_print(self, tool: str) -> str | None:
        """Return a tool's fingerprint as it was listed last, None where nothing was listed."""
        return self._prints.get(tool) if self._client is not None else None

    async def call(self, tool: str, arguments: dict[str, Any], seconds: float) -> CallToolResult:
        """Call a tool once.

        Raises:
            TimeoutError: no answer in time; the server is told that nobody waits.
            UnreachableError: the connection ended meanwhile.
            MCPError: the server refuses the call.
            ValueError, RuntimeError: its answer is none.
        """
        client = await self.client()
        try:
            async with asyncio.timeout(seconds):
                return await client.call_tool(tool, arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise await self._fault(error) from None
            raise
        except httpx2.HTTPError as error:
            raise await self._fault(error) from None

    async def close(self) -> None:
        """Close the connection; the next use opens it again."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        self._stop.set()
        self._client, self._listed_at = None, float("-inf")
        if self._task is not None:
            await asyncio.wait({self._task})
            self._task = None

    async def _open(self) -> Client:
        loop = asyncio.get_running_loop()
        values = await asyncio.to_thread(self._values)
        self.secrets = tuple(one for one in values.values() if len(one) >= _SECRET_LENGTH)
        self._stop = asyncio.Event()
        ready: asyncio.Future[Client] = loop.create_future()
        self._task = loop.create_task(self._hold(ready, values, self._stop))
        try:
            async with asyncio.timeout(START_S):
                return await asyncio.shield(ready)
        except TimeoutError:
            await self._give_up(ready)
            raise UnreachableError(f"did not answer within {START_S:g} seconds") from None
        except asyncio.CancelledError:
            await self._give_up(ready)
            raise

    async def _give_up(self, ready: asyncio.Future[Client]) -> None:
        ready.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _hold(
        self, ready: asyncio.Future[Client], values: Mapping[str, str], stop: asyncio.Event
    ) -> None:
        """Enter the client, wait until nobody needs it, leave it."""
        try:
            async with AsyncExitStack() as stack:
                client = Client(
                    await self._transport(stack, values),
                    message_handler=self._hear,
                    client_info=Implementation(name="toolsrv", version=version("toolsrv")),
                )
                await stack.enter_async_context(client)
                if not ready.done():
                    ready.set_result(client)
                await stop.wait()
        except Exception as error:  # noqa: BLE001 - whatever a foreign server makes of the client
            if not ready.done():
                ready.set_exception(self._cause(error))

    async def _transport(self, stack: AsyncExitStack, values: Mapping[str, str]) -> Any:
        server = self.server
        if server.url:
            own = {*self._addresses.own, *_named_by_number(server)}
            addresses = AddressResolver(own=own, resolve=self._addresses.resolve)
            _check_encrypted(server, addresses)
            http = httpx2.AsyncClient(
                transport=CheckedTransport(
                    Connections(addresses, proxies=Proxies.of_environment())
                ),
                headers={name: values[name] for name in server.headers},
                timeout=httpx2.Timeout(START_S, read=None),
                trust_env=False,
            )
            await stack.enter_async_context(http)
            query = f"?{values[QUERY_MARK]}" if server.has_query else ""
            return streamable_http_client(server.url + query, http_client=http)
        env = {name: values[name] for name in server.env}
        self._process = StdioServer(server, env)
        return self._process.streams()

    def _values(self) -> dict[str, str]:
        found = {}
        for secret in self.server.secrets:
            name = self.server.key_name(secret)
            if not (value := self._keys(name)):
                raise UnreachableError(f"needs a value that is not kept: toolsrv keys set {name}")
            found[secret] = value
        return found

    async def _hear(self, message: Any) -> None:
        """List the tools again before the next call once the server says that they changed."""
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._listed_at = float("-inf")

    async def _fault(self, error: Exception) -> PolicyError | UnreachableError:
        told = self._cause(error)
        await self.close()
        return told

    def _cause(self, error: BaseException) -> PolicyError | UnreachableError:
        """Return what a failure comes to, with the end of what a process wrote on stderr."""
        if self._process is not None and self._process.is_flooding:
            return MessageTooLargeError(
                f"sent a message of more than {LINE_LIMIT:,} bytes and was ended"
            )
        return _cause(error, self._last_words())

    def _last_words(self) -> str:
        words = "" if self._process is None else self._process.last_words
        return clean(" ".join(words.split()), len(words))[-_ERROR_LENGTH:]


def _host_and_port(server: McpServer) -> tuple[str, int]:
    url = httpx2.URL(server.url)
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _check_encrypted(server: McpServer, addresses: AddressResolver) -> None:
    """Raise UnreachableError where a secret would go to a host that is not one's own in clear."""
    plain = not server.url.startswith("https:")
    if plain and server.secrets and not addresses.allows_any(*_host_and_port(server)):
        raise UnreachableError("needs a secret, and its address is not https")


def _named_by_number(server: McpServer) -> set[str]:
    """Return the server's host and port where a person has named this machine or an address."""
    host, port = _host_and_port(server)
    named = host == "localhost" or host.replace(".", "").isdigit() or ":" in host
    return {f"[{host}]:{port}" if ":" in host else f"{host}:{port}"} if named else set()


def _cause(error: BaseException, words: str) -> PolicyError | UnreachableError:
    """Return what a server's failure comes to; a refused address stays what it is."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, PolicyError | UnreachableError):
        return error
    told = clean(str(error), _ERROR_LENGTH)
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        told = "ended before it answered"
    elif isinstance(error, ValidationError):
        told = f"does not speak the protocol: {told}"
    elif isinstance(error, FileNotFoundError) and error.filename:
        told = (
            f"cannot be started: there is no program {clean(str(error.filename), _ERROR_LENGTH)!r}"
        )
    elif isinstance(error, OSError):
        told = f"cannot be started: {error.strerror or told}"
    else:
        told = f"cannot be used: {type(error).__name__}: {told}"
    return UnreachableError(f"{told} ({words})" if words else told)

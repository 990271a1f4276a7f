"""Calls of the tools of MCP servers: the tool must be the one that was accepted.

Nothing here is heavy: the client is imported with the first connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, McpTool
from toolsrv_runtime.calls.addresses import Addresses
from toolsrv_runtime.calls.exchange import Exchange, Limits
from toolsrv_runtime.calls.result import Kind
from toolsrv_runtime.errors import PolicyError
from toolsrv_runtime.mcp_client.servers import Keys, McpServer

if TYPE_CHECKING:  # imports the protocol
    from toolsrv_runtime.mcp_client.connection import Connection

_INVALID_PARAMS, _METHOD_NOT_FOUND, _TIMED_OUT = -32602, -32601, -32001


@dataclass(frozen=True)
class Listing:
    """What a server lists and says of itself."""

    definitions: tuple[Mapping[str, Any], ...]
    title: str
    about: str
    complete: bool


class ToolServers:
    """The MCP servers of a person, each with one kept connection. Belongs to one event loop."""

    def __init__(
        self,
        find: Callable[[str], McpServer | None],
        *,
        keys: Keys,
        addresses: Addresses | None = None,
    ) -> None:
        """Take what finds a server by its name, and what finds its secrets."""
        self._find = find
        self._keys = keys
        self._addresses = addresses or Addresses()
        self._open: dict[str, Connection] = {}

    async def listing(self, server: McpServer) -> Listing:
        """Return what a server lists now.

        Raises:
            UnreachableError: it cannot be started or reached.
            PolicyError: its address may not be called.
        """
        connection = await self._connection(server)
        definitions = await connection.definitions()
        client = await connection.client()
        info = client.server_info
        return Listing(
            definitions=tuple(definitions),
            title=(info.title or info.name) if info is not None else "",
            about=client.instructions or "",
            complete=connection.complete,
        )

    def can_call(self, api: Api) -> bool:
        """Whether a tool's server is known, and has not been seen with another definition of it."""
        tool = _tool(api)
        if self._find(tool.server) is None:
            return False
        connection = self._open.get(tool.server)
        known = None if connection is None else connection.known_print(tool.name)
        return known is None or known == tool.fingerprint

    async def call(self, api: Api, arguments: dict[str, Any], limits: Limits) -> Exchange:
        """Call the tool behind an API. A tool that only reads is called again after a break.

        Raises:
            PolicyError: it is not the tool that was accepted, or its address may not be called.
        """
        from toolsrv_runtime.mcp_client.connection import (  # noqa: PLC0415 - heavy
            FloodError,
            UnreachableError,
        )

        tool = _tool(api)
        server = await asyncio.to_thread(self._find, tool.server)
        if server is None:
            raise PolicyError(
                f"{api.id}: the MCP server {tool.server!r} is not known here",
                hint=f"import it again: toolsrv catalog import mcp:… --name {tool.server}",
            )
        connection = await self._connection(server)
        reads, sent = api.method == "GET", False
        for last in (not reads, True):
            try:
                prints = await connection.prints(fresh=not reads)
                if (fault := _changed(api, prints)) is not None:
                    return fault
                sent = True
                return await self._once(connection, tool, arguments, limits)
            except FloodError as error:
                return _unreachable(server, str(error), "too_large", sent=sent, reads=reads)
            except UnreachableError as error:
                if last or not sent:
                    return _unreachable(server, str(error), "network_error", sent=sent, reads=reads)
        raise AssertionError("the last try returns")

    async def _once(
        self, connection: Connection, tool: McpTool, arguments: dict[str, Any], limits: Limits
    ) -> Exchange:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - heavy

        from toolsrv_runtime.calls import body  # noqa: PLC0415 - with the client
        from toolsrv_runtime.mcp_client.results import exchange_of  # noqa: PLC0415

        try:
            answer = await connection.call(tool.name, arguments, limits.seconds)
        except TimeoutError:
            return Exchange("timed_out", 0, None, f"no answer within {limits.seconds:g} seconds")
        except MCPError as error:
            said = clean(body.without(str(error), connection.secrets), 300)
            if error.code == _TIMED_OUT:
                return Exchange("timed_out", 0, None, f"the server gave up: {said}")
            if error.code == _INVALID_PARAMS:
                return Exchange("bad_arguments", 400, None, f"the server refuses them: {said}")
            if error.code == _METHOD_NOT_FOUND:
                return Exchange("gone", 410, None, f"the server has no such tool: {said}")
            return Exchange("server_error", 500, None, f"MCP error {error.code}: {said}")
        except (RuntimeError, ValueError) as error:  # of pydantic, or of the tool's own schema
            said = clean(body.without(str(error), connection.secrets), 300)
            return Exchange(
                "server_error", 500, None, f"the answer breaks the tool's rules: {said}"
            )
        value = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return exchange_of(value, limits.size, connection.secrets)

    async def aclose(self) -> None:
        """Close all connections; commands that were started end."""
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.close() for one in connections))

    async def _connection(self, server: McpServer) -> Connection:
        from toolsrv_runtime.mcp_client.connection import Connection  # noqa: PLC0415 - heavy

        known = self._open.get(server.name)
        if known is not None and known.server != server:
            await known.close()
            known = None
        if known is None:
            known = self._open[server.name] = Connection(server, self._keys, self._addresses)
        return known


def _tool(api: Api) -> McpTool:
    if api.mcp is None:
        raise TypeError(f"{api.id} is no tool of an MCP server")
    return api.mcp


def _changed(api: Api, prints: Mapping[str, str]) -> Exchange | None:
    """Return what comes of a tool that is gone, None for one that is as it was accepted.

    Raises:
        PolicyError: its definition is another one now.
    """
    tool = _tool(api)
    found = prints.get(tool.name)
    if found == tool.fingerprint:
        return None
    if found is None:
        return Exchange("gone", 0, None, "the MCP server does not list this tool any more")
    raise PolicyError(
        f"{api.id}: the MCP server {tool.server!r} describes this tool otherwise than it was "
        "accepted",
        hint=f"see the change: toolsrv catalog import mcp:{tool.server}, then: toolsrv catalog "
        f"accept {tool.server}",
    )


def _unreachable(server: McpServer, why: str, kind: Kind, *, sent: bool, reads: bool) -> Exchange:
    error = f"the MCP server {server.name!r} {why}"
    if sent and not reads:
        error += "; the call may have been carried out, and is not repeated"
    return Exchange(kind, 0, None, error, sent=sent)

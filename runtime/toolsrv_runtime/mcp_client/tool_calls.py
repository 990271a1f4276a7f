"""Call tools of MCP servers, and convert their results to exchanges.

A tool is called only with the definition that was accepted. Structured content, texts, images and
resources become a JSON response with attachments. The MCP library is imported with the first
connection.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, McpTool
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls import response_body
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.exchange import CallLimits, Exchange
from toolsrv_runtime.calls.response_body import Attachment
from toolsrv_runtime.calls.result import ResultKind
from toolsrv_runtime.errors import PolicyError
from toolsrv_runtime.mcp_client import McpServer, SecretLookup

if TYPE_CHECKING:
    from toolsrv_runtime.mcp_client.connection import Connection

_ERROR_LENGTH = 300


def exchange_from_result(
    answer: Mapping[str, Any], limit: int, secrets: Collection[str]
) -> Exchange:
    """Return what a tool's answer comes to.

    Args:
        answer: the result of ``tools/call``, as JSON.
        limit: bytes of it that are taken.
        secrets: values that are taken out.
    """
    if too_deep(answer):
        return Exchange("not_json", 200, None, "the response is nested too deep")
    files: list[Attachment] = []
    response = _redact_value(_response(answer, files), secrets)
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    if len(text.encode(errors="replace")) > limit:
        shown = text[: response_body.EXCERPT_LENGTH]
        return Exchange("too_large", 200, shown, f"the response has more than {limit:,} bytes")
    if sum(one.size for one in files) > limit:
        return Exchange("too_large", 200, response, f"its files have more than {limit:,} bytes")
    kept = tuple(one for one in files if not one.contains_any(secrets))
    if answer.get("isError") is True:
        said = clean(response if isinstance(response, str) else json.dumps(response), _ERROR_LENGTH)
        return Exchange("bad_arguments", 422, response, f"the tool reports an error: {said}")
    return Exchange("ok", 200, response, "", files=kept)


def _response(answer: Mapping[str, Any], files: list[Attachment]) -> Any:
    blocks = answer.get("content")
    content = [_part(one, files) for one in blocks] if isinstance(blocks, list) else []
    structured = answer.get("structuredContent")
    if structured is not None:
        rest = [one for one in content if not _repeats(one, structured)]
        return {"structuredContent": structured, "content": rest} if rest else structured
    if len(content) == 1 and isinstance(content[0], str):
        return _value(content[0])
    return content or ""


def _part(block: Any, files: list[Attachment]) -> Any:
    """Return a block of content: a text as it is, of others what they say; bytes go to ``files``."""
    if not isinstance(block, dict):
        return block
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return block["text"]
    told = {key: one for key, one in block.items() if key not in ("annotations", "_meta")}
    resource = told.get("resource")
    if isinstance(resource, dict):
        return told | {"resource": _without_bytes(resource, "blob", files)}
    return _without_bytes(told, "data", files)


def _without_bytes(block: dict[str, Any], key: str, files: list[Attachment]) -> dict[str, Any]:
    """Return what holds bytes in base64 with their size instead, and keep them as a file."""
    try:
        content = base64.b64decode(block[key], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        return block
    name = str(block.get("uri") or block.get("name") or "").rpartition("/")[2]
    files.append(Attachment.from_bytes(content, str(block.get("mimeType") or ""), name))
    return {name: one for name, one in block.items() if name != key} | {"bytes": len(content)}


def _repeats(part: Any, structured: Any) -> bool:
    if not isinstance(part, str):
        return False
    value = _value(part)
    if value == structured:
        return True
    # A plain result is wrapped in an object, because structured content had to be one.
    wrapped = list(structured.values()) if isinstance(structured, dict) else []
    return wrapped in ([value], [part])


def _value(text: str) -> Any:
    """Return the JSON object or list that a text spells, else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _redact_value(value: Any, secrets: Collection[str]) -> Any:
    if not secrets:
        return value
    if isinstance(value, str):
        return response_body.redact(value, secrets)
    if isinstance(value, dict):
        return {
            response_body.redact(key, secrets): _redact_value(one, secrets)
            for key, one in value.items()
        }
    if isinstance(value, Sequence):
        return [_redact_value(one, secrets) for one in value]
    return value


_INVALID_PARAMS, _METHOD_NOT_FOUND, _TIMED_OUT = -32602, -32601, -32001


@dataclass(frozen=True)
class ServerListing:
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
        keys: SecretLookup,
        addresses: AddressResolver | None = None,
    ) -> None:
        """Take what finds a server by its name, and what finds its secrets."""
        self._find = find
        self._keys = keys
        self._addresses = addresses or AddressResolver()
        self._open: dict[str, Connection] = {}

    async def listing(self, server: McpServer) -> ServerListing:
        """Return what a server lists now.

        Raises:
            UnreachableError: it cannot be started or reached.
            PolicyError: its address may not be called.
        """
        connection = await self._connection(server)
        definitions = await connection.definitions()
        client = await connection.client()
        info = client.server_info
        return ServerListing(
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

    async def call(self, api: Api, arguments: dict[str, Any], limits: CallLimits) -> Exchange:
        """Call the tool behind an API. A tool that only reads is called again after a break.

        Raises:
            PolicyError: it is not the tool that was accepted, or its address may not be called.
        """
        from toolsrv_runtime.mcp_client.connection import (  # noqa: PLC0415 - loads mcp
            MessageTooLargeError,
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
            except MessageTooLargeError as error:
                return _unreachable(server, str(error), "too_large", sent=sent, reads=reads)
            except UnreachableError as error:
                if last or not sent:
                    return _unreachable(server, str(error), "network_error", sent=sent, reads=reads)
        raise AssertionError("the last try returns")

    async def _once(
        self, connection: Connection, tool: McpTool, arguments: dict[str, Any], limits: CallLimits
    ) -> Exchange:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - heavy

        from toolsrv_runtime.calls import response_body  # noqa: PLC0415 - with the client

        try:
            answer = await connection.call(tool.name, arguments, limits.seconds)
        except TimeoutError:
            return Exchange("timed_out", 0, None, f"no answer within {limits.seconds:g} seconds")
        except MCPError as error:
            said = clean(response_body.redact(str(error), connection.secrets), 300)
            if error.code == _TIMED_OUT:
                return Exchange("timed_out", 0, None, f"the server gave up: {said}")
            if error.code == _INVALID_PARAMS:
                return Exchange("bad_arguments", 400, None, f"the server refuses them: {said}")
            if error.code == _METHOD_NOT_FOUND:
                return Exchange("gone", 410, None, f"the server has no such tool: {said}")
            return Exchange("server_error", 500, None, f"MCP error {error.code}: {said}")
        except (RuntimeError, ValueError) as error:  # of pydantic, or of the tool's own schema
            said = clean(response_body.redact(str(error), connection.secrets), 300)
            return Exchange(
                "server_error", 500, None, f"the answer breaks the tool's rules: {said}"
            )
        value = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return exchange_from_result(value, limits.size, connection.secrets)

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


def _unreachable(
    server: McpServer, why: str, kind: ResultKind, *, sent: bool, reads: bool
) -> Exchange:
    error = f"the MCP server {server.name!r} {why}"
    if sent and not reads:
        error += "; the call may have been carried out, and is not repeated"
    return Exchange(kind, 0, None, error, sent=sent)

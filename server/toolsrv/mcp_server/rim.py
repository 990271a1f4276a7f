"""The rim of the MCP server: every error becomes one clear tool error, never a traceback.

What the model can mend (a wrong argument, an unknown id) says what to change; a fault says where
its details were written.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent
from mcp.types import Tool as ToolEntry
from pydantic import BaseModel, ValidationError

from toolsrv import faults
from toolsrv.mcp_server.hints import for_client
from toolsrv.plain import one_line
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.memory import AGAIN, ran_short

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

log = logging.getLogger(__name__)


class ToolsrvServer(MCPServer[None]):
    """An ``MCPServer`` that refuses unknown arguments and tells errors in one line."""

    fault_folder: Path
    close_runs: Callable[[], Coroutine[Any, Any, None]]
    on_listed: Callable[[], None] | None = None

    async def serve_streams(
        self, inbox: ReadStream[SessionMessage | Exception], outbox: WriteStream[SessionMessage]
    ) -> None:
        """Serve one client, in the era that it opens with, until its messages end."""
        server = self._lowlevel_server
        await server.run(inbox, outbox, server.create_initialization_options())

    async def list_tools(self) -> list[ToolEntry]:
        """Return the tools, and tell that a client has them."""
        tools = await super().list_tools()
        if self.on_listed is not None:
            self.on_listed()
        return tools

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error is a result with ``is_error``."""
        tools = {tool.name: tool for tool in await super().list_tools()}
        if name not in tools:
            return failure(f"unknown tool {name[:80]!r}", f"tools: {', '.join(tools)}")
        known = list(tools[name].input_schema.get("properties", {}))
        if unknown := [key for key in arguments if key not in known]:
            return failure(*_unknown_argument(unknown[0], known))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return self._told(error)

    def _told(self, error: ToolError) -> CallToolResult:
        match error.__cause__:
            case ToolsrvError() as cause:
                return failure(cause.message, cause.hint)
            case ValidationError() as cause:
                return failure(_rejected(cause))
            case Exception() as cause if ran_short(cause):
                return failure(f"memory ran short: {cause or type(cause).__name__}", AGAIN)
            case Exception() as cause:
                line = faults.summary(cause, self.fault_folder)
                log.error(line)
                return failure(line)
            case _:
                return failure(str(error))


def success(text: str, view: BaseModel) -> CallToolResult:
    """Return a result as readable text and as typed data."""
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=view.model_dump(mode="json"),
    )


def failure(message: str, hint: str = "", view: BaseModel | None = None) -> CallToolResult:
    """Return a tool error that says what is wrong and what to do next."""
    text = f"Error: {message}" + (f"\nHint: {for_client(hint)}" if hint else "")
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=view.model_dump(mode="json") if view is not None else None,
        is_error=True,
    )


def _unknown_argument(name: str, known: list[str]) -> tuple[str, str]:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown argument {name[:80]!r}", f"{hint}arguments: {', '.join(known)}"


def _rejected(error: ValidationError) -> str:
    parts = []
    for one in error.errors(include_url=False)[:5]:
        place = ".".join(str(part) for part in one["loc"])
        given = "" if one["type"] == "missing" else f" (got {one_line(repr(one['input']), 60)})"
        parts.append(f"argument {place!r}: {one['msg'][:1].lower()}{one['msg'][1:]}{given}")
    return "; ".join(parts)

"""The rim of the MCP server: every error becomes one clear tool error, never a traceback.

What the model can mend (a wrong argument, an unknown id) says what to change; a fault says where
its details were written.
"""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult
from mcp.types import Tool as ToolEntry
from pydantic import AnyUrl, ValidationError

from toolsrv import faults
from toolsrv.mcp_server.results import noted, refusal, refused
from toolsrv.plain import one_line
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.memory import AGAIN, ran_short

if TYPE_CHECKING:
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

log = logging.getLogger(__name__)
CLIENT_ARGUMENTS = frozenset({"wait_for_previous"})
"""Arguments that clients add for themselves and pass on: Gemini CLI to every call."""


class ToolsrvServer(MCPServer[None]):
    """An ``MCPServer`` that refuses misspelt arguments and tells errors in one line."""

    fault_folder: Path
    close_runs: Callable[[], Coroutine[Any, Any, None]]
    read_file: Callable[[str], list[ReadResourceContents] | None]
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

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource; a file that a call brought has a media type of its own."""
        found = self.read_file(str(uri))
        return await super().read_resource(uri, context) if found is None else found

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; an error is a result with ``is_error``."""
        tools = {tool.name: tool for tool in await super().list_tools()}
        if name not in tools:
            return refusal(f"unknown tool {name[:80]!r}", f"tools: {', '.join(tools)}")
        schema = tools[name].input_schema
        known = {*schema["properties"], *CLIENT_ARGUMENTS}
        unknown = [key for key in arguments if key not in known]
        if problem := _misspelt(unknown, arguments, schema):
            return problem
        given = _given(arguments, schema)
        try:
            result = await super().call_tool(name, given, context)
        except ToolError as error:
            result = self._told(error)
        if isinstance(result, InputRequiredResult):
            return result
        return noted(result, [one_line(key, 80) for key in unknown[:20]])

    def _told(self, error: ToolError) -> CallToolResult:
        match error.__cause__:
            case ToolsrvError() as cause:
                return refused(cause)
            case ValidationError() as cause:
                return refusal(_rejected(cause))
            case Exception() as cause if ran_short(cause):
                return refusal(f"memory ran short: {cause or type(cause).__name__}", AGAIN)
            case Exception() as cause:
                line = faults.summary(cause, self.fault_folder)
                log.error(line)
                return refusal(line)
            case _:
                return refusal(str(error))


def _misspelt(
    unknown: Iterable[str], arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> CallToolResult | None:
    """Return the refusal of an argument that is another one's name misspelt, or stands in an object."""
    properties = schema["properties"]
    known = ", ".join(properties)
    missing = [key for key in schema.get("required", ()) if key not in arguments]
    for key in unknown:
        said = f"unknown argument {key[:80]!r}"
        for name, one in properties.items():
            if key in one.get("properties", {}):
                return refusal(said, f"it stands in the object {name!r}")
        if near := difflib.get_close_matches(key, properties, n=1):
            others = "".join(
                f"; argument {one!r}: field required" for one in missing if one != near[0]
            )
            return refusal(f"{said}{others}", f"did you mean {near[0]!r}? arguments: {known}")
    return None


def _given(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a tool has and that are given.

    Clients fill what they have no value for with null or "", and one id stands for a list of it.
    """
    given = {}
    for key, one in schema["properties"].items():
        value = arguments.get(key)
        if key not in arguments or (value in (None, "") and key not in schema.get("required", ())):
            continue
        if one.get("type") == "array" and isinstance(value, str):
            value = [value]
        elif "properties" in one and isinstance(value, dict):
            value = {name: inner for name, inner in value.items() if inner not in (None, "")}
        given[key] = value
    return given


def _rejected(error: ValidationError) -> str:
    parts = []
    for one in error.errors(include_url=False)[:5]:
        place = ".".join(str(part) for part in one["loc"])
        got = json.dumps(one["input"], ensure_ascii=False, default=repr)
        given = "" if one["type"] == "missing" else f" (got {one_line(got, 60)})"
        said = one["msg"].partition(" or instance of ")[0]
        parts.append(f"argument {place!r}: {said[:1].lower()}{said[1:]}{given}")
    return "; ".join(parts)

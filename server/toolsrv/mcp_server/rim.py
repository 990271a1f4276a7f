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
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Resource,
)
from mcp.types import Tool as ToolEntry
from pydantic import AnyUrl, ValidationError

from toolsrv import faults
from toolsrv.background import in_thread
from toolsrv.mcp_server.results import noted, refusal, refused
from toolsrv.plain import one_line
from toolsrv_registry.catalog_state import catalog_state
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
    describe: Callable[[], dict[str, str]]
    described_for: str | None
    recent_runs: Callable[[], Coroutine[Any, Any, list[Resource]]]
    on_last_line: Callable[[], None]

    async def serve_streams(
        self, inbox: ReadStream[SessionMessage | Exception], outbox: WriteStream[SessionMessage]
    ) -> None:
        """Serve one client, in the era that it opens with, until its messages end."""
        server = self._lowlevel_server
        await server.run(inbox, outbox, server.create_initialization_options())

    async def list_tools(self) -> list[ToolEntry]:
        """Return the tools, and tell that a client has them."""
        await self.described()
        tools = await super().list_tools()
        if self.on_listed is not None:
            self.on_listed()
        return tools

    async def described(self) -> tuple[str, ...]:
        """Return the tools' descriptions, brought up to date where the catalogs have changed."""
        state = await in_thread(lambda: catalog_state(self.fault_folder))
        if state is not None and state != self.described_for:
            descriptions = await in_thread(self.describe)
            self.described_for = state
            for tool in self._tool_manager.list_tools():
                tool.description = descriptions[tool.name]
        return tuple(tool.description for tool in self._tool_manager.list_tools())

    async def list_resources(self) -> list[Resource]:
        """Return the runs of late: everything else is found by its template."""
        return [*await super().list_resources(), *await self.recent_runs()]

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[None, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt.

        Raises:
            MCPError: There is no such prompt, or an argument is missing.
        """
        prompts = {one.name: one for one in await super().list_prompts()}
        if name not in prompts:
            known = ", ".join(prompts)
            raise MCPError(INVALID_PARAMS, f"unknown prompt {name[:80]!r}; there are: {known}")
        taken = prompts[name].arguments or []
        given = {key: value for key, value in (arguments or {}).items() if value not in (None, "")}
        if missing := [one.name for one in taken if one.required and one.name not in given]:
            raise MCPError(INVALID_PARAMS, f"argument {missing[0]!r}: field required")
        known_given = {one.name: given[one.name] for one in taken if one.name in given}
        return await super().get_prompt(name, known_given, context)

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

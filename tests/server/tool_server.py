"""A small real MCP server for tests, over stdio or HTTP; what it does wrong is named on its command line.

``tool_server.py [--http PORT] [--state FILE] [--many N] [--garbage] [--mute]``: ``FILE`` holds JSON
that changes what it lists (``{"about": …, "berth": …, "gone": true}``); it counts its
starts and calls beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import anyio
import mcp.types as t
from mcp.server import Server
from mcp.server.stdio import stdio_server

PAGE = 100
PNG = "iVBORw0KGgo="


def main() -> None:
    """Serve until standard input closes, or for ever over HTTP."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--state", type=Path, default=Path(os.devnull))
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--mute", action="store_true")
    parser.add_argument("--token", default="")
    given = parser.parse_args()
    _count(given.state, "starts")
    if given.mute:
        time.sleep(3600)
    if given.garbage:
        os.write(1, b"Welcome! {not json\n\xff\x00\x1b[31m\n")
    server = _Tools(given.state, given.many).server()
    if given.http:
        _serve_http(server, given.http, given.token)
    else:
        anyio.run(_serve_stdio, server)


class _Tools:
    def __init__(self, state: Path, many: int) -> None:
        self._state = state
        self._many = many

    def server(self) -> Server[Any]:
        return Server(
            "tool-server",
            title="Harbour Desk",
            instructions="Tides and ships.",
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, _: Any, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        tools = self._tools()
        start = int(params.cursor) if params is not None and params.cursor else 0
        after = start + PAGE
        return t.ListToolsResult(
            tools=tools[start:after], next_cursor=str(after) if after < len(tools) else None
        )

    def _tools(self) -> list[t.Tool]:
        state = _read(self._state)
        about = state.get("about", "Tell the tide at a harbour.")
        berth = state.get("berth", "Book a berth.")
        reads = t.ToolAnnotations(read_only_hint=True)
        tools = [
            _tool("tide", about, {"harbour": {"type": "string"}}, ["harbour"], reads),
            _tool("book_berth", berth, BERTH, ["ship"], schema=BERTH_SCHEMA),
            _tool("погода", "Weather at sea.", {}, [], reads),
            _tool("picture", "A picture of the harbour.", {}, [], reads),
            _tool("fail", "Fails with a reason.", {}, [], reads),
            _tool("die", "Ends the server.", {}, [], reads),
            _tool("sink", "Ends the server while it writes.", {}, []),
            _tool("hang", "Never answers.", {}, [], reads),
            _tool("big", "A large answer.", {"size": {"type": "integer"}}, ["size"], reads),
            _tool("environment", "Its variables.", {}, [], reads),
            _tool("structured", "Structured and text.", {}, [], reads),
        ]
        if state.get("gone"):
            tools = tools[1:]
        tools += [_tool(f"n{i}", f"Number {i}.", {}, [], reads) for i in range(self._many)]
        return tools

    async def _call(self, _: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        arguments = params.arguments or {}
        _count(self._state, f"calls of {params.name}")
        match params.name:
            case "tide":
                return _texts(json.dumps({"harbour": arguments["harbour"], "metres": 3.2}))
            case "book_berth":
                return _texts(json.dumps(arguments))
            case "picture":
                return t.CallToolResult(
                    content=[
                        t.TextContent(type="text", text="Here it is"),
                        t.ImageContent(type="image", data=PNG, mime_type="image/png"),
                        t.ResourceLink(type="resource_link", uri="file:///pier", name="pier"),
                    ]
                )
            case "fail":
                return t.CallToolResult(
                    is_error=True, content=[t.TextContent(type="text", text="no such harbour")]
                )
            case "die" | "sink":
                os._exit(3)
            case "hang":
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    _count(self._state, "cancelled")
                    raise
            case "big":
                return _texts("x" * arguments["size"])
            case "environment":
                return _texts(json.dumps(dict(os.environ)))
            case "structured":
                value = {"tide": "high"}
                return t.CallToolResult(
                    structured_content=value,
                    content=[t.TextContent(type="text", text=json.dumps(value))],
                )
        return _texts(f"called {params.name}")


BERTH: dict[str, Any] = {
    "ship": {"$ref": "#/$defs/Ship"},
    "nights": {"type": "integer", "minimum": 1},
    "email": {"type": "string"},
    "phone": {"type": "string"},
}
BERTH_SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$defs": {
        "Ship": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "length": {"type": "number"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
    "anyOf": [{"required": ["email"]}, {"required": ["phone"]}],
    "additionalProperties": False,
}


def _tool(
    name: str,
    about: str,
    properties: dict[str, Any],
    required: list[str],
    hints: t.ToolAnnotations | None = None,
    schema: dict[str, Any] | None = None,
) -> t.Tool:
    head = {"type": "object", "properties": properties, "required": required}
    return t.Tool(
        name=name, description=about, input_schema=head | (schema or {}), annotations=hints
    )


def _texts(*texts: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(type="text", text=one) for one in texts])


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def _count(state: Path, what: str) -> None:
    if state != Path(os.devnull):
        with state.with_suffix(".log").open("a") as log:
            log.write(f"{what}\n")


async def _serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _serve_http(server: Server[Any], port: int, token: str) -> None:
    import uvicorn
    from starlette.responses import PlainTextResponse

    app = server.streamable_http_app(host="127.0.0.1")

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and given != token:
            await PlainTextResponse("no", status_code=401)(scope, receive, send)
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()

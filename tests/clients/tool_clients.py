"""Published clients without a model: the commands that list our tools and call one.

Each reads the file ``.mcp.json`` of a work folder as ``toolsrv connect claude-code --scope project``
writes it. Of a command's words ``CONFIG`` stands for that file.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.clients.installed import Package

API = "Data/country_facts/capital_city"
_PAIRS = (f"id={API}", 'arguments={"country":"Peru"}')
_OBJECT = f'{{"id":"{API}","arguments":{{"country":"Peru"}}}}'


@dataclass(frozen=True)
class ToolClient:
    """One client. ``listing`` prints all tools, ``calling`` the response of ``call_api``.

    ``first`` and ``last`` open and close a session. ``again`` is what it says where its own limit
    for a start was too short for a loaded machine.
    """

    package: Package
    title: str
    calling: tuple[str, ...]
    listing: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    http: bool = True
    again: str = ""


_INSPECTOR = ("--cli", "--config", "CONFIG", "--server", "toolsrv", "--method")
TOOL_CLIENTS = (
    ToolClient(
        Package("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector"), "MCP Inspector",
        calling=(*_INSPECTOR, "tools/call", "--tool-name", "call_api", "--tool-arg", *_PAIRS),
        listing=(*_INSPECTOR, "tools/list", "--strict"),
    ),
    ToolClient(
        Package("mcporter", "0.12.3", "mcporter"), "mcporter",
        calling=("--config", "CONFIG", "call", "toolsrv.call_api", *_PAIRS),
        listing=("--config", "CONFIG", "list", "toolsrv", "--schema", "--json"),
    ),
    ToolClient(
        Package("@apify/mcpc", "0.2.6", "mcpc"), "mcpc",
        calling=("--json", "@own", "tools-call", "call_api", _OBJECT),
        listing=("--json", "@own", "tools-list"),
        first=("--json", "connect", "CONFIG:toolsrv", "@own"),
        last=("close", "@own"),
        again="within timeout",
    ),
    ToolClient(
        Package("@wong2/mcp-cli", "2.0.0", "mcp-cli"), "mcp-cli",
        calling=("--config", "CONFIG", "call-tool", "toolsrv:call_api", "--args", _OBJECT),
        http=False,  # its file has programs only, its --url no headers
    ),
    ToolClient(
        Package("fastmcp", "4.2.3", "fastmcp", python=True), "FastMCP",
        calling=("call", "CONFIG", "call_api", *_PAIRS),
        listing=("list", "CONFIG", "--input-schema", "--json"),
    ),
)  # fmt: skip
REMOTE = Package("mcp-remote", "0.15.1", "mcp-remote")
PROXY = Package("mcpo", "0.0.20", "mcpo", python=True, needs=("mcp<2", "fastapi<0.120"))
"""Newer versions of these two break it."""

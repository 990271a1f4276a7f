"""Files of MCP clients on a machine that is none: where they are, and what they hold."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from click.testing import Result

from toolsrv.clients import jsonc
from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import Machine, System

FOREIGN = {
    "json": """{
  "%s": {
    "toolsrv": {"command": "/opt/mine", "args": ["serve"], "env": {"A": "b"}}, // mine
    "other": {"command": "x"}
  }
}
""",
    "toml": """# mine
[mcp_servers.toolsrv]
command = "/opt/mine"  # mine
args = ["serve"]

[mcp_servers.toolsrv.env]
A = "b"
""",
    "yaml": """extensions:
  toolsrv:
    cmd: /opt/mine  # mine
    args: [serve]
    envs: {A: b}
  other:
    cmd: x
""",
}


def machine(home: Path, system: System = "linux", **environment: str) -> Machine:
    """Return a machine with this home."""
    return Machine(system, home, environment)


def parsed(client: str, text: str) -> dict[str, dict[str, object]]:
    """Return what a client's file holds."""
    value: dict[str, dict[str, object]]
    match CLIENTS[client].form:
        case "toml":
            value = tomllib.loads(text)
        case "yaml":
            value = yaml.safe_load(text)
        case _:
            value = jsonc.parse(text).plain
    return value


def foreign(client: str) -> str:
    """Return a file with an entry of ours that another program wrote."""
    one = CLIENTS[client]
    return FOREIGN[one.form].replace("%s", one.keys[0])


def listed(run: Callable[..., Result]) -> dict[str, dict[str, Any]]:
    """Return what ``connect --list`` says of each client."""
    return {row["client"]: row for row in json.loads(run("connect", "--list", "--json").stdout)}

"""Clients whose configuration is shown to be pasted: it is a program, a form or a database."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolsrv.clients.known import NAME
from toolsrv.clients.started import Start


@dataclass(frozen=True)
class Printed:
    """One of these clients: ``where`` its user puts the text."""

    title: str
    where: str
    text: Callable[[Start], str]


def _json(start: Start, **more: Any) -> str:
    entry = {"command": start.command, "args": list(start.arguments), "env": dict(start.env)}
    return json.dumps({"mcpServers": {NAME: {**entry, **more}}}, indent=2, ensure_ascii=False)


def _yaml(document: Any) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000).rstrip()


def _continue(start: Start) -> str:
    server = {
        "name": NAME,
        "type": "stdio",
        "command": start.command,
        "args": list(start.arguments),
        "env": dict(start.env),
    }
    return _yaml({"name": NAME, "version": "1.0.0", "schema": "v1", "mcpServers": [server]})


def _libre_chat(start: Start) -> str:
    server = {
        "type": "stdio",
        "command": start.command,
        "args": list(start.arguments),
        "env": dict(start.env),
        "timeout": 300_000,
        "initTimeout": 60_000,
        "serverInstructions": True,
    }
    return _yaml({"mcpServers": {NAME: server}})


def _crush(start: Start) -> str:
    """Return a line of ``crushrc``, in which the shell expands nothing."""
    words = ["mcp", "add", NAME, "--command", start.command]
    for one in start.arguments:
        words += ["--args", one]
    for name, value in start.env.items():
        words += ["--env", name, value]
    return shlex.join(words)


def _open_webui(_: Start) -> str:
    return (
        "toolsrv serve --http\n"
        "type MCP (Streamable HTTP), URL http://127.0.0.1:8765/mcp, bearer: the token that it prints"
    )


PRINTED: Mapping[str, Printed] = {
    "continue": Printed("Continue", ".continue/mcpServers/toolsrv.yaml", _continue),
    "librechat": Printed("LibreChat", "librechat.yaml", _libre_chat),
    "jetbrains": Printed("JetBrains AI Assistant", "Settings, Tools, AI Assistant, MCP", _json),
    "open-webui": Printed("Open WebUI", "Settings, External Tools", _open_webui),
    "crush": Printed("Crush", "crushrc", _crush),
}

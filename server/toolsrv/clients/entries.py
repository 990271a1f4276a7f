"""The entry of a server in each client's words: one that is started, one that is connected to.

Units of time-outs differ: seconds in Cline, Codex, Goose and Zed, milliseconds in opencode and
Amazon Q. ``args`` is always written, since some expect the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from toolsrv_registry.errors import UsageError

CALL_S = 300
START_S = 60
"""What a loaded machine may take until the tools are listed."""

Entry = dict[str, Any]
_ABOUT = "Finds APIs and solves whole tasks with a local model."


def stdio_entry(
    client: str,
    name: str,
    command: PurePath,
    arguments: Sequence[str],
    env: Mapping[str, str],
    home: Path,
) -> Entry:
    """Return the entry that starts a command with these variables."""
    program, words, variables = str(command), list(arguments), dict(env)
    if client == "goose":
        return {
            "name": name, "type": "stdio", "enabled": True, "cmd": program, "args": words,
            "envs": variables, "timeout": CALL_S,
        }  # fmt: skip
    if client == "opencode":
        return {
            "type": "local", "command": [program, *words], "environment": variables,
            "enabled": True, "timeout": START_S * 1000,
        }  # fmt: skip
    entry: Entry = {"command": program, "args": words}
    if variables or client in _WITH_ENV:
        entry["env"] = variables
    before, after = _MORE.get(client, ({}, {}))
    more = {"working_directory": str(home)} if client == "warp" else {}
    return {**before, **entry, **after, **more}


_WITH_ENV = frozenset({"cline", "zed", "copilot", "jan", "kiro"})
_MORE: Mapping[str, tuple[Entry, Entry]] = {
    "claude-code": ({"type": "stdio"}, {}),
    "vs-code": ({"type": "stdio"}, {}),
    "vs-code-insiders": ({"type": "stdio"}, {}),
    "codex": (
        {},
        {"required": True, "startup_timeout_sec": START_S, "tool_timeout_sec": CALL_S},
    ),
    "zed": ({}, {"timeout": CALL_S}),
    "cline": ({"type": "stdio"}, {"disabled": False, "timeout": CALL_S}),
    "copilot": ({"type": "local"}, {"tools": ["*"]}),
    "jan": ({}, {"active": True}),
    "kiro": ({}, {"disabled": False}),
    "amazon-q": ({}, {"timeout": CALL_S * 1000}),
}
"""Keys before and after ``command``, ``args`` and ``env``."""


def http_entry(client: str, name: str, url: str, headers: Mapping[str, str]) -> Entry:
    """Return the entry that connects to an address.

    Raises:
        UsageError: the client's file has no entries of that kind.
    """
    shape = _HTTP.get(client)
    if shape is None:
        raise UsageError(
            f"{client} takes no HTTP entry in its file", hint="register it on stdio, without --http"
        )
    return shape(name, url, dict(headers))


def _plain(**before: Any) -> Callable[[str, str, Entry], Entry]:
    return lambda _, url, headers: {**before, "url": url, "headers": headers}


_HTTP: Mapping[str, Callable[[str, str, Entry], Entry]] = {
    "claude-code": _plain(type="http"),
    "vs-code": _plain(type="http"),
    "vs-code-insiders": _plain(type="http"),
    "cursor": _plain(),
    "lm-studio": _plain(),
    "zed": _plain(),
    "warp": _plain(),
    "kiro": _plain(),
    "cline": _plain(type="streamableHttp"),
    "roo": _plain(type="streamable-http"),
    "anythingllm": _plain(type="streamable"),
    "opencode": _plain(type="remote", enabled=True),
    "windsurf": lambda _, url, headers: {"serverUrl": url, "headers": headers},
    "gemini": lambda _, url, headers: {"httpUrl": url, "headers": headers},
    "codex": lambda _, url, headers: {"url": url, "http_headers": headers},
    "copilot": lambda _, url, headers: {
        "type": "http", "url": url, "headers": headers, "tools": ["*"],
    },
    "jan": lambda _, url, headers: {
        "type": "http", "url": url, "headers": headers, "command": "", "args": [], "active": True,
    },
    "goose": lambda name, url, headers: {
        "name": name, "type": "streamable_http", "description": _ABOUT, "enabled": True,
        "uri": url, "headers": headers, "envs": {}, "timeout": CALL_S,
    },
}  # fmt: skip

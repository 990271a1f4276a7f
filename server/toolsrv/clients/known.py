"""MCP clients: their names, the form of their files, and a server's entry in each one's format.

Writes an entry that starts a program or connects to an address, and reads one back. Clients without
a file of their own get a text to paste. Units of time-outs differ: seconds in Cline, Codex, Goose
and Zed, milliseconds in opencode and Amazon Q. ``args`` is always written, since some expect the
key.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, Literal
from urllib.parse import urlsplit

from toolsrv.clients.places import PROJECT, Machine, is_used, places
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
    "qwen": lambda _, url, headers: {"httpUrl": url, "headers": headers},
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


Form = Literal["json", "toml", "yaml"]
NAME = "toolsrv"
"""The key of our entry."""
_SERVERS = ("mcpServers",)
_SESSION = "start a new session"
_RESTART = "restart it"


@dataclass(frozen=True)
class Client:
    """One client. ``keys`` lead to the table of its servers; ``then`` is what its user does.

    ``opens`` are the versions of the protocol that it opens with, as far as is known.
    """

    id: str
    title: str
    then: str
    form: Form = "json"
    keys: tuple[str, ...] = _SERVERS
    opens: tuple[str, ...] = ("2025-11-25", "2025-06-18")

    def path(self, machine: Machine) -> Path:
        """Return the place of the client's user-wide configuration file, the first of ``paths``."""
        return self.paths(machine)[0]

    def paths(self, machine: Machine) -> tuple[Path, ...]:
        """Return the configuration files of every installation of the client; never none."""
        return places(self.id, machine)

    def project_path(self, folder: Path) -> Path | None:
        """Return the client's file in a work tree, None where it reads none."""
        return folder / PROJECT[self.id] if self.id in PROJECT else None

    def found(self, machine: Machine) -> bool:
        """Whether the client has been used on this machine: its file or its folder is there."""
        return any(is_used(self.id, one, machine) for one in self.paths(machine))

    def entry(
        self,
        command: PurePath,
        arguments: tuple[str, ...],
        env: Mapping[str, str] | None = None,
        home: Path | None = None,
    ) -> dict[str, Any]:
        """Return the entry that starts ``command`` in this client's words.

        ``env`` are the variables that it sets: clients hand on few of their own or none. ``home``
        is where it is started, for a client whose entry says so.
        """
        return stdio_entry(self.id, NAME, command, arguments, env or {}, home or Path.home())

    def http_entry(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the entry that connects to ``url``. Raises UsageError where there is no such one."""
        return http_entry(self.id, NAME, url, headers)


CLIENTS = {
    one.id: one
    for one in (
        Client("claude-desktop", "Claude Desktop", "quit it fully, start it again"),
        Client("claude-code", "Claude Code", _SESSION, opens=("2026-07-28", "2025-11-25")),
        Client("cursor", "Cursor", "restart it, or reload its MCP servers"),
        Client("vs-code", "VS Code", "start toolsrv in its list of servers", keys=("servers",)),
        Client(
            "vs-code-insiders",
            "VS Code Insiders",
            "start toolsrv in its list of servers",
            keys=("servers",),
        ),
        Client("lm-studio", "LM Studio", "switch toolsrv on in its Program tab"),
        Client("goose", "Goose", _SESSION, form="yaml", keys=("extensions",)),
        Client(
            "codex", "Codex", _SESSION, form="toml", keys=("mcp_servers",), opens=("2025-06-18",)
        ),
        Client("windsurf", "Windsurf, Devin Desktop", "refresh its MCP servers"),
        Client("zed", "Zed", "save its settings, or restart it", keys=("context_servers",)),
        Client("cline", "Cline", "it reads its file again by itself", opens=("2024-11-05",)),
        Client("roo", "Roo Code", "restart its MCP servers"),
        Client("gemini", "Gemini CLI", _RESTART),
        Client("qwen", "Qwen Code", _RESTART),
        Client("antigravity", "Antigravity", _RESTART),
        Client("copilot", "Copilot CLI", _SESSION, opens=("2026-07-28", "2025-11-25")),
        Client("jan", "Jan", "switch toolsrv on in its settings"),
        Client("anythingllm", "AnythingLLM", "refresh its agent skills"),
        Client("warp", "Warp", _RESTART),
        Client("junie", "Junie", "apply in its settings"),
        Client("kiro", "Kiro", _RESTART),
        Client("amazon-q", "Amazon Q", _RESTART),
        Client("opencode", "opencode", _RESTART, keys=("mcp",)),
    )
}


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MCP_PATH = "/mcp"


@dataclass(frozen=True)
class ServerCommand:
    """A command line and the variables that the entry sets."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """What two starts that do the same have in common."""
        return (self.command, self.arguments, tuple(sorted(self.env.items())))

    @property
    def line(self) -> str:
        """The command line as people read it."""
        return " ".join((self.command, *self.arguments))

    @property
    def is_stale(self) -> bool:
        """Whether the program is no longer there."""
        if "/" in self.command or "\\" in self.command:
            return not Path(self.command).is_file()
        return shutil.which(self.command) is None


def server_command(entry: Any) -> ServerCommand | None:
    """Return what an entry starts; None for one that starts nothing, or nothing readable.

    Goose writes ``cmd`` and ``envs``, opencode one list and ``environment``, Cline's own command a
    table ``transport``.
    """
    if not isinstance(entry, Mapping):
        return None
    if isinstance(inner := entry.get("transport"), Mapping):
        entry = inner
    program, arguments = entry.get("command", entry.get("cmd")), entry.get("args", [])
    if isinstance(program, list) and program:
        program, arguments = program[0], program[1:]
    if not isinstance(program, str) or not isinstance(arguments, list):
        return None
    if not all(isinstance(one, str) for one in arguments):
        return None
    env = entry.get("env") or entry.get("envs") or entry.get("environment") or {}
    named = env.items() if isinstance(env, Mapping) else ()
    return ServerCommand(program, tuple(arguments), {str(key): str(value) for key, value in named})


def server_url(entry: Any) -> str:
    """Return the address that an entry connects to, "" for one that starts a program."""
    if not isinstance(entry, Mapping):
        return ""
    if isinstance(inner := entry.get("transport"), Mapping):
        entry = inner
    found = next(
        (entry[key] for key in ("url", "serverUrl", "httpUrl", "uri") if entry.get(key)), ""
    )
    return found if isinstance(found, str) else ""


def is_toolsrv_entry(entry: Any, *, named: bool = False) -> bool:
    """Whether an entry starts ``toolsrv … serve``, wherever that program is.

    ``named``: the entry has our name, so an address of MCP on this machine is ours too.
    """
    if address := server_url(entry):
        return named and _is_local(address)
    start = server_command(entry)
    if start is None:
        return False
    name = PureWindowsPath(start.command).name  # it splits at both kinds of slashes
    return name in (NAME, f"{NAME}.exe") and "serve" in start.arguments


def _is_local(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.hostname in _LOOPBACK and parts.path.rstrip("/") == _MCP_PATH


@dataclass(frozen=True)
class PastedConfig:
    """One of these clients: ``where`` its user puts the text."""

    title: str
    where: str
    text: Callable[[ServerCommand], str]


def _json(start: ServerCommand, **more: Any) -> str:
    entry = {"command": start.command, "args": list(start.arguments), "env": dict(start.env)}
    return json.dumps({"mcpServers": {NAME: {**entry, **more}}}, indent=2, ensure_ascii=False)


def _yaml(document: Any) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000).rstrip()


def _continue(start: ServerCommand) -> str:
    server = {
        "name": NAME,
        "type": "stdio",
        "command": start.command,
        "args": list(start.arguments),
        "env": dict(start.env),
    }
    return _yaml({"name": NAME, "version": "1.0.0", "schema": "v1", "mcpServers": [server]})


def _libre_chat(start: ServerCommand) -> str:
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


def _crush(start: ServerCommand) -> str:
    """Return a line of ``crushrc``, in which the shell expands nothing."""
    words = ["mcp", "add", NAME, "--command", start.command]
    for one in start.arguments:
        words += ["--args", one]
    for name, value in start.env.items():
        words += ["--env", name, value]
    return shlex.join(words)


def _open_webui(_: ServerCommand) -> str:
    return (
        "toolsrv serve --http\n"
        "type MCP (Streamable HTTP), URL http://127.0.0.1:8765/mcp, bearer: the token that it prints"
    )


PASTED_CONFIGS: Mapping[str, PastedConfig] = {
    "continue": PastedConfig("Continue", ".continue/mcpServers/toolsrv.yaml", _continue),
    "librechat": PastedConfig("LibreChat", "librechat.yaml", _libre_chat),
    "jetbrains": PastedConfig(
        "JetBrains AI Assistant", "Settings, Tools, AI Assistant, MCP", _json
    ),
    "open-webui": PastedConfig("Open WebUI", "Settings, External Tools", _open_webui),
    "crush": PastedConfig("Crush", "crushrc", _crush),
}

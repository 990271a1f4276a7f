"""The MCP clients that toolsrv can register itself in: their names, and the form of their files.

Where the files are says ``places``, what an entry looks like ``entries``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from toolsrv.clients.entries import http_entry, stdio_entry
from toolsrv.clients.machine import Machine
from toolsrv.clients.places import PROJECT, is_used, places

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

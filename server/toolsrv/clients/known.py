"""The MCP clients that toolsrv can register itself in: where each keeps its servers, and how.

Places are those of each client's documentation of November 2026. Environment, home and platform
come in; files are looked for, never read or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

Form = Literal["json", "toml", "yaml"]
System = Literal["linux", "darwin", "win32"]
NAME = "toolsrv"
"""The key of our entry."""


@dataclass(frozen=True)
class Machine:
    """What decides where a client's file is: platform, home and environment."""

    system: System
    home: Path
    environment: Mapping[str, str]

    def config(self) -> Path:
        """Return the folder in which applications keep their configuration."""
        if self.system == "win32":
            return Path(self.environment.get("APPDATA") or self.home / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg()

    def local(self) -> Path:
        """Return the folder of Windows in which packaged applications have theirs."""
        return Path(self.environment.get("LOCALAPPDATA") or self.home / "AppData" / "Local")

    def xdg(self) -> Path:
        """Return the XDG configuration folder, which some tools use on macOS too."""
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")


@dataclass(frozen=True)
class Client:
    """One client. ``keys`` lead to the table of its servers; ``then`` is what its user does.

    ``opens`` are the versions of the protocol that it opens with, as far as is known.
    """

    id: str
    title: str
    form: Form
    keys: tuple[str, ...]
    then: str
    opens: tuple[str, ...] = ("2025-11-25", "2025-06-18")

    def path(self, machine: Machine) -> Path:
        """Return the place of the client's user-wide configuration file, the first of ``paths``."""
        return self.paths(machine)[0]

    def paths(self, machine: Machine) -> tuple[Path, ...]:
        """Return the configuration files of every installation of the client; never none.

        On Windows a packaged Claude Desktop reads a file of its own, and the one that an installer
        puts there another: those whose folders exist, the packaged ones first.
        """
        usual = _PLACES[self.id](machine)
        if self.id != "claude-desktop" or machine.system != "win32":
            return (usual,)
        inside = Path("LocalCache", "Roaming", "Claude", usual.name)
        packages = sorted((machine.local() / "Packages").glob("Claude_*"))
        found = [one / inside for one in packages if one.is_dir()]
        if not found or _used(usual, machine):
            found.append(usual)
        return tuple(found)

    def found(self, machine: Machine) -> bool:
        """Whether the client has been used on this machine: its file or its folder is there."""
        paths = self.paths(machine)
        return len(paths) > 1 or _packaged(paths[0], machine) or _used(paths[0], machine)

    def entry(
        self, command: PurePath, arguments: tuple[str, ...], env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the entry that starts ``command`` in this client's words.

        ``env`` are the variables that it sets: clients hand on few of their own or none.
        """
        if self.id == "goose":
            return {
                "name": NAME,
                "type": "stdio",
                "enabled": True,
                "cmd": str(command),
                "args": list(arguments),
                "envs": dict(env or {}),
                "timeout": 300,
            }
        entry: dict[str, Any] = {"command": str(command), "args": list(arguments)}
        if env:
            entry["env"] = dict(env)
        if self.id in ("vs-code", "claude-code"):
            return {"type": "stdio", **entry}
        if self.id == "codex":
            return entry | {"tool_timeout_sec": 300}
        return entry


def _used(path: Path, machine: Machine) -> bool:
    return path.exists() or (path.parent != machine.home and path.parent.is_dir())


def _packaged(path: Path, machine: Machine) -> bool:
    return machine.system == "win32" and path.is_relative_to(machine.local() / "Packages")


def _goose(machine: Machine) -> Path:
    if machine.system == "win32":
        return machine.config() / "Block" / "goose" / "config" / "config.yaml"
    return machine.xdg() / "goose" / "config.yaml"


_PLACES: dict[str, Callable[[Machine], Path]] = {
    "claude-desktop": lambda at: at.config() / "Claude" / "claude_desktop_config.json",
    "claude-code": lambda at: at.home / ".claude.json",
    "cursor": lambda at: at.home / ".cursor" / "mcp.json",
    "vs-code": lambda at: at.config() / "Code" / "User" / "mcp.json",
    "lm-studio": lambda at: at.home / ".lmstudio" / "mcp.json",
    "goose": _goose,
    "codex": lambda at: (
        Path(at.environment.get("CODEX_HOME") or at.home / ".codex") / "config.toml"
    ),
}

_SERVERS = ("mcpServers",)
CLIENTS = {
    one.id: one
    for one in (
        Client(
            "claude-desktop", "Claude Desktop", "json", _SERVERS, "quit it fully, start it again"
        ),
        Client(
            "claude-code",
            "Claude Code",
            "json",
            _SERVERS,
            "start a new session",
            opens=("2026-07-28", "2025-11-25"),
        ),
        Client("cursor", "Cursor", "json", _SERVERS, "restart it, or reload its MCP servers"),
        Client("vs-code", "VS Code", "json", ("servers",), "start toolsrv in its list of servers"),
        Client("lm-studio", "LM Studio", "json", _SERVERS, "switch toolsrv on in its Program tab"),
        Client("goose", "Goose", "yaml", ("extensions",), "start a new session"),
        Client(
            "codex",
            "Codex",
            "toml",
            ("mcp_servers",),
            "start a new session",
            opens=("2025-06-18",),
        ),
    )
}

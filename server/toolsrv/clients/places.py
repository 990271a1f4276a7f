"""Configuration files of MCP clients, by platform, home and environment.

Places are those of each client's documentation of November 2026. Files are looked for, never read
or written here, except for the pointer with which LM Studio names its home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

System = Literal["linux", "darwin", "win32"]


@dataclass(frozen=True)
class Machine:
    """A platform, a home and an environment."""

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

    def named(self, variable: str, otherwise: Path) -> Path:
        """Return the folder or file that a variable names, else another."""
        return Path(self.environment.get(variable) or otherwise)


_EDITORS = ("Code", "Code - Insiders", "Cursor", "Windsurf", "VSCodium")
_ROO = Path("User", "globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json")
_POINTER_LIMIT = 4096

PROJECT: Mapping[str, str] = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vs-code": ".vscode/mcp.json",
    "vs-code-insiders": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "windsurf": ".devin/mcp_config.json",
    "zed": ".zed/settings.json",
    "roo": ".roo/mcp.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "antigravity": ".agents/mcp_config.json",
    "copilot": ".mcp.json",
    "warp": ".warp/.mcp.json",
    "junie": ".junie/mcp/mcp.json",
    "kiro": ".kiro/settings/mcp.json",
    "opencode": "opencode.json",
}
"""The file in a work tree, of the clients that read one."""


def places(client: str, machine: Machine) -> tuple[Path, ...]:
    """Return the user-wide files of every installation of a client, never none."""
    return _PLACES[client](machine)


def is_used(client: str, path: Path, machine: Machine) -> bool:
    """Whether a client has been used here, by one of its files, its folder or its own folder."""
    if path.exists() or (path.parent != machine.home and path.parent.is_dir()):
        return True
    if machine.system == "win32" and path.is_relative_to(machine.local() / "Packages"):
        return True
    own = _FOLDERS.get(client)
    return own is not None and (machine.home / own).is_dir()


_FOLDERS: Mapping[str, str] = {"cline": ".cline", "junie": ".junie", "kiro": ".kiro"}
"""In the home: folders of clients whose file lies deeper."""


def _claude_desktop(at: Machine) -> tuple[Path, ...]:
    """On Windows a packaged one reads a file of its own: the packaged ones first."""
    usual = at.config() / "Claude" / "claude_desktop_config.json"
    if at.system != "win32":
        return (usual,)
    inside = Path("LocalCache", "Roaming", "Claude", usual.name)
    packages = sorted((at.local() / "Packages").glob("Claude_*"))
    found = [one / inside for one in packages if one.is_dir()]
    if not found or usual.exists() or usual.parent.is_dir():
        found.append(usual)
    return tuple(found)


def _lm_studio(at: Machine) -> Path:
    """LM Studio's own rule: the pointer in the home, an old folder that is there, the usual one."""
    home = at.home.resolve()
    try:
        with (home / ".lmstudio-home-pointer").open(encoding="utf-8", errors="replace") as file:
            named = file.read(_POINTER_LIMIT).strip()
    except OSError:
        named = ""
    old = home / ".cache" / "lm-studio"
    if named:
        return Path(named) / "mcp.json"
    return (old if old.is_dir() else home / ".lmstudio") / "mcp.json"


def _goose(at: Machine) -> Path:
    if root := at.environment.get("GOOSE_PATH_ROOT"):
        return Path(root) / "config" / "config.yaml"
    if at.system == "win32":
        return at.config() / "Block" / "goose" / "config" / "config.yaml"
    return at.xdg() / "goose" / "config.yaml"


def _claude_code(at: Machine) -> Path:
    return at.named("CLAUDE_CONFIG_DIR", at.home) / ".claude.json"


def _windsurf(at: Machine) -> tuple[Path, ...]:
    """Two ages of the product read two files."""
    newer = at.config() if at.system == "win32" else at.xdg()
    return (
        newer / "devin" / "mcp_config.json",
        at.home / ".codeium" / "windsurf" / "mcp_config.json",
    )


def _zed(at: Machine) -> Path:
    if at.system == "win32":
        return at.config() / "Zed" / "settings.json"
    return at.xdg() / "zed" / "settings.json"


def _cline(at: Machine) -> Path:
    if file := at.environment.get("CLINE_MCP_SETTINGS_PATH"):
        return Path(file)
    data = at.named("CLINE_DATA_DIR", at.named("CLINE_DIR", at.home / ".cline") / "data")
    return data / "settings" / "cline_mcp_settings.json"


def _roo(at: Machine) -> tuple[Path, ...]:
    """In the folder of each editor that has the extension."""
    all_ = [at.config() / editor / _ROO for editor in _EDITORS]
    return tuple(one for one in all_ if one.parent.parent.is_dir()) or (all_[0],)


def _jan(at: Machine) -> Path:
    if at.system == "linux":
        share = at.named("XDG_DATA_HOME", at.home / ".local" / "share")
        return share / "Jan" / "data" / "mcp_config.json"
    return at.config() / "Jan" / "data" / "mcp_config.json"


def _anything_llm(at: Machine) -> Path:
    plugins = at.config() / "anythingllm-desktop" / "storage" / "plugins"
    return plugins / "anythingllm_mcp_servers.json"


def _opencode(at: Machine) -> Path:
    if file := at.environment.get("OPENCODE_CONFIG"):
        return Path(file)
    folder = at.named("OPENCODE_CONFIG_DIR", at.xdg() / "opencode")
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


_PLACES: Mapping[str, Callable[[Machine], tuple[Path, ...]]] = {
    "claude-desktop": _claude_desktop,
    "claude-code": lambda at: (_claude_code(at),),
    "cursor": lambda at: (at.home / ".cursor" / "mcp.json",),
    "vs-code": lambda at: (at.config() / "Code" / "User" / "mcp.json",),
    "vs-code-insiders": lambda at: (at.config() / "Code - Insiders" / "User" / "mcp.json",),
    "lm-studio": lambda at: (_lm_studio(at),),
    "goose": lambda at: (_goose(at),),
    "codex": lambda at: (at.named("CODEX_HOME", at.home / ".codex") / "config.toml",),
    "windsurf": _windsurf,
    "zed": lambda at: (_zed(at),),
    "cline": lambda at: (_cline(at),),
    "roo": _roo,
    "gemini": lambda at: (at.named("GEMINI_CLI_HOME", at.home) / ".gemini" / "settings.json",),
    "qwen": lambda at: (at.named("QWEN_HOME", at.home / ".qwen") / "settings.json",),
    "antigravity": lambda at: (at.home / ".gemini" / "config" / "mcp_config.json",),
    "copilot": lambda at: (at.named("COPILOT_HOME", at.home / ".copilot") / "mcp-config.json",),
    "jan": lambda at: (_jan(at),),
    "anythingllm": lambda at: (_anything_llm(at),),
    "warp": lambda at: (at.home / ".warp" / ".mcp.json",),
    "junie": lambda at: (at.home / ".junie" / "mcp" / "mcp.json",),
    "kiro": lambda at: (at.named("KIRO_HOME", at.home / ".kiro") / "settings" / "mcp.json",),
    "amazon-q": lambda at: (at.home / ".aws" / "amazonq" / "mcp.json",),
    "opencode": lambda at: (_opencode(at),),
}

"""What decides where a client's file is: platform, home and environment."""

from __future__ import annotations

from collections.abc import Mapping
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

"""What an entry of a client starts, read in any client's words."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from toolsrv.clients.known import NAME

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MCP_PATH = "/mcp"


@dataclass(frozen=True)
class Start:
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


def start_of(entry: Any) -> Start | None:
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
    return Start(program, tuple(arguments), {str(key): str(value) for key, value in named})


def address_of(entry: Any) -> str:
    """Return the address that an entry connects to, "" for one that starts a program."""
    if not isinstance(entry, Mapping):
        return ""
    if isinstance(inner := entry.get("transport"), Mapping):
        entry = inner
    found = next(
        (entry[key] for key in ("url", "serverUrl", "httpUrl", "uri") if entry.get(key)), ""
    )
    return found if isinstance(found, str) else ""


def is_ours(entry: Any, *, named: bool = False) -> bool:
    """Whether an entry starts ``toolsrv … serve``, wherever that program is.

    ``named``: the entry has our name, so an address of MCP on this machine is ours too.
    """
    if address := address_of(entry):
        return named and _is_local(address)
    start = start_of(entry)
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

"""Registrations of toolsrv on this machine, and whether each entry still works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import toolsrv
from toolsrv.clients.handshake import Handshake, warm_handshake_cache
from toolsrv.clients.known import (
    CLIENTS,
    NAME,
    Client,
    ServerCommand,
    is_toolsrv_entry,
    server_command,
    server_url,
)
from toolsrv.clients.places import Machine
from toolsrv.clients.register import servers_of
from toolsrv_registry.errors import ToolsrvError

HEALTH_S = 3.0
SLOW_S = 3.0
"""Seconds from start to list that the least patient client allows."""
_MANAGED = {
    "linux": Path("/etc/claude-code/managed-mcp.json"),
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-mcp.json"),
    "win32": Path("C:/Program Files/ClaudeCode/managed-mcp.json"),
}
"""A file that keeps Claude Code from reading any other servers."""


@dataclass(frozen=True)
class Registration:
    """Our entry in one file of a client: what it starts, or where it connects to."""

    client: Client
    path: Path
    start: ServerCommand | None = None
    address: str = ""

    @property
    def is_stale(self) -> bool:
        """Whether it starts a program that is no longer there."""
        return self.start is not None and self.start.is_stale


@dataclass(frozen=True)
class UnreadableFile:
    """A client's file that cannot be read, and why."""

    client: Client
    path: Path
    error: ToolsrvError


@dataclass(frozen=True)
class RegistrationStatus:
    """What is known of a registration; ``fix`` is empty where nothing is to be done."""

    state: Literal["ok", "warn", "fail"]
    found: str
    fix: str = ""


def registrations(
    machine: Machine, clients: Sequence[Client] | None = None
) -> Iterator[Registration | UnreadableFile]:
    """Yield our entries in the files of clients, of all by default, and the files that are damaged."""
    for client in CLIENTS.values() if clients is None else clients:
        for path in client.paths(machine):
            try:
                entry = servers_of(client, path).get(NAME)
            except ToolsrvError as error:
                yield UnreadableFile(client, path, error)
                continue
            if is_toolsrv_entry(entry, named=True):
                yield Registration(client, path, server_command(entry), server_url(entry))


class Examiner:
    """Tries registrations; entries that start the same program in the same way are tried once."""

    def __init__(self) -> None:
        self._tried: dict[tuple[object, ...], Handshake | ToolsrvError] = {}

    def start(self, start: ServerCommand) -> Handshake:
        """Return how a server answers, once its first answers are kept. Blocks for seconds.

        Raises:
            DataError: it does not.
        """
        if start.key not in self._tried:
            try:
                self._tried[start.key] = warm_handshake_cache(start)
            except ToolsrvError as error:
                self._tried[start.key] = error
        found = self._tried[start.key]
        if isinstance(found, ToolsrvError):
            raise found
        return found

    def verdict(self, one: Registration, machine: Machine) -> RegistrationStatus:
        """Say whether a registration works, by starting what it starts."""
        again = f"toolsrv connect {one.client.id}"
        if one.start is None:
            return _reached(one)
        if (seen := static_status(one)) is not None:
            return seen
        try:
            heard = self.start(one.start)
        except ToolsrvError as error:
            return RegistrationStatus(
                "fail", f"{one.path}: {error.message}", f"{again} ({error.hint})"
            )
        found = f"{one.path}: {handshake_status(heard)}"
        managed = _MANAGED[machine.system]
        if one.client.id == "claude-code" and managed.exists():
            fix = "ask whoever manages this machine to allow toolsrv there"
            return RegistrationStatus("warn", f"{found}; but {managed} keeps others out", fix)
        if not Path(one.start.command).is_absolute():
            found += "; its command is no absolute path, and desktop programs have another PATH"
            return RegistrationStatus("warn", found, again)
        if heard.version != toolsrv.__version__:
            return RegistrationStatus("warn", f"{found}; this is {toolsrv.__version__}", again)
        if heard.seconds > SLOW_S:
            fix = f"some clients wait {SLOW_S:g} s only: free some of the machine, and look again"
            return RegistrationStatus("warn", found, fix)
        return RegistrationStatus("ok", found)


def _reached(one: Registration) -> RegistrationStatus:
    """Say whether the server that an entry connects to answers; its address is on this machine."""
    import httpx

    found = f"{one.path}: connects to {one.address}"
    try:
        with httpx.Client(trust_env=False, timeout=HEALTH_S) as client:
            health = client.get(httpx.URL(one.address).copy_with(path="/health", query=None))
            is_ours_there = health.status_code == httpx.codes.OK and "toolsrv" in health.text
    except (httpx.HTTPError, httpx.InvalidURL):
        return RegistrationStatus(
            "warn", f"{found}, where nothing answers", "start it: toolsrv serve --http"
        )
    if not is_ours_there:
        fix = f"another program has that port; toolsrv connect {one.client.id}"
        return RegistrationStatus("warn", f"{found}, where something else answers", fix)
    return RegistrationStatus("ok", f"{found}, where toolsrv answers")


def static_status(one: Registration) -> RegistrationStatus | None:
    """Return what is known of a registration without starting anything; None for nothing."""
    if one.start is None:
        return RegistrationStatus("ok", f"{one.path}: connects to {one.address}")
    if one.is_stale:
        name = one.client.id
        found = f"{one.path}: {one.start.command} no longer exists"
        return RegistrationStatus(
            "fail", found, f"toolsrv connect {name}, or toolsrv disconnect {name}"
        )
    return None


def handshake_status(heard: Handshake) -> str:
    """Say how a server answered."""
    return (
        f"{heard.server or 'a server'} {heard.version} answers in {heard.seconds:.1f} s "
        f"with {heard.tools} tools"
    )

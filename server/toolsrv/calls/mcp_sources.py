"""Sources of MCP servers to import: ``mcp:…`` addresses, and clients' files.

Files of clients are read and never written. Values of ``env`` and ``headers`` are told apart from
the server at once: they are secrets.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from toolsrv.clients.known import CLIENTS, Client, is_toolsrv_entry
from toolsrv.clients.places import Machine
from toolsrv.clients.register import servers_of
from toolsrv_catalogs.hosts import address_fault
from toolsrv_catalogs.importer import catalog_name, check_name
from toolsrv_registry.errors import NotFoundError, ToolsrvError, UsageError
from toolsrv_runtime.mcp_client import ADDRESS_PREFIX, QUERY_MARK, McpServer

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LAUNCHERS = frozenset({"npx", "uvx", "bunx", "pipx", "uv", "node", "python", "python3", "docker"})


@dataclass(frozen=True)
class ImportableServer:
    """A server that is to be imported. ``values`` are its secrets, as far as they are known."""

    server: McpServer
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SkippedEntry:
    """An entry of a client that is not imported, and why."""

    name: str
    reason: str


def named_source(
    text: str,
    machine: Machine,
    known: Mapping[str, McpServer],
    *,
    name: str | None = None,
    env: Sequence[str] = (),
    headers: Sequence[str] = (),
) -> ImportableServer:
    """Return the server that ``mcp:NAME``, ``mcp:COMMAND LINE`` or ``mcp:URL`` stands for.

    A name is one of a server that was imported before, then of an entry of a client's file, then
    of a program. ``env`` and ``headers`` name further values that it needs.

    Raises:
        UsageError: it is none of these, or a client's entry that cannot be used.
        NotFoundError: nothing has that name.
    """
    place = text.removeprefix(ADDRESS_PREFIX).strip()
    if not place:
        raise UsageError("no MCP server is named", hint="write mcp:NAME, mcp:URL or mcp:COMMAND")
    if "://" in place:
        found = _server_at_url(name or _host_name(place), place)
    elif len(words := _words(place)) > 1 or "/" in place or "\\" in place:
        found = _server_of_command(name or _command_name(words), words)
    elif place in known:
        found = ImportableServer(known[place].model_copy(update={"name": name or place}))
    elif (entry := _entry(place, machine)) is not None:
        found = server_of_entry(name or plain_name(place), entry)
    elif shutil.which(place):
        found = _server_of_command(name or plain_name(place), [place])
    else:
        raise NotFoundError(
            f"no MCP server {place[:80]!r} is known: no import, no client's file and no program "
            "has that name",
            hint='write the command line, for example "mcp:uvx mcp-server-time", or a URL',
        )
    check_name(found.server.name)
    return _with(found, env, headers)


def servers_of_client(
    client: Client, machine: Machine
) -> tuple[list[ImportableServer], list[SkippedEntry]]:
    """Return the servers in a client's files, and the entries that are passed over.

    Raises:
        NotFoundError: it has no file, or no server is in it.
        UsageError: a file is damaged.
        DataError: a file cannot be read.
    """
    found: dict[str, ImportableServer] = {}
    passed: list[SkippedEntry] = []
    for path in client.paths(machine):
        for name, entry in servers_of(client, path).items():
            if is_toolsrv_entry(entry):
                passed.append(SkippedEntry(name, "is toolsrv itself"))
                continue
            try:
                one = server_of_entry(plain_name(name), entry)
                check_name(one.server.name)
            except ToolsrvError as error:
                passed.append(SkippedEntry(name, error.message))
                continue
            if one.server.name in found:
                passed.append(SkippedEntry(name, "another entry has that name already"))
            else:
                found[one.server.name] = one
    if not found and not passed:
        files = ", ".join(str(path) for path in client.paths(machine))
        raise NotFoundError(
            f"{client.title} has no MCP servers on this machine ({files})",
            hint="see toolsrv connect --list",
        )
    return list(found.values()), passed


def server_of_entry(name: str, entry: Any) -> ImportableServer:
    """Return what an entry of a client's file stands for, in any client's words.

    Raises:
        UsageError: it is switched off, or cannot be used; says why.
    """
    if not isinstance(entry, Mapping):
        raise UsageError("is no entry of a server", hint="correct the client's file")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise UsageError("is switched off", hint="switch it on in the client")
    kind = str(entry.get("type") or entry.get("transport") or "").lower()
    if kind in {"sse", "ws", "builtin", "platform", "frontend"}:
        raise UsageError(f"is of type {kind!r}, which is not spoken", hint="stdio and HTTP are")
    address = next(
        (entry[key] for key in ("url", "serverUrl", "httpUrl", "uri") if entry.get(key)), None
    )
    command = entry.get("command") or entry.get("cmd")
    if isinstance(address, str):
        headers = _texts(entry.get("headers") or entry.get("http_headers"))
        one = _server_at_url(name, address)
        return _with_values(one, headers=headers)
    arguments = entry.get("args")
    if isinstance(command, list) and command:  # opencode's one list
        command, arguments = command[0], command[1:]
    if not isinstance(command, str) or not command.strip():
        raise UsageError("names neither a command nor a URL", hint="correct the client's file")
    if not isinstance(arguments, list | None) or not all(
        isinstance(one, str) for one in arguments or []
    ):
        raise UsageError("has arguments that are no list of texts", hint="correct the file")
    one = _server_of_command(name, [command, *(arguments or [])], cwd=entry.get("cwd"))
    return _with_values(
        one, env=_texts(entry.get("env") or entry.get("envs") or entry.get("environment"))
    )


def plain_name(name: str) -> str:
    """Return a name that a catalog may have, after any name."""
    return catalog_name(Path("/") / re.sub(r"[\\/:]+", "-", name))


def _entry(name: str, machine: Machine) -> Any:
    """Return the entry of that name in the first client's file that has one, else None."""
    for client in CLIENTS.values():
        for path in client.paths(machine):
            try:
                entry = servers_of(client, path).get(name)
            except ToolsrvError:  # a damaged file of a client that nobody has named
                continue
            if entry is not None and not is_toolsrv_entry(entry):
                return entry
    return None


def _server_at_url(name: str, address: str) -> ImportableServer:
    if _REFERENCE.search(address):
        raise UsageError("has a URL with a variable in it", hint="name the URL itself")
    if fault := address_fault(address):
        raise UsageError(f"the MCP server's address {fault}", hint="https://mcp.example.com/mcp")
    parts = urlsplit(address)
    server = McpServer(
        name=name,
        url=parts._replace(scheme=parts.scheme.lower(), query="", fragment="").geturl(),
        has_query=bool(parts.query),
    )
    return ImportableServer(server, {QUERY_MARK: parts.query} if parts.query else {})


def _server_of_command(name: str, words: Sequence[str], *, cwd: Any = None) -> ImportableServer:
    if any(_REFERENCE.search(word) for word in words):
        raise UsageError(
            "has a variable in its command line", hint='write it out: "mcp:COMMAND ARGUMENTS"'
        )
    folder = cwd if isinstance(cwd, str) else ""
    return ImportableServer(
        McpServer(name=name, command=words[0], args=tuple(words[1:]), cwd=folder)
    )


def _with_values(
    found: ImportableServer,
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ImportableServer:
    """Return a server with values; those that refer to a variable are left for the person."""
    given = {**(env or {}), **(headers or {})}
    known = {name: value for name, value in given.items() if not _REFERENCE.search(value)}
    named = _with(found, list(env or ()), list(headers or ()))
    return ImportableServer(named.server, {**found.values, **known})


def _with(found: ImportableServer, env: Iterable[str], headers: Iterable[str]) -> ImportableServer:
    for one in env:
        if not _VARIABLE.fullmatch(one):
            raise UsageError(
                f"{one[:80]!r} is no name of a variable",
                hint="name it alone, --env GITHUB_TOKEN: its value is asked for",
            )
    for one in headers:
        if not _HEADER.fullmatch(one):
            raise UsageError(f"{one[:80]!r} is no name of a header", hint="--header Authorization")
    server = found.server
    if env and server.url:
        raise UsageError("an address takes no variables", hint="use --header")
    if headers and not server.url:
        raise UsageError("a command takes no headers", hint="use --env")
    more = {
        "env": tuple(dict.fromkeys([*server.env, *env])),
        "headers": tuple(dict.fromkeys([*server.headers, *headers])),
    }
    return ImportableServer(server.model_copy(update=more), found.values)


def _texts(value: Any) -> dict[str, str]:
    """Return names and values that say something, as texts."""
    if not isinstance(value, Mapping):
        return {}
    plain = {
        str(name): one if isinstance(one, str) else str(one).lower()
        for name, one in value.items()
        if isinstance(one, str | int | float)
    }
    return {name: one for name, one in plain.items() if one.strip()}


def _words(place: str) -> list[str]:
    try:
        return shlex.split(place)
    except ValueError as error:
        raise UsageError(f"the command line cannot be read: {error}", hint="close it") from None


def _command_name(words: Sequence[str]) -> str:
    """Return a name after a command line: the package that a launcher starts, else the program."""
    program = PureWindowsPath(words[0]).stem
    if program.lower() in _LAUNCHERS:
        rest = [one for one in words[1:] if not one.startswith("-") and one not in ("run", "x")]
        program = re.sub(r"(?<=.)@[^/]*$", "", rest[0]) if rest else program
    return plain_name(PureWindowsPath(program).name.removesuffix(".py").removesuffix(".js"))


def _host_name(address: str) -> str:
    return plain_name((urlsplit(address).hostname or "server").removeprefix("mcp."))

"""Where MCP servers to import are named, and that their secrets are told apart at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolsrv.calls.catalog_files import ServerFile
from toolsrv.calls.keys import KeyStore
from toolsrv.calls.mcp_sources import (
    ImportableServer,
    named_source,
    server_of_entry,
    servers_of_client,
)
from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import Machine
from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError
from toolsrv_runtime.mcp_client import McpServer

SECRET = "ghp_0123456789"
ENTRIES: dict[str, Any] = {
    "github": {"command": "npx", "args": ["-y", "gh-mcp"], "env": {"TOKEN": SECRET, "EMPTY": ""}},
    "My Files!": {"type": "stdio", "command": "files", "args": ["/srv"], "cwd": "/tmp"},
    "remote": {
        "type": "http",
        "url": f"https://mcp.example/mcp?key={SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}", "X-Other": "${input:other}"},
    },
    "toolsrv": {"command": "/usr/bin/toolsrv", "args": ["serve"]},
    "old": {"type": "sse", "url": "https://mcp.example/sse"},
    "off": {"command": "x", "disabled": True},
    "odd": {"command": "x", "args": "no list"},
    "none": {},
    "variable": {"command": "${HOME}/x"},
    "text": "x",
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine("linux", tmp_path, {})


def _write(machine: Machine, client: str, text: str) -> None:
    path = CLIENTS[client].path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _find(text: str, machine: Machine, **more: Any) -> ImportableServer:
    return named_source(text, machine, more.pop("known", {}), **more)


@pytest.mark.parametrize(
    ("text", "name", "command"),
    [
        ("mcp:uvx mcp-server-time --local-timezone=UTC", "mcp-server-time", "uvx"),
        ("mcp:npx -y @scope/server-files@1.2 /srv", "server-files", "npx"),
        ("mcp:python -m thing", "thing", "python"),
        ("mcp:/opt/tools/serve.py", "serve", "/opt/tools/serve.py"),
        ("mcp:'/opt/my tools/serve' --a 'b c'", "serve", "/opt/my tools/serve"),
        ("mcp:sh", "sh", "sh"),
    ],
)
def test_a_command_line_is_a_server(text: str, name: str, command: str, machine: Machine) -> None:
    server = _find(text, machine).server
    assert (server.name, server.command, server.url) == (name, command, "")


def test_a_url_is_a_server_and_its_query_a_secret(machine: Machine) -> None:
    found = _find(f"mcp:https://mcp.sea.example/mcp?key={SECRET}#x", machine)
    assert (found.server.name, found.server.url) == ("sea.example", "https://mcp.sea.example/mcp")
    assert found.values == {"?": f"key={SECRET}"}
    assert SECRET not in found.server.model_dump_json()


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("mcp:", {}),
        ("mcp: 'open", {}),
        ("mcp:https://user:pass@mcp.example/", {}),
        ("mcp:ftp://mcp.example/", {}),
        ("mcp:sh -c x", {"env": ["A=b"]}),
        ("mcp:sh -c x", {"headers": ["Authorization"]}),
        ("mcp:https://mcp.example/", {"headers": ["bad header"]}),
        ("mcp:https://mcp.example/", {"env": ["A"]}),
        ("mcp:sh -c x", {"name": "../up"}),
        ("mcp:no-such-program-anywhere", {}),
    ],
)
def test_what_names_no_server_is_said(text: str, more: dict[str, Any], machine: Machine) -> None:
    with pytest.raises(ToolsrvError) as caught:
        _find(text, machine, **more)
    assert caught.value.hint


def test_a_name_is_first_an_import_then_an_entry_of_any_client(machine: Machine) -> None:
    _write(machine, "cursor", json.dumps({"mcpServers": ENTRIES}))
    assert _find("mcp:github", machine).values == {"TOKEN": SECRET}
    known = {"github": McpServer(name="github", command="mine")}
    assert _find("mcp:github", machine, known=known).server.command == "mine"
    with pytest.raises(NotFoundError):
        _find("mcp:toolsrv-of-nobody", machine)


JSON = {"claude-desktop": "mcpServers", "vs-code": "servers", "claude-code": "mcpServers"}


@pytest.mark.parametrize("client", JSON)
def test_all_entries_of_a_client_are_read_and_no_secret_is_in_a_server(
    client: str, machine: Machine
) -> None:
    _write(machine, client, json.dumps({JSON[client]: ENTRIES}))
    found, passed = servers_of_client(CLIENTS[client], machine)
    assert [one.server.name for one in found] == ["github", "My-Files", "remote"]
    github, files, remote = found
    assert (github.server.env, github.values) == (("TOKEN",), {"TOKEN": SECRET})
    assert (files.server.args, files.server.cwd) == (("/srv",), "/tmp")
    assert remote.server.headers == ("Authorization", "X-Other")
    assert set(remote.values) == {"Authorization", "?"}
    assert {one.name for one in passed} == set(ENTRIES) - {"github", "My Files!", "remote"}
    assert all(SECRET not in one.server.model_dump_json() + repr(one) for one in found)


def test_goose_and_codex_write_the_same_in_their_own_words(machine: Machine) -> None:
    _write(
        machine,
        "goose",
        "extensions:\n  gh:\n    type: stdio\n    cmd: npx\n    args: [gh]\n    enabled: true\n"
        f"    envs: {{TOKEN: {SECRET}}}\n  web:\n    type: streamable_http\n"
        "    uri: https://mcp.example/mcp\n",
    )
    found, _ = servers_of_client(CLIENTS["goose"], machine)
    assert [(one.server.name, one.server.place) for one in found] == [
        ("gh", "npx gh"),
        ("web", "https://mcp.example/mcp"),
    ]
    _write(
        machine,
        "codex",
        f'[mcp_servers.gh]\ncommand = "npx"\nargs = ["gh"]\n[mcp_servers.gh.env]\nTOKEN = "{SECRET}"\n',
    )
    (one,), _ = servers_of_client(CLIENTS["codex"], machine)
    assert (one.server.command, one.values) == ("npx", {"TOKEN": SECRET})


def test_a_client_without_servers_is_said(machine: Machine) -> None:
    with pytest.raises(NotFoundError):
        servers_of_client(CLIENTS["cursor"], machine)
    _write(machine, "cursor", "{")
    with pytest.raises(UsageError):
        servers_of_client(CLIENTS["cursor"], machine)


def test_an_entry_may_say_true_and_numbers() -> None:
    found = server_of_entry("x", {"command": "x", "env": {"DEBUG": True, "PORT": 80, "NO": None}})
    assert found.values == {"DEBUG": "true", "PORT": "80"}


def test_a_removed_server_takes_its_secrets_with_it(tmp_path: Path) -> None:
    keys, servers = KeyStore(tmp_path), ServerFile(tmp_path)
    server = McpServer(name="gh", command="npx", env=("TOKEN", "PATH_TO"))
    keys.store(server.key_name("TOKEN"), SECRET)
    keys.store(server.key_name("PATH_TO"), "/srv/Größe")
    keys.store("api.example.com", "other")
    servers.put(server)
    assert servers.find("gh") == server
    assert SECRET not in servers.path.read_text()
    assert servers.remove("gh")
    assert not servers.remove("gh")
    assert [one.name for one in keys.entries()] == ["api.example.com"]


def test_a_damaged_list_of_servers_is_said(tmp_path: Path) -> None:
    servers = ServerFile(tmp_path)
    servers.path.write_text('{"servers": [{"name": 1}]}')
    with pytest.raises(DataError, match="cannot be read"):
        servers.find("x")


@pytest.mark.parametrize("name", ["mcp:", "mcp:a", "mcp:a/", "mcp:../a/B", "mcp:a/b c"])
def test_a_key_of_an_mcp_server_names_both(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        KeyStore(tmp_path).store(name, "x")

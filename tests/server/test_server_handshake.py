"""A handshake with a server as a client starts it: what it says, and every way in which it fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import toolsrv
from toolsrv.clients.handshake import REVISIONS, bare_environment, shake_hands
from toolsrv.clients.known import ServerCommand, is_toolsrv_entry, server_command, server_url
from toolsrv.clients.register import command
from toolsrv.mcp_server.handshake_cache import FOLDER, LISTEN
from toolsrv_registry.errors import DataError

ANSWER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **%s}), flush=True)
"""


def server(code: str, **env: str) -> ServerCommand:
    return ServerCommand(sys.executable, ("-c", code), env)


@pytest.mark.parametrize("revision", REVISIONS)
def test_our_own_server_answers_in_every_version(ready_dir: Path, revision: str) -> None:
    heard = shake_hands(
        ServerCommand(str(command()), ("--data-dir", str(ready_dir), "serve")), revision
    )
    assert (heard.server, heard.version, heard.tools) == ("toolsrv", toolsrv.__version__, 8)
    assert heard.seconds > 0


def test_what_clients_subscribe_to_before_they_list_the_tools_is_kept_too(ready_dir: Path) -> None:
    start = ServerCommand(str(command()), ("--data-dir", str(ready_dir), "serve"))
    shake_hands(start, "2026-07-28")
    (file,) = (ready_dir / FOLDER).glob("*.json")
    kept = json.loads(file.read_text("utf-8"))
    (acknowledged,) = [value for name, value in kept.items() if name.startswith(LISTEN)]
    assert acknowledged["notifications"] == {"toolsListChanged": True, "resourcesListChanged": True}


REFUSING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "subscriptions/listen":
        told = {"error": {"code": -32601, "message": "not here"}}
    else:
        told = {"result": {"capabilities": {"tools": {"listChanged": True}}, "tools": [1, 2]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""


def test_a_server_that_refuses_a_subscription_is_listed_all_the_same() -> None:
    assert shake_hands(server(REFUSING), "2026-07-28").tools == 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys; sys.exit('a broken import')", "a broken import"),
        ("print('starting …', flush=True); input(); input()", "no message: starting"),
        ("import time; time.sleep(60)", "no answer to initialize in time"),
        (ANSWER % {"error": {"code": -32603, "message": "not today"}}, "not today"),
        ("import sys; print('[' * 100_000, flush=True); sys.stdin.read()", "no message"),
        ("import sys; print('x' * 5_000_000, flush=True); sys.stdin.read()", "no message"),
    ],
)
def test_what_is_wrong_with_a_server_is_told(code: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        shake_hands(server(code), timeout_s=2)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be started"):
        shake_hands(ServerCommand(str(tmp_path / "none"), ("serve",)))


def test_a_server_gets_the_variables_of_its_entry_and_few_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "s")
    monkeypatch.setenv("TOOLSRV_PARALLEL", "3")
    found = bare_environment({"MINE": "m"})
    assert found["MINE"] == "m"
    assert found["PATH"]
    assert not {"SECRET_OF_THE_SHELL", "TOOLSRV_PARALLEL"} & found.keys()
    code = "import os, sys; sys.exit(repr(sorted(os.environ)))"
    with pytest.raises(DataError) as told:
        shake_hands(server(code, MINE="m"))
    assert "'MINE'" in told.value.message
    assert "SECRET_OF_THE_SHELL" not in told.value.message


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/v/bin/toolsrv", "args": ["serve"], "env": {"A": "b"}},
        {"cmd": "/v/bin/toolsrv", "args": ["serve"], "envs": {"A": "b"}},
        {"type": "local", "command": ["/v/bin/toolsrv", "serve"], "environment": {"A": "b"}},
        {"transport": {"type": "stdio", "command": "/v/bin/toolsrv", "args": ["serve"], "env": {"A": "b"}}},
    ],
)  # fmt: skip
def test_an_entry_is_read_in_any_clients_words(entry: dict[str, object]) -> None:
    assert server_command(entry) == ServerCommand("/v/bin/toolsrv", ("serve",), {"A": "b"})
    assert is_toolsrv_entry(entry)


@pytest.mark.parametrize(
    "entry",
    [None, 5, [], {}, {"command": 5}, {"command": []}, {"command": "toolsrv", "args": [5]},
     {"command": "toolsrv", "args": "serve"}, {"command": "toolsrv"}, {"transport": {}}],
)  # fmt: skip
def test_what_is_no_entry_of_ours_is_none(entry: object) -> None:
    assert not is_toolsrv_entry(entry)
    assert not is_toolsrv_entry(entry, named=True)


def test_an_address_is_ours_under_our_name_and_on_this_machine_only() -> None:
    here = {"type": "http", "url": "http://127.0.0.1:8765/mcp"}
    assert server_url(json.loads(json.dumps(here))) == here["url"]
    assert is_toolsrv_entry(here, named=True)
    assert not is_toolsrv_entry(here)
    for other in ("https://example.com/mcp", "http://127.0.0.1:8765/other", "http://[::1/mcp"):
        assert not is_toolsrv_entry({"url": other}, named=True)

"""Every client: its entry in its own words, its file given back as it was, what is shown of it, projects and HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from click.testing import Result
from tests.client_files import listed, machine

from toolsrv.clients.known import (
    CLIENTS,
    PASTED_CONFIGS,
    ServerCommand,
    is_toolsrv_entry,
    server_command,
    server_url,
)
from toolsrv.clients.places import PROJECT
from toolsrv.clients.register import BACKUP, registration_change, removal_change
from toolsrv.clients.registrations import Examiner, Registration, RegistrationStatus
from toolsrv_registry.errors import DataError, UsageError

Run = Callable[..., Result]
EXE = PurePosixPath("/opt/toolsrv/bin/toolsrv")
ARGS = ("--data-dir", "/data", "serve")
ENV = {"TOOLSRV_MODE": "offline"}
BASE: dict[str, Any] = {"command": str(EXE), "args": list(ARGS), "env": ENV}
HOME = Path("/home/ann")
URL = "http://127.0.0.1:8765/mcp"
HEADERS = {"Authorization": "Bearer t"}
LOCATED: dict[str, Any] = {"url": URL, "headers": HEADERS}
STDIO: Mapping[str, dict[str, Any]] = {
    "claude-desktop": BASE,
    "claude-code": {"type": "stdio", **BASE},
    "cursor": BASE,
    "vs-code": {"type": "stdio", **BASE},
    "vs-code-insiders": {"type": "stdio", **BASE},
    "lm-studio": BASE,
    "goose": {
        "name": "toolsrv", "type": "stdio", "enabled": True, "cmd": str(EXE), "args": list(ARGS),
        "envs": ENV, "timeout": 300,
    },
    "codex": {**BASE, "required": True, "startup_timeout_sec": 60, "tool_timeout_sec": 300},
    "windsurf": BASE,
    "zed": {**BASE, "timeout": 300},
    "cline": {"type": "stdio", **BASE, "disabled": False, "timeout": 300},
    "roo": BASE,
    "gemini": BASE,
    "qwen": BASE,
    "antigravity": BASE,
    "copilot": {"type": "local", **BASE, "tools": ["*"]},
    "jan": {**BASE, "active": True},
    "anythingllm": BASE,
    "warp": {**BASE, "working_directory": str(HOME)},
    "junie": BASE,
    "kiro": {**BASE, "disabled": False},
    "amazon-q": {**BASE, "timeout": 300_000},
    "opencode": {
        "type": "local", "command": [str(EXE), *ARGS], "environment": ENV, "enabled": True,
        "timeout": 60_000,
    },
}  # fmt: skip
HTTP: Mapping[str, dict[str, Any]] = {
    "claude-code": {"type": "http", **LOCATED},
    "cursor": LOCATED,
    "vs-code": {"type": "http", **LOCATED},
    "vs-code-insiders": {"type": "http", **LOCATED},
    "lm-studio": LOCATED,
    "goose": {
        "name": "toolsrv", "type": "streamable_http",
        "description": "Finds APIs and solves whole tasks with a local model.", "enabled": True,
        "uri": URL, "headers": HEADERS, "envs": {}, "timeout": 300,
    },
    "codex": {"url": URL, "http_headers": HEADERS},
    "windsurf": {"serverUrl": URL, "headers": HEADERS},
    "zed": LOCATED,
    "cline": {"type": "streamableHttp", **LOCATED},
    "roo": {"type": "streamable-http", **LOCATED},
    "gemini": {"httpUrl": URL, "headers": HEADERS},
    "qwen": {"httpUrl": URL, "headers": HEADERS},
    "copilot": {"type": "http", **LOCATED, "tools": ["*"]},
    "jan": {"type": "http", **LOCATED, "command": "", "args": [], "active": True},
    "anythingllm": {"type": "streamable", **LOCATED},
    "warp": LOCATED,
    "kiro": LOCATED,
    "opencode": {"type": "remote", "enabled": True, **LOCATED},
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_is_in_the_clients_own_words(client: str) -> None:
    entry = CLIENTS[client].entry(EXE, ARGS, ENV, HOME)
    assert entry == STDIO[client]
    assert server_command(entry) == ServerCommand(str(EXE), ARGS, ENV)
    assert is_toolsrv_entry(entry)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_on_http_is_in_the_clients_own_words_or_refused(client: str) -> None:
    if client not in HTTP:
        with pytest.raises(UsageError, match="no HTTP entry"):
            CLIENTS[client].http_entry(URL, HEADERS)
        return
    entry = CLIENTS[client].http_entry(URL, HEADERS)
    assert entry == HTTP[client]
    assert server_url(entry) == URL
    assert is_toolsrv_entry(entry, named=True)


TEXTS = {
    "json": ("", "{}", "{}\n", "  { }", "null", "\n\n", '{"a": 1}', '{"a": 1,}\r\n', "// mine\n",
             '{"%s": {}}', '{"%s": null}', '{\n\t"%s": {\n\t\t"x": {}\n\t}\n}', "\ufeff{}"),
    "toml": ("", "a = 1", "a = 1\n", "# mine", "\n\n", '[%s.other]\ncommand = "x"', "a = 1\r\n",
             "[%s]\n"),
    "yaml": ("", "{}", "a: 1", "a: 1\n", "# mine", "%s: {}", "%s:\n", "%s:\n  other:\n    cmd: x",
             "---\na: 1\n...\n"),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_is_given_back_byte_for_byte(client: str, tmp_path: Path) -> None:
    one = CLIENTS[client]
    for number, text in enumerate(TEXTS[one.form]):
        at = machine(tmp_path / str(number))
        path, content = one.path(at), text.replace("%s", one.keys[0]).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            registration_change(one, at, ARGS, program=EXE).write()
        except DataError:  # a form that is refused is left alone
            assert path.read_bytes() == content, text
            continue
        registration_change(one, at, ("serve",), env=ENV, program=EXE).write()  # renewed
        removal_change(one, at).write()
        assert path.read_bytes() == content, text


@pytest.mark.parametrize("client", CLIENTS)
def test_where_there_was_no_file_none_stays_also_beside_an_old_backup(
    client: str, tmp_path: Path
) -> None:
    one, at = CLIENTS[client], machine(tmp_path)
    path = one.path(at)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + BACKUP).write_bytes(b"")  # of a file that its user deleted since
    registration_change(one, at, ARGS, program=EXE).write()
    removal_change(one, at).write()
    assert list(path.parent.iterdir()) == []


def test_what_came_since_stays(tmp_path: Path) -> None:
    one, at = CLIENTS["cursor"], machine(tmp_path)
    registration_change(one, at, ARGS, program=EXE).write()
    document = json.loads(one.path(at).read_text("utf-8"))
    document["mcpServers"]["other"] = {"command": "x"}
    one.path(at).write_text(json.dumps(document), "utf-8")
    removal_change(one, at).write()
    assert json.loads(one.path(at).read_text("utf-8")) == {
        "mcpServers": {"other": {"command": "x"}}
    }


def test_what_cannot_be_written_is_shown_to_be_pasted() -> None:
    start = ServerCommand("/a b/toolsrv", ("--data-dir", "$HOME/x", "serve"), ENV)
    texts = {name: one.text(start) for name, one in PASTED_CONFIGS.items()}
    pasted = json.loads(texts["jetbrains"])["mcpServers"]["toolsrv"]
    assert server_command(pasted) == start
    (listed,) = yaml.safe_load(texts["continue"])["mcpServers"]
    assert (listed["name"], server_command(listed)) == ("toolsrv", start)
    chat = yaml.safe_load(texts["librechat"])["mcpServers"]["toolsrv"]
    assert (chat["type"], server_command(chat)) == ("stdio", start)
    assert "'/a b/toolsrv'" in texts["crush"]
    assert "'$HOME/x'" in texts["crush"]
    assert "serve --http" in texts["open-webui"]


def test_an_address_of_an_entry_is_asked_whether_toolsrv_is_there(tmp_path: Path) -> None:
    def served(answer: bytes) -> RegistrationStatus:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/health" else 404)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/mcp"
            one = Registration(CLIENTS["cursor"], tmp_path / "mcp.json", address=url)
            found = Examiner().verdict(one, machine(tmp_path))
            server.shutdown()
        return found

    assert served(b'{"status": "ok", "name": "toolsrv"}').state == "ok"
    assert "something else" in served(b"hello").found
    gone = Registration(CLIENTS["cursor"], tmp_path / "x", address="http://127.0.0.1:9/mcp")
    verdict = Examiner().verdict(gone, machine(tmp_path))
    assert verdict.state == "warn"
    assert "serve --http" in verdict.fix


def test_both_files_of_windsurf_are_written(run: Run, home: Path) -> None:
    assert run("connect", "windsurf", "--no-try").exit_code == 0
    files = CLIENTS["windsurf"].paths(machine(home))
    assert len(files) == 2
    assert all("toolsrv" in one.read_text("utf-8") for one in files)
    rows = listed(run)
    assert rows["windsurf"]["connected"] is True
    assert run("disconnect", "windsurf").exit_code == 0
    assert not any(one.exists() for one in files)


def test_an_entry_whose_program_is_gone_is_shown_as_stale(run: Run, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    gone = {"command": str(home / "gone" / "toolsrv"), "args": ["serve"]}
    path.write_text(json.dumps({"mcpServers": {"toolsrv": gone}}), "utf-8")
    rows = listed(run)
    assert rows["cursor"]["stale"] == gone["command"]
    assert rows["codex"]["stale"] is None
    shown = run("connect", "--list")
    assert "stale" in shown.stdout
    assert "no longer exists" in shown.stderr
    assert run("connect", "cursor", "--no-try").exit_code == 0
    rows = listed(run)
    assert rows["cursor"]["stale"] is None


@pytest.mark.parametrize("client", PROJECT)
def test_a_project_has_a_file_of_its_own(
    client: str, run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert run("connect", client, "--scope", "project", "--no-try").exit_code == 0
    assert "toolsrv" in (project / PROJECT[client]).read_text("utf-8")
    assert list(home.iterdir()) == []
    assert run("disconnect", client, "--scope", "project").exit_code == 0
    assert not (project / PROJECT[client]).exists()


def test_a_client_without_files_in_projects_is_told(run: Run, home: Path) -> None:
    assert home
    done = run("connect", "lm-studio", "--scope", "project")
    assert done.exit_code == 2
    assert "claude-code" in done.stderr


def test_an_http_entry_has_the_token_that_the_server_keeps(
    run: Run, home: Path, data_dir: Path
) -> None:
    assert run("connect", "cursor", "--http").exit_code == 0
    token = (data_dir / "http-token").read_text("ascii").strip()
    path = home / ".cursor" / "mcp.json"
    entry = json.loads(path.read_text("utf-8"))["mcpServers"]["toolsrv"]
    assert entry == {"url": URL, "headers": {"Authorization": f"Bearer {token}"}}
    rows = listed(run)
    assert rows["cursor"]["connected"] is True
    assert run("connect", "claude-desktop", "--http").exit_code == 2
    assert run("connect", "cursor", "--no-try").exit_code == 0
    assert "command" in json.loads(path.read_text("utf-8"))["mcpServers"]["toolsrv"]
    assert run("disconnect", "cursor").exit_code == 0
    assert not path.exists()


@pytest.mark.parametrize("client", PASTED_CONFIGS)
def test_showing_writes_nothing(client: str, run: Run, home: Path) -> None:
    done = run("connect", client)
    assert done.exit_code == 0
    assert "toolsrv" in done.stdout
    assert list(home.iterdir()) == []

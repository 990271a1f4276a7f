"""``toolsrv connect`` and ``disconnect`` as commands: what they write, list, show and refuse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.client_files import foreign, listed, machine, parsed

from toolsrv.cli.connect import this_machine
from toolsrv.clients.known import CLIENTS

Run = Callable[..., Result]


def test_the_command_line_connects_and_disconnects(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLSRV_DATA_DIR")
    path = home / ".cursor" / "mcp.json"
    dry = run("connect", "cursor", "--dry-run")
    assert dry.exit_code == 0
    assert '+    "toolsrv": {' in dry.stdout
    assert not path.exists()
    done = run("connect", "cursor", "--json", "--no-try")
    assert json.loads(done.stdout)["changed"] is True
    entry = json.loads(path.read_text())["mcpServers"]["toolsrv"]
    assert entry["args"] == ["serve"]
    assert Path(entry["command"]).is_absolute()
    assert "nothing to change" in run("connect", "cursor", "--no-try").stdout
    rows = listed(run)
    assert (rows["cursor"]["found"], rows["cursor"]["connected"]) == (True, True)
    assert (rows["codex"]["found"], rows["codex"]["connected"]) == (False, False)
    assert run("disconnect", "cursor").exit_code == 0
    assert not path.exists()
    assert "Cursor" in run("connect", "--list").stdout


def test_the_command_line_refuses_another_programs_entry(run: Run, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(foreign("cursor"))
    refused = run("connect", "cursor")
    assert refused.exit_code == 2
    assert "--replace" in refused.stderr
    assert path.read_text() == foreign("cursor")
    assert run("connect", "cursor", "--replace", "--no-try").exit_code == 0
    assert run("disconnect", "cursor").exit_code == 0
    assert path.read_text() == foreign("cursor")


def test_a_named_data_folder_goes_into_the_entry(
    run: Run, home: Path, tmp_path: Path, data_dir: Path
) -> None:
    path = home / ".cursor" / "mcp.json"

    def arguments() -> list[str]:
        found: list[str] = json.loads(path.read_text())["mcpServers"]["toolsrv"]["args"]
        return found

    assert run("connect", "cursor", "--no-try").exit_code == 0
    assert arguments() == ["--data-dir", str(data_dir), "serve"]
    other = tmp_path / "other"
    assert run("--data-dir", str(other), "connect", "cursor", "--no-try").exit_code == 0
    assert arguments() == ["--data-dir", str(other), "serve"]
    assert not other.exists()


def test_what_decides_in_this_shell_goes_into_the_entry_but_no_secret(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLSRV_DATA_DIR")
    ours = {
        "TOOLSRV_CONFIG": str(tmp_path / "config.toml"),
        "TOOLSRV_PARALLEL": "3",
        "XDG_DATA_HOME": str(tmp_path / "share"),
    }
    secret = {"TOOLSRV_TOKEN": "t" * 20, "TOOLSRV_ENGINE_KEY": "k", "TOOLSRV_KEY_A_EXAMPLE": "k"}
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, value in {**ours, **secret, "TOOLSRV_WIDTH": "3"}.items():  # it was a setting once
        monkeypatch.setenv(name, value)
    for client, key in (("cursor", "env"), ("codex", "env"), ("goose", "envs")):
        assert run("connect", client, "--no-try").exit_code == 0
        one = CLIENTS[client]
        entry = parsed(client, one.path(machine(home)).read_text("utf-8"))[one.keys[0]]["toolsrv"]
        assert isinstance(entry, dict)
        assert entry[key] == ours


def test_an_unknown_client_is_told_which_there_are(run: Run) -> None:
    for words in (("connect", "emacs"), ("connect",), ("disconnect", "emacs")):
        done = run(*words)
        assert done.exit_code == 2
        assert "vs-code" in done.stderr


def test_the_command_line_writes_every_file_of_a_client(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("AppData/Local/Packages/Claude_x", "AppData/Roaming/Claude"):
        (home / folder).mkdir(parents=True)
    at = machine(home, "win32")
    monkeypatch.setattr("toolsrv.cli.connect.this_machine", lambda: at)
    files = CLIENTS["claude-desktop"].paths(at)
    assert len(files) == 2
    done = json.loads(run("connect", "claude-desktop", "--json", "--no-try").stdout)
    assert [done["path"], *(one["path"] for one in done["others"])] == [str(one) for one in files]
    for one in files:
        assert list(json.loads(one.read_text("utf-8"))["mcpServers"]) == ["toolsrv"]
    files[1].write_text("{}", "utf-8")  # half of it is not all of it
    rows = listed(run)
    assert rows["claude-desktop"]["connected"] is False
    said = run("connect", "claude-desktop", "--no-try").stdout
    assert f"{files[0]}: nothing to change" in said
    assert f"{files[1]}: written" in said
    assert run("disconnect", "claude-desktop").exit_code == 0
    assert not files[0].exists()
    assert files[1].read_text("utf-8") == "{}"


def test_the_machine_is_this_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    found = this_machine()
    assert found.home == tmp_path
    assert found.system == (sys.platform if sys.platform in {"darwin", "win32"} else "linux")


@pytest.mark.parametrize("text", ["0", '"x"', "false", "[]", "/* open", "nul"])
def test_a_file_of_another_kind_is_refused_in_one_line(text: str, home: Path, run: Run) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    for command in ("connect", "disconnect"):
        result = run(command, "cursor")
        assert result.exit_code == 2, result.output
        assert str(path) in result.stderr
        assert "unexpected" not in result.stderr
    assert path.read_text("utf-8") == text

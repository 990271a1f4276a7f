"""``toolsrv doctor``: a line for every part, and what to do about what is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from click.testing import Result
from keyring.backends import fail

import toolsrv_registry
from toolsrv.clients.handshake import REVISIONS
from toolsrv.health import examine
from toolsrv.settings import load
from toolsrv.workbench import Workbench

ModelServer = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))["ModelServer"]
Run = Callable[..., Result]
CHECKS = [
    "versions", "data folder", "catalogs", "index", "encoder", "matcher", "model", "prompts", "cores",
    "device", "keys", "calls today", "log", "server", "clients",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any client."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    for name in ("APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_a_sound_installation_has_no_failure(run: Run, ready_dir: Path) -> None:
    done = run("doctor", "--json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    found = {one["check"]: one for one in said["findings"]}
    assert said["ok"]
    assert list(found) == CHECKS
    assert str(ready_dir) in found["data folder"]["found"]
    assert "offline (" in found["catalogs"]["found"]
    assert "tokens/s" in found["model"]["found"]
    assert "model prompts" in found["prompts"]["next"]
    assert "with 8 tools" in found["server"]["found"]
    assert said["problems"] == []


def test_what_fails_is_told_with_what_to_do_and_the_rest_is_looked_at(
    run: Run, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del data_dir
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"")
    monkeypatch.setenv("TOOLSRV_WIDTH", "3")
    done = run("doctor", "--no-try", "--model", str(bad), "--json")
    assert done.exit_code == 1
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    assert "width (TOOLSRV_WIDTH): use --width" in found["settings"]["found"]
    assert found["model"]["state"] == "fail"
    assert "is empty (0 bytes)" in found["model"]["found"]
    assert found["model"]["next"]
    assert found["index"]["state"] == "warn"
    assert "toolsrv index build" in found["index"]["next"]


@pytest.fixture
def without_keyring() -> Iterator[None]:
    """A system that has no keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("without_keyring")
def test_without_a_keyring_the_file_of_keys_is_named(ready_dir: Path) -> None:
    with contextlib.closing(Workbench(load().settings)) as bench:
        found = {one.check: one for one in examine(bench)}["keys"]
    assert found.state == "ok"
    assert str(ready_dir / "keys.json") in found.found
    assert "0600" in found.found


@pytest.mark.parametrize("missing", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_damaged_encoder_is_told_by_doctor_and_index_status(
    ready_dir: Path, tmp_path: Path, *, missing: bool
) -> None:
    room = tmp_path / "room"
    package = Path(toolsrv_registry.__file__).parent
    shutil.copytree(package, room / package.name)
    model = room / package.name / "models" / "encoder" / "model.int8.onnx"
    model.unlink()
    if not missing:
        model.write_bytes(b"altered")
    assert ready_dir
    path = os.pathsep.join([str(room), os.environ.get("PYTHONPATH", "")])

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolsrv", *words]
        return subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    findings = json.loads(said("doctor", "--no-try", "--json").stdout)["findings"]
    (found,) = [one for one in findings if one["check"] == "encoder"]
    assert found["state"] == "warn"
    assert str(model) in found["found"]
    assert "reinstall" in found["next"]
    status = json.loads(said("index", "status", "--json").stdout)
    assert (status["state"], str(model) in status["encoder_damage"]) == ("ready", True)
    assert "words alone" in said("index", "status").stderr


def test_a_data_folder_that_cannot_be_written_fails(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del data_dir
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(file / "below"))
    monkeypatch.setenv("TOOLSRV_CONFIG", str(tmp_path / "config.toml"))
    done = run("doctor", "--no-try")
    assert done.exit_code == 1
    assert "--data-dir" in done.stdout


def model_check(run: Run, model: str) -> tuple[int, dict[str, str]]:
    done = run("doctor", "--no-try", "--model", model, "--json")
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    return done.exit_code, found["model"]


def test_a_server_is_asked_and_one_that_is_gone_fails(run: Run, ready_dir: Path) -> None:
    assert ready_dir
    gone = "http://127.0.0.1:9/v1"
    code, found = model_check(run, gone)
    assert (code, found["state"]) == (1, "fail")
    assert "cannot be reached" in found["found"]
    assert found["next"]
    with ModelServer([]) as server:
        code, found = model_check(run, server.url)
        assert (code, found["state"]) == (0, "ok")
        assert f"tiny at {server.url} (calls by tools)" in found["found"]
        code, found = model_check(run, f"{server.url},{gone}")
        assert (code, found["state"]) == (0, "warn")
        assert "cannot be reached" in found["found"]


def test_a_script_that_is_missing_fails(run: Run, ready_dir: Path, tmp_path: Path) -> None:
    assert ready_dir
    code, found = model_check(run, f"scripted:{tmp_path / 'none.json'}")
    assert (code, found["state"]) == (1, "fail")
    code, found = model_check(run, "sampling")
    assert (code, found["state"]) == (0, "ok")


def test_each_registered_client_has_a_row_and_each_problem_a_number(
    run: Run, ready_dir: Path, home: Path
) -> None:
    assert run("connect", "cursor", "--no-try").exit_code == 0
    gone = {"command": str(home / "gone" / "toolsrv"), "args": ["serve"]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"toolsrv": gone}}), "utf-8")
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("[mcp_servers\n", "utf-8")
    done = run("doctor", "--json")
    said = json.loads(done.stdout)
    found = {one["check"]: one for one in said["findings"]}
    assert done.exit_code == 1
    assert found["client cursor"]["state"] == "ok"
    assert "with 8 tools" in found["client cursor"]["found"]
    assert found["client claude-code"]["state"] == "fail"
    assert "no longer exists" in found["client claude-code"]["found"]
    assert found["client codex"]["state"] == "warn"
    numbered = [(one["number"], one["check"]) for one in said["problems"]]
    assert numbered == [(1, "client claude-code"), (2, "client codex")]
    assert "toolsrv connect claude-code" in said["problems"][0]["fix"]
    text = run("doctor", "--no-try").stdout
    assert "1. client claude-code (failed)" in text
    assert "2. client codex (warning)" in text
    (kept,) = (ready_dir / "greetings").glob("*.json")
    assert {one.split()[0] for one in json.loads(kept.read_text("utf-8"))} == {
        "initialize", "server/discover", "subscriptions/listen", "tools/list",
    }  # fmt: skip
    assert len(json.loads(kept.read_text("utf-8"))) == 2 * len(REVISIONS) + 1


@pytest.mark.nightly
def test_a_client_whose_server_fails_is_told_with_what_the_server_said(
    run: Run, ready_dir: Path, home: Path
) -> None:
    assert ready_dir
    program = home / "toolsrv"
    program.write_text("#!/bin/sh\necho no such module >&2; exit 3\n", "utf-8")
    program.chmod(0o755)
    (home / ".cursor").mkdir()
    entry = {"command": str(program), "args": ["serve"]}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"toolsrv": entry}}))
    said = json.loads(run("doctor", "--json").stdout)
    (row,) = [one for one in said["findings"] if one["check"] == "client cursor"]
    assert row["state"] == "fail"
    assert "no such module" in row["found"]


def test_the_logs_of_servers_are_named(run: Run, ready_dir: Path) -> None:
    def found() -> str:
        done = run("doctor", "--no-try", "--json")
        (row,) = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "log"]
        return str(row["found"])

    assert str(ready_dir / "logs") in found()
    (ready_dir / "logs").mkdir()
    (ready_dir / "logs" / "http.log").write_text("a line\n", "utf-8")
    (ready_dir / "faults").mkdir()
    (ready_dir / "faults" / "fault-1.log").touch()
    assert f"{ready_dir / 'logs' / 'http.log'} (7 bytes)" in found()
    assert "fault-1.log" in found()

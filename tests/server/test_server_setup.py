"""``toolsrv setup``: every step, what is found here, going on where it stopped, and undoing it."""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from click.testing import Result

from toolsrv import config_file
from toolsrv.setup.machine import (
    FoundModel,
    MachineCapacity,
    best_model,
    found_files,
    found_servers,
)
from toolsrv.setup.state import FILE, SetupState, UndoAction, load_state
from toolsrv_registry.errors import DataError

HERE = Path(__file__).parent
ModelServer = runpy.run_path(str(HERE.parent / "model_server.py"))["ModelServer"]
Run = Callable[..., Result]
GB = 1_000_000_000
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Tide desk", "version": "1"},
    "servers": [{"url": "https://tides.example.com"}],
    "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"k": []}],
    "paths": {"/tides": {"get": {"summary": "Tides of a port", "responses": {"200": {"description": "ok"}}}}},
}  # fmt: skip
TOKEN = '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which only Cursor has been used."""
    folder = tmp_path / "home"
    (folder / ".cursor").mkdir(parents=True)
    (folder / ".cursor" / "mcp.json").write_text(TOKEN, "utf-8")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    for name in list(os.environ):
        if name.startswith(("XDG_", "HF_", "OLLAMA_", "CODEX_")) or name in (
            "APPDATA",
            "LOCALAPPDATA",
        ):
            monkeypatch.delenv(name)
    return folder


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of what the developer's machine serves is seen."""
    monkeypatch.setattr("toolsrv.setup.machine.SERVERS", {})
    monkeypatch.setattr(found_servers, "__defaults__", ({},))


def document(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("no_keyring")
def test_all_steps_are_done_then_not_again_and_then_undone(
    run: Run, ready_dir: Path, home: Path, tmp_path: Path
) -> None:
    own = tmp_path / "tides.json"
    own.write_text(json.dumps(DOCUMENT), "utf-8")
    done = run("setup", "--yes", "--catalog", str(own), "--mode", "offline", "--json")
    assert done.exit_code == 0, done.stderr
    said = document(done)
    steps = {one["step"]: one["found"] for one in said["steps"]}
    assert list(steps) == ["machine", "model", "catalog", "keys", "policy", "clients", "task"]
    assert "tokens/s" in steps["machine"]
    assert "tides (1 APIs)" in steps["catalog"]
    assert "toolsrv keys set tides.example.com" in steps["keys"]
    assert "Cursor" in steps["clients"]
    assert "#800000" in steps["task"]
    assert said["run_id"]
    assert run("run", "show", said["run_id"]).exit_code == 0
    page = ready_dir / "setup-run.html"
    assert "complementary_color" in page.read_text("utf-8")
    servers = json.loads((home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]
    assert list(servers) == ["other", "toolsrv"]

    again = run("setup", "--yes")
    assert again.exit_code == 0
    assert again.stderr.count("done before") == len(steps)

    undone = run("setup", "--undo", "--json")
    assert undone.exit_code == 0, undone.stderr
    assert len(document(undone)["undone"]) == 4
    assert (home / ".cursor" / "mcp.json").read_text("utf-8") == TOKEN
    assert not page.exists()
    assert not (ready_dir / FILE).exists()
    assert "mode" not in config_file.read(ready_dir / "config.toml")
    catalogs = json.loads(run("catalog", "list", "--json").stdout)
    assert "tides" not in json.dumps(catalogs)
    assert "changed nothing" in run("setup", "--undo").stderr


@pytest.mark.nightly
def test_a_step_that_fails_is_told_and_taken_up_the_next_time(
    run: Run, ready_dir: Path, tmp_path: Path
) -> None:
    words = ("setup", "--yes", "--no-clients", "--task", "Convert 5 km to miles.")
    done = run(*words, "--catalog", str(tmp_path / "none.json"), "--json")
    assert done.exit_code == 1
    said = document(done)
    assert list(said["failed"]) == ["catalog"]
    assert "catalog" not in {one["step"] for one in said["steps"]}
    assert "fix:" in done.stderr
    assert "catalog" not in load_state(ready_dir).steps
    own = tmp_path / "tides.json"
    own.write_text(json.dumps(DOCUMENT), "utf-8")
    more = run("setup", "--yes", "--catalog", str(own))
    assert more.exit_code == 0, more.stderr
    assert more.stderr.count("done before") == 6
    assert "keys" in load_state(ready_dir).steps


def test_without_a_person_it_asks_for_yes(run: Run, ready_dir: Path) -> None:
    done = run("setup")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert not (ready_dir / FILE).exists()


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_questions_are_asked_and_an_answer_is_kept_when_it_is_broken_off(
    ready_dir: Path, home: Path
) -> None:
    terminal = runpy.run_path(str(HERE / "terminal.py"))["terminal"]
    with terminal("setup", "--model", "nano", "--catalog", "none") as one:
        one.read_until("How may calls be made?")
        one.read_until("number [1]:")
        one.type("3\n")
        one.read_until("Register in Cursor?")
        one.type("\x03")
        code, _ = one.end(180)
        assert code == 130, one.said
    assert config_file.read(ready_dir / "config.toml")["mode"] == "offline"
    assert list(load_state(ready_dir).steps) == ["machine", "model", "catalog", "keys", "policy"]
    with terminal("setup") as one:
        one.read_until("calls: done before: calls are offline")
        one.read_until("Register in Cursor?")
        one.type("y\n")
        code, _ = one.end(180)
        assert code == 0, one.said
    assert "toolsrv" in (home / ".cursor" / "mcp.json").read_text("utf-8")


def test_what_was_changed_since_stays(run: Run, ready_dir: Path) -> None:
    config = ready_dir / "config.toml"
    config_file.write_key(config, "mode", "replay")
    undo = UndoAction(kind="setting", name="mode", before=None, after="offline")
    state = SetupState.model_validate(
        {"steps": {"policy": {"found": "x", "undo": [undo.model_dump()]}}}
    )
    (ready_dir / FILE).write_text(state.model_dump_json(), "utf-8")
    done = run("setup", "--undo")
    assert done.exit_code == 0
    assert "was changed since" in done.stderr
    assert config_file.read(config)["mode"] == "replay"


@pytest.mark.parametrize("text", ["", "{", '{"steps": {"none": {}}}'])
def test_a_damaged_state_is_told(run: Run, ready_dir: Path, text: str) -> None:
    (ready_dir / FILE).write_text(text, "utf-8")
    with pytest.raises(DataError):
        load_state(ready_dir)
    done = run("setup", "--yes")
    assert done.exit_code == 1
    assert FILE in done.stderr


def write_model(path: Path, *, template: bool = True, size: int = 1000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_feed_forward_length(128)
    if template:
        writer.add_chat_template("{{ messages }}")
    writer.add_tensor("w", np.zeros(size, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_models_of_other_programs_are_found_and_the_largest_that_fits_is_best(home: Path) -> None:
    write_model(home / ".lmstudio" / "models" / "maker" / "a" / "a.gguf", size=2_000)
    write_model(home / ".lmstudio" / "models" / "maker" / "a" / "mmproj-a.gguf", size=90_000)
    write_model(home / ".lmstudio" / "models" / "b" / "embed.gguf", template=False, size=90_000)
    hub = home / ".cache" / "huggingface" / "hub" / "models--x--y"
    write_model(hub / "blobs" / "abc", size=3_000)
    (hub / "snapshots" / "1").mkdir(parents=True)
    (hub / "snapshots" / "1" / "c.gguf").symlink_to(hub / "blobs" / "abc")
    ollama = home / ".ollama" / "models"
    write_model(ollama / "blobs" / "sha256-12", size=50_000_000)
    manifest = ollama / "manifests" / "registry" / "library" / "big" / "7b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:12"}
    outside = {**layer, "digest": "sha256:../../../../etc/passwd"}
    manifest.write_text(json.dumps({"layers": [layer, outside, 5]}), "utf-8")
    manifest.with_name("damaged").write_text("{", "utf-8")
    (home / ".lmstudio" / "models" / "broken.gguf").write_bytes(b"GGUF")

    found = found_files(home, {}, 180_000_000, 2)
    titles = [one.title for one in found]
    assert titles == ["Ollama's big:7b", "the hub cache's c", "LM Studio's a"]
    assert "needs" in found[0].why_not
    assert [one.why_not for one in found[1:]] == ["", ""]
    chosen = best_model(found)
    assert chosen is not None
    assert chosen.title == "the hub cache's c"
    roomy = best_model(found_files(home, {}, 64 * GB, 2))
    assert roomy is not None
    assert roomy.title == "Ollama's big:7b"
    moved = {"OLLAMA_MODELS": str(home / "none"), "HF_HUB_CACHE": str(home / "none")}
    assert [one.title for one in found_files(home, moved, 64 * GB, 2)] == ["LM Studio's a"]


def test_large_models_are_slow_without_a_gpu() -> None:
    seven = MachineCapacity(cores=2, memory=64 * GB, gpu="", gpu_memory=0, disk=GB)
    suggested = seven.suggested()
    assert suggested is not None
    assert suggested.memory_gb <= 8
    with_gpu = MachineCapacity(
        cores=2, memory=64 * GB, gpu="a card", gpu_memory=80 * GB, disk=GB
    ).suggested()
    assert with_gpu is not None
    assert with_gpu.memory_gb > 8
    assert MachineCapacity(cores=1, memory=GB, gpu="", gpu_memory=0, disk=GB).suggested() is None


def test_servers_on_loopback_are_asked_for_their_models_alone() -> None:
    with ModelServer([]) as server:
        found = found_servers({"A": server.url, "B": "http://127.0.0.1:9/v1"})
        assert [one.value for one in found] == [server.url]
        assert "tiny" in found[0].title
        assert server.requests == []
    assert best_model([FoundModel("x", "x", 5, "too large"), *found]) == found[0]

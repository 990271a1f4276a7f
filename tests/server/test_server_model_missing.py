"""A model that is not there: told at once, with where its name stands and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
TOOLSRV = [sys.executable, "-m", "toolsrv"]
CALL = ("solve", "-q", "What is the capital of Peru?")


@pytest.fixture
def gone(run: Run, data_dir: Path) -> Path:
    """A model that the settings file names, and that is gone since."""
    place = data_dir / "mine.gguf"
    data_dir.mkdir()
    place.write_bytes(b"GGUF\x03\0\0\0")
    assert run("config", "set", "model", str(place)).exit_code == 0
    place.unlink()
    return place


def test_a_script_that_is_not_there_cannot_be_used(run: Run, tmp_path: Path) -> None:
    for words in (("model", "info"), ("serve", "--model"), ("config", "set", "model")):
        told = run(*words, "scripted:nofile")
        assert told.exit_code == 2
        assert "nofile" in told.stderr
    (tmp_path / "script.json").write_text('{"replies": ["hello"]}')
    assert run("model", "info", f"scripted:{tmp_path / 'script.json'}").exit_code == 0
    (tmp_path / "script.json").write_text("no script")
    assert run("model", "info", f"scripted:{tmp_path / 'script.json'}").exit_code == 1


@pytest.mark.parametrize("profile", ["nosuch", "nosuch.toml"])
@pytest.mark.parametrize(
    "words",
    [("serve", "--profile"), (*CALL, "--profile"), ("config", "set", "profile")],
)
def test_a_profile_that_is_not_there_is_told_at_once(
    run: Run, data_dir: Path, words: tuple[str, ...], profile: str
) -> None:
    told = run(*words, profile)
    assert told.exit_code == 2
    assert "nosuch" in told.stderr
    assert "toolllama-2" in told.stderr
    assert not (data_dir / "chroma").exists()


@pytest.mark.parametrize(("content", "code"), [(None, 2), (b"", 1), (b"no model at all", 1)])
def test_a_server_does_not_start_with_what_is_no_model(
    tmp_path: Path, content: bytes | None, code: int
) -> None:
    model = tmp_path / "nofile.gguf"
    if content is not None:
        model.write_bytes(content)
    done = subprocess.run(
        [*TOOLSRV, "serve", "--model", str(model)],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert "nofile.gguf" in done.stderr
    assert "hint:" in done.stderr


def test_the_settings_file_is_named_and_how_to_mend_it(
    run: Run, ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ready_dir / "config.toml"
    config.write_text(f'model = "{ready_dir / "gone.gguf"}"\n')
    for words in (CALL, ("model", "info"), ("serve",)):
        told = run(*words)
        assert told.exit_code == 2
        assert str(config) in told.stderr
        assert "toolsrv model use nano" in told.stderr
    monkeypatch.setenv("TOOLSRV_MODEL", "/no/such.gguf")
    told = run(*CALL)
    assert "unset TOOLSRV_MODEL" in told.stderr
    told = run(*CALL, "--model", "/no/other.gguf")
    assert "--model" in told.stderr
    assert "unset" not in told.stderr


def test_a_missing_model_is_mended_as_the_hint_says(run: Run, gone: Path) -> None:
    assert "toolsrv model use nano" in run("model", "info").stderr
    assert run("model", "use", "nano").exit_code == 0
    assert json.loads(run("model", "info", "--json").stdout)["path"] != str(gone)


def test_a_model_that_does_not_exist_is_not_set(run: Run, data_dir: Path) -> None:
    for name in ("nope", "/no/such.gguf"):
        assert run("config", "set", "model", name).exit_code == 2
    assert not (data_dir / "config.toml").exists()

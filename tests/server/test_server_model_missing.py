"""A model that is not there: told at once, with where its name stands and what to do."""

from __future__ import annotations

import errno
import json
import os
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
    [("serve", "--profile"), (*CALL, "--profile")],
)
def test_a_profile_that_is_not_there_is_told_at_once(
    run: Run, data_dir: Path, words: tuple[str, ...], profile: str
) -> None:
    told = run(*words, profile)
    assert told.exit_code == 2
    assert "nosuch" in told.stderr
    assert "toolllama-2" in told.stderr
    assert not (data_dir / "chroma").exists()


@pytest.mark.parametrize(("content", "code"), [(None, 2), (b"", 2), (b"GGUF", 1)])
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


def test_a_link_to_nothing_and_a_ring_of_links_are_told_as_what_they_are(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "link.gguf").symlink_to("gone.gguf")
    (tmp_path / "ring.gguf").symlink_to("ring.gguf")
    for words in (("model", "info"), ("solve", "x", "--model"), ("model", "use")):
        told = run(*words, str(tmp_path / "link.gguf"))
        assert "is a link to gone.gguf, which does not exist" in told.stderr
        assert "symbolic links" in run(*words, str(tmp_path / "ring.gguf")).stderr


def test_no_option_is_named_that_was_not_given(run: Run, tmp_path: Path) -> None:
    for words in (("model", "info"), ("config", "set", "model")):
        told = run(*words, str(tmp_path / "missing.gguf"))
        assert told.exit_code == 2
        assert f"the model file {tmp_path / 'missing.gguf'} does not exist" in told.stderr


def test_a_folder_that_may_not_be_entered_is_told_with_the_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    look = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if closed in path.parents:  # as for everybody but root
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    model = str(closed / "model.gguf")
    for words in (("model", "info", model), ("solve", "x", "--model", model)):
        told = run(*words)
        assert told.exit_code == 1
        assert f"{model}" in told.stderr
        assert "may not be entered" in told.stderr
        assert "--data-dir" not in told.stderr
    monkeypatch.setenv("TOOLSRV_MODEL", model)
    assert run("model", "list").exit_code == 0


def test_a_script_that_is_a_pipe_is_no_missing_one(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path / "pipe", "pipe"), (tmp_path, "folder")):
        told = run("solve", "x", "--model", f"scripted:{path}")
        assert told.exit_code == 1
        assert f"is no file but a {said}" in told.stderr

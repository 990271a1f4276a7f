"""What is damaged, full or not to be read: one clear line, the right code, nothing hangs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
SEARCH = ("search", "time difference between cities", "--json")


def damage(path: Path) -> None:
    """Overwrite a file's content, keeping its length."""
    path.write_bytes(b"\xde\xad\xbe\xef" * (path.stat().st_size // 4 + 1))


@pytest.mark.parametrize("words", [["catalog", "list"], ["search", "x"], ["solve", "x"]])
def test_a_damaged_store_is_told_with_its_place(
    run: Run, ready_dir: Path, words: list[str]
) -> None:
    store = ready_dir / "registry.sqlite3"
    for extra in ready_dir.glob("registry.sqlite3-*"):
        extra.unlink()
    damage(store)
    result = run(*words)
    assert result.exit_code == 1
    assert str(store) in result.stderr
    assert "hint: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_damaged_index_is_built_anew_or_done_without(ready_dir: Path) -> None:
    for path in ready_dir.rglob("*"):
        if path.is_file() and "chroma" in str(path.relative_to(ready_dir)):
            damage(path)
    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", *SEARCH],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hits"][0]["id"] == "Location/world_clock/time_difference"
    assert "Traceback" not in done.stderr
    again = subprocess.run(
        [sys.executable, "-m", "toolsrv", "index", "build", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["state"] == "ready"


@pytest.mark.parametrize("words", [["catalog", "list"], ["config", "set", "parallel", "3"]])
def test_a_disk_without_room_is_told(data_dir: Path, words: list[str]) -> None:
    data_dir.mkdir()

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=no_room,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert str(data_dir) in done.stderr
    assert "fault of toolsrv" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_is_told(run: Run) -> None:
    result = run("--data-dir", "/proc/nothing/here", "catalog", "list")
    assert result.exit_code == 1
    assert "/proc/nothing/here" in result.stderr
    assert "--data-dir" in result.stderr or "data directory" in result.stderr
    assert "Traceback" not in result.stderr

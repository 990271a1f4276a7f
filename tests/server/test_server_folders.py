"""The data folder: who may read it, and names that are none."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
TOOLSRV = [sys.executable, "-m", "toolsrv"]
CALL = ("call", "Location/world_clock/time_difference")
ARGUMENTS = '{"from_city": "London", "to_city": "Sydney"}'


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_the_program_makes_is_for_its_user_alone(
    data_dir: Path, tmp_path: Path, scripted: str
) -> None:
    tmp_path.chmod(0o755)
    commands = [
        [*CALL, ARGUMENTS, "--mode", "record"],
        ["solve", "-q", "hello", "--model", scripted, "--save-answer", str(tmp_path / "a.json")],
        ["run", "show", "last", "--html", str(tmp_path / "a.html")],
        ["recordings", "export", str(tmp_path / "a.pack")],
    ]
    for words in commands:
        subprocess.run([*TOOLSRV, *words], umask=0o022, check=False, capture_output=True)
    assert {"runs.db", "recordings.sqlite3"} <= {path.name for path in data_dir.iterdir()}
    assert mode(data_dir) == 0o700
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "script.json"]
    assert {"a.json", "a.html", "a.pack"} <= {path.name for path in made}
    assert not {str(path): oct(mode(path)) for path in made if mode(path) & 0o077}
    assert mode(tmp_path) == 0o755


def test_a_folder_of_the_users_keeps_its_mode_and_what_is_in_it_is_private(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o755)
    subprocess.run([*TOOLSRV, *CALL, ARGUMENTS, "--mode", "record"], umask=0o022, check=True)
    assert mode(data_dir) == 0o755
    assert mode(data_dir / "recordings.sqlite3") == 0o600


def test_a_catalog_that_is_exported_is_for_others_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["catalog", "export", "offline", str(out)]
    subprocess.run([*TOOLSRV, *words], umask=0o022, check=True, capture_output=True)
    assert {mode(path) for path in out.rglob("*.json")} == {0o644}
    assert {mode(path) for path in [out, *out.glob("*/*")] if path.is_dir()} == {0o755}


@pytest.fixture
def scripted(tmp_path: Path) -> str:
    """The setting of a model that says one thing."""
    script = tmp_path / "script.json"
    script.write_text(
        '{"replies": [{"function": "Finish", "arguments":'
        ' {"return_type": "give_answer", "final_answer": "hello"}}], "loop": true}'
    )
    return f"scripted:{script}"


@pytest.mark.parametrize("name", ["", " "])
def test_a_data_folder_without_a_name_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["catalog", "list"], ["config", "set", "parallel", "3"], ["run", "list"]):
        told = run("--data-dir", name, *words)
        assert told.exit_code == 2
        assert "hint:" in told.stderr
        if name:
            monkeypatch.setenv("TOOLSRV_DATA_DIR", name)
            told = run(*words)
            assert told.exit_code == 2
            assert "TOOLSRV_DATA_DIR" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_settings_file_cannot_name_no_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text('data_dir = ""\n')
    monkeypatch.setenv("TOOLSRV_CONFIG", str(tmp_path / "own.toml"))
    monkeypatch.delenv("TOOLSRV_DATA_DIR")
    told = run("config", "show")
    assert told.exit_code == 2
    assert "data_dir" in told.stderr


def test_a_source_without_a_name_is_not_the_present_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("catalog", "import", "", "--name", "bad")
    assert told.exit_code == 2
    assert "PATH names no source" in told.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("lab", "eval", "pass-rate"),
        ("lab", "eval", "apibench", "--domain", "torchhub", "--data"),
        ("lab", "eval", "stable", "--queries"),
        ("lab", "instructions", "--rounds", "1", "--out"),
    ],
)
def test_a_name_that_no_file_can_have_is_one_line(run: Run, words: tuple[str, ...]) -> None:
    refused = run(*words, "x" * 300)
    assert refused.exit_code == 1
    assert "unexpected" not in refused.stderr
    assert "check the path" in refused.stderr

"""The README's commands, executed as they stand; the two set-up commands are CI's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?<!-->\n)```bash\n(.*?)\n```", README, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("toolsrv ")]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def run(command: str, data_dir: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    return subprocess.run(
        [sys.executable, "-m", *words],
        env={"TOOLSRV_DATA_DIR": str(data_dir), "HOME": str(data_dir), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) >= 9


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_works(command: str, data_dir: Path) -> None:
    done = run(command, data_dir)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_the_first_task_of_the_readme_is_solved(data_dir: Path) -> None:
    found = re.search(r"toolsrv solve (\".*?\")\n```", README)
    assert found
    done = run(f"toolsrv solve {found[1]}", data_dir)
    assert done.returncode == 0, done.stderr
    for fact in ("capital is Tokyo", "sunrise is 0", "calling code is +81"):
        assert fact in done.stdout


def test_every_linked_file_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (Path(__file__).parents[1] / target).exists(), target

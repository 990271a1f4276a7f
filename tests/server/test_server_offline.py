"""The main job without a network: a task is solved where there is none at all.

The process runs in a network namespace without interfaces, or, where the system does not permit
one, under a guard that refuses every socket that is not a Unix one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolsrv_runtime.outcome import Outcome

TASK = "What is the complementary color of teal?"
ALONE = ["unshare", "--user", "--map-root-user", "--net"]
GUARDED = """
import socket, sys

def refuse(event, values):
    inside = event == "socket.__new__" and values[1] == socket.AF_UNIX
    if event.startswith("socket.") and not inside and event != "socket.gethostname":
        raise PermissionError(f"{event} {values}")

sys.addaudithook(refuse)
"""
RUN = """
from toolsrv.cli.main import main
main()
"""
REACH = """
import socket
try:
    socket.create_connection(("198.51.100.1", 443), timeout=5)
except OSError as error:
    print(type(error).__name__)
"""


def permitted() -> bool:
    """Whether a process may have a network of its own here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


NEEDS_NAMESPACE = pytest.mark.skipif(
    not permitted(), reason="no network namespaces here; the socket guard stands in"
)
WAYS = [
    pytest.param(ALONE, "", id="no interfaces", marks=NEEDS_NAMESPACE),
    pytest.param([], GUARDED, id="no sockets"),
]


def python(
    before: list[str], code: str, *words: str, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", code, *words],
        env=os.environ if home is None else os.environ | {"HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize(("before", "guard"), WAYS)
def test_a_task_is_solved_without_a_network(before: list[str], guard: str, ready_dir: Path) -> None:
    done = python(before, guard + RUN, "--data-dir", str(ready_dir), "solve", TASK, "--json")
    assert done.returncode == 0, done.stderr
    outcome = Outcome.model_validate(json.loads(done.stdout))
    assert outcome.status == "answered"
    assert any(one.used and one.ok and one.source == "offline" for one in outcome.evidence)


def test_a_solve_writes_nothing_outside_its_data_folder(ready_dir: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = python([], RUN, "--data-dir", str(ready_dir), "solve", TASK, home=home)
    assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []


@pytest.mark.parametrize(("before", "guard"), WAYS)
def test_the_proof_proves_something(before: list[str], guard: str) -> None:
    assert python(before, guard + REACH).stdout.strip() in {"OSError", "PermissionError"}

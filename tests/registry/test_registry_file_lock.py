"""Lock files: one holder at a time, released with its holder, and nothing left beside a file."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolsrv_registry.file_lock import acquire_lock, lock_beside

_HOLD = """
import pathlib, sys
from toolsrv_registry.file_lock import acquire_lock
held = acquire_lock(pathlib.Path(sys.argv[1]), temporary=sys.argv[2] == "temporary")
print("held", flush=True)
sys.stdin.read()
"""
_COUNT = """
import pathlib, sys
from toolsrv_registry.file_lock import acquire_lock
folder = pathlib.Path(sys.argv[1])
for _ in range(40):
    with acquire_lock(folder / "lock", temporary=True):
        number = int((folder / "count").read_text("utf-8"))
        (folder / "count").write_text(str(number + 1), "utf-8")
"""


@pytest.mark.parametrize("kind", ["kept", "temporary"])
def test_a_killed_holder_releases_its_lock(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().split() == [b"held"]
        with pytest.raises(BlockingIOError):
            acquire_lock(path, wait=False)
        other.kill()
        other.wait()
        with acquire_lock(path, wait=False):
            assert path.exists()


def test_threads_exclude_each_other_and_the_waiting_one_goes_on(tmp_path: Path) -> None:
    path, order = tmp_path / "lock", []

    def wait() -> None:
        with acquire_lock(path):
            order.append("second")

    with acquire_lock(path):
        thread = threading.Thread(target=wait)
        thread.start()
        with pytest.raises(BlockingIOError):
            acquire_lock(path, wait=False)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_a_file_can_be_written_and_replaced_under_its_lock_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    with lock_beside(path):
        with pytest.raises(BlockingIOError):
            lock_beside(path)
        path.write_text("new", "utf-8")
        path.replace(tmp_path / "other")
    assert [one.name for one in tmp_path.iterdir()] == ["other"]


def test_locks_that_are_removed_exclude_too(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0", "utf-8")
    words = [sys.executable, "-c", _COUNT, str(tmp_path)]
    others = [subprocess.Popen(words) for _ in range(3)]
    assert [one.wait(120) for one in others] == [0, 0, 0]
    assert (tmp_path / "count").read_text("utf-8") == "120"
    assert not (tmp_path / "lock").exists()


def test_a_lock_file_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(OSError, match="file"):
        acquire_lock(tmp_path / "file" / "lock")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        acquire_lock(tmp_path / "folder")

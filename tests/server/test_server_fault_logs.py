"""Where the log of an unexpected fault goes: the data folder, else a folder of the user's own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from toolsrv import faults


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that stands in, in a system's folder for temporary files of the test's."""
    system = tmp_path / "tmp"
    system.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(system))
    return system / f"toolsrv-faults-{os.geteuid()}"


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """Return a data folder that cannot be one."""
    path = tmp_path / "data-is-a-file"
    path.write_text("", encoding="utf-8")
    return path


def fault() -> ValueError:
    return ValueError("boom")


def test_logs_of_other_programs_are_left_alone(spare: Path, nowhere: Path) -> None:
    others = [spare.parent / f"fault-{number:03}.log" for number in range(faults.KEEP + 5)]
    for one in others:
        one.write_text("another program's", encoding="utf-8")
    for _ in range(faults.KEEP + 2):
        path = faults.record(fault(), nowhere)
        assert path is not None
        assert path.parent == spare
        assert "boom" in path.read_text("utf-8")
    assert spare.stat().st_mode & 0o777 == 0o700
    assert len(list(spare.iterdir())) == faults.KEEP
    assert sorted(spare.parent.glob("fault-*.log")) == others


@pytest.mark.parametrize("kind", ["link", "open", "file"])
def test_a_folder_that_is_not_the_users_alone_is_not_written(
    spare: Path, nowhere: Path, tmp_path: Path, kind: str
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    match kind:
        case "link":
            spare.symlink_to(theirs)
        case "open":
            spare.mkdir()
            spare.chmod(0o777)
        case _:
            spare.write_text("", encoding="utf-8")
    assert faults.record(fault(), nowhere) is None
    assert not list(theirs.iterdir())
    assert kind == "file" or not list(spare.iterdir())


def test_an_old_log_that_cannot_be_removed_costs_the_new_one_nothing(
    spare: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "faults"
    for number in range(faults.KEEP + 3):  # no unlink removes a folder
        (folder / f"fault-{number:03}.log").mkdir(parents=True)
    path = faults.record(fault(), folder.parent)
    assert path is not None
    assert path.parent == folder
    assert "boom" in path.read_text("utf-8")
    assert not spare.exists()

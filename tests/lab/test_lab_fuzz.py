"""A small seeded share of what ``toolsrv lab fuzz`` tries, and the machinery around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import strategies as st

from toolsrv.cli.laboratory.fuzz_api_server import TARGETS as WORLD
from toolsrv.cli.main import cli
from toolsrv_lab.fuzzing import run
from toolsrv_lab.fuzzing.run import read_reproducer
from toolsrv_lab.fuzzing.strategies import Target, hold
from toolsrv_lab.fuzzing.targets import TARGETS as LAB
from toolsrv_registry.errors import DataError, NotFoundError

SEED, COUNT = 6, 40
TARGETS = (*LAB, *WORLD)


def _under_7(case: Any) -> None:
    hold(case < 7, "it is under 7", case)


BROKEN = Target("broken", "breaks from 7 on", st.integers(0, 10_000), _under_7)
FINE = Target("fine", "never breaks", st.integers(), lambda _: None)


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_no_input_breaks_what_is_promised(target: Target) -> None:
    _, failed = run.attempt(target, SEED, COUNT)
    assert failed is None


def test_targets_have_names_of_their_own_and_cases_that_a_file_can_hold() -> None:
    assert len({one.name for one in TARGETS}) == len(TARGETS) >= 20
    for target in TARGETS:
        kept: list[Any] = []
        probe = Target(target.name, "", target.cases, kept.append)
        run.attempt(probe, SEED, 5)
        for case in kept:
            assert repr(json.loads(json.dumps(case))) == repr(case)


def test_a_failure_is_kept_as_its_smallest_input_and_can_be_tried_again(tmp_path: Path) -> None:
    found = run.fuzz([BROKEN, FINE], tmp_path, count=700, seed=3)
    assert [(one.target, one.number, bool(one.failure)) for one in found] == [
        ("broken", 0, True),
        ("broken", 1, True),
        ("fine", 0, False),
        ("fine", 1, False),
    ]
    assert [one.cases for one in found if one.target == "fine"] == [run.BATCH, run.BATCH]
    kept = read_reproducer(tmp_path / found[0].failure)
    assert (kept.target, kept.case) == ("broken", 7)
    assert "it is under 7" in kept.error
    assert "it is under 7" in run.replay(kept, [BROKEN])
    assert run.replay(kept.model_copy(update={"case": 6}), [BROKEN]) == ""
    with pytest.raises(DataError, match="no target"):
        run.replay(kept, [FINE])


def test_a_stopped_run_goes_on_and_a_seed_means_the_same_inputs(tmp_path: Path) -> None:
    seen: dict[str, list[int]] = {"whole": [], "parts": []}

    def runs(name: str, count: int) -> None:
        target = Target("t", "", st.integers(), seen[name].append)
        run.fuzz([target], tmp_path / name, count=count, seed=1)

    runs("whole", 1000)
    runs("parts", 500)
    with (tmp_path / "parts" / run.NOTES).open("a") as notes:
        notes.write('\n{"format": 1, "target": "t", "se')  # a kill in the middle of a note
    runs("parts", 1000)
    assert seen["whole"] == seen["parts"]
    runs("parts", 1000)
    assert len(seen["parts"]) == 1000


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    assert run.fuzz([BROKEN], tmp_path, count=1, seed=3)[0].failure
    mended = Target("broken", "", BROKEN.cases, lambda _: None)
    assert not run.fuzz([mended], tmp_path, count=1, seed=3)[0].failure
    unused = Target("broken", "", BROKEN.cases, _under_7)
    assert not run.fuzz([unused], tmp_path, count=1, seed=3)[0].failure


@pytest.mark.parametrize("fault", ["raises", "other shape", "no token"])
def test_the_target_of_the_world_sees_a_world_that_breaks_its_promise(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "raises":
        monkeypatch.setattr("toolsrv.api_server.protocol.WorldRequest.filters", lambda _: 1 / 0)
    elif fault == "other shape":
        monkeypatch.setattr("toolsrv.api_server.protocol.REPLY_LIMIT", 10**6)
    else:
        monkeypatch.setattr("toolsrv.api_server.app._same", lambda *_: True)
    _, failed = run.attempt(WORLD[0], SEED, 400)
    assert failed is not None


def test_known_failures_come_first() -> None:
    ran, failed = run.attempt(Target("t", "", st.just(1), _under_7, known=(9,)), SEED, 10)
    assert ran == 1
    assert failed is not None
    assert failed.case == 9


def test_a_folder_that_cannot_be_written_and_files_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no reproducer")
    with pytest.raises(DataError, match="cannot write"):
        run.fuzz([FINE], tmp_path / "file", count=1, seed=0)
    with pytest.raises(DataError, match="no reproducer"):
        read_reproducer(tmp_path / "file")
    with pytest.raises(NotFoundError):
        read_reproducer(tmp_path / "none")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["lab", "fuzz", *words], prog_name="toolsrv")


def test_the_command_reports_what_it_tried(tmp_path: Path) -> None:
    done = invoke("--target", "rules", "--count", "1", "--out", str(tmp_path / "out"), "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["failures"] == []
    assert told["targets"][0] | {"seconds": 0} == {
        "target": "rules",
        "inputs": run.BATCH + 1,  # and the one that once failed
        "seed": 0,
        "seconds": 0,
        "failures": 0,
    }
    assert "requests" in invoke("--list").stdout


def test_the_command_fails_where_an_input_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_lab.fuzzing.targets.TARGETS", (BROKEN,))
    done = invoke("--target", "broken", "--count", "1", "--out", str(tmp_path))
    assert done.exit_code == 1
    (kept,) = tmp_path.glob("broken-*.json")
    assert str(kept) in done.stderr
    again = invoke("--replay", str(kept))
    assert again.exit_code == 1
    assert "it is under 7" in again.stdout


def test_a_target_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    done = invoke("--target", "none", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "no target" in done.stderr

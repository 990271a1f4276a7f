"""The folder of annotated answers: begun, gone on with, damaged, full, and read as training text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from click.testing import Result
from tests.annotation import APIS, METHOD, asked, files, oracle, solve
from tests.full_disk import full_disk

from toolsrv_lab.annotation.assignments import Assignment, from_errands
from toolsrv_lab.annotation.pipeline import AnswerFolder
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.registry import Registry
from toolsrv_runtime.toolbench.answer_files import read_answer

Run = Callable[..., Result]


def steady(count: int) -> list[Assignment]:
    """Errands over APIs that answer the same every time."""
    found = (
        one
        for one in from_errands(APIS.keys(), 0)
        if len(one.steps) < 4
        and all(api.startswith(("Data/country_facts/", "Science/unit_conv")) for api in one.apis)
    )
    return list(islice(found, count))


def test_twenty_answers_become_training_text_without_a_loss(run: Run, tmp_path: Path) -> None:
    out, training = tmp_path / "answers", tmp_path / "training.json"
    words = ["annotate", "--errands", "--count", 20, "--seed", 4, "--out", out]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "20 answers, seed 4:" in done.stdout
    assert len(files(out)) == 20
    first = json.loads((out / "annotation.jsonl").read_text().splitlines()[0])
    assert first["settings"]["seed"] == 4
    made = json.loads(run("convert", out, "--out", training, "--keep-thoughts", "--json").stdout)
    assert (made["files"], made["taken"], made["left_out"], made["skipped"]) == (20, 20, [], {})
    instances = json.loads(training.read_text())
    assert len(instances) == made["instances"] >= 30
    assert all(one["conversations"][-1]["from"] == "assistant" for one in instances)

    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
    again = run(*words, "--json")
    assert json.loads(again.stdout)["there"] == 20
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")} == before
    other = run("annotate", "--errands", "--count", 20, "--seed", 5, "--out", out)
    assert other.exit_code == 1
    assert "other settings: seed" in other.stderr


def test_an_answer_does_not_depend_on_the_others(registry: Registry, tmp_path: Path) -> None:
    assignments = steady(6)
    solve(registry, tmp_path / "a", assignments, oracle(0.5))
    solve(registry, tmp_path / "b", assignments[::-1][:3], oracle(0.5))
    assert files(tmp_path / "b").items() <= files(tmp_path / "a").items()


def test_the_answer_to_a_task_with_hidden_characters_is_not_made_again(
    run: Run, tmp_path: Path
) -> None:
    path, script = tmp_path / "tasks.jsonl", tmp_path / "script.json"
    query = {"query": "What is the capital\u2028 of Peru?", "relevant": []}
    path.write_text(json.dumps(query), "utf-8")
    script.write_text(json.dumps({"replies": ["x"], "loop": True}), "utf-8")
    words = ["annotate", "--tasks", path, "--teacher", "engine", "--model", f"scripted:{script}"]
    words += ["--out", tmp_path / "answers", "--json"]
    counts = [json.loads(run(*words).stdout)["there"] for _ in range(2)]
    assert counts == [0, 1]


def test_a_damaged_answer_is_named_and_made_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "answers"
    words = ["annotate", "--errands", "--count", 3, "--out", out]
    assert run(*words).exit_code == 0
    first, second = sorted(out.glob("*.json"))[:2]
    first.write_text(first.read_text()[:500])
    second.write_text((out / sorted(files(out))[2]).read_text())
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "3 answers (1 were there)" in done.stdout
    for path in (first, second):
        assert path.name in done.stderr
        read_answer(path)
    assert "another task" in done.stderr
    assert json.loads(run(*words, "--json").stdout)["there"] == 3


def test_a_full_disk_is_told_with_the_file_and_what_is_done_stays(
    registry: Registry, tmp_path: Path
) -> None:
    assignments = steady(4)
    solve(registry, tmp_path, assignments[:2], oracle())
    before = files(tmp_path)
    with full_disk(4_000), pytest.raises(DataError) as raised:
        solve(registry, tmp_path, assignments, oracle())
    lacking = [str(tmp_path / f"{one.id}_{METHOD}.json") for one in assignments[2:]]
    assert any(path in raised.value.message for path in lacking)
    assert "goes on" in raised.value.hint
    assert "space" in raised.value.hint
    assert files(tmp_path) == before
    report = solve(registry, tmp_path, assignments, oracle())
    assert (report.done, report.there) == (4, 2)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_killed_annotation_goes_on_after_what_is_done(data_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers"
    words = [sys.executable, "-m", "toolsrv", "lab", "annotate", "--errands", "--count", "24",
             "--out", str(out), "--json"]  # fmt: skip
    environment = {**os.environ, "TOOLSRV_DATA_DIR": str(data_dir), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while len(files(out)) < 4:
            try:
                process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail("it ended before it was killed")
        process.kill()
    before = files(out)
    assert 4 <= len(before) < 24
    for path in out.glob("*.json"):
        read_answer(path)
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["there"] == len(before)
    assert told["solved"] + told["gave_up"] + told["failed"] == 24
    assert files(out).items() >= before.items()
    assert len(files(out)) == 24


def test_only_one_annotation_writes_a_folder(tmp_path: Path) -> None:
    with AnswerFolder(tmp_path, METHOD, {}), pytest.raises(BusyError):
        AnswerFolder(tmp_path, METHOD, {})


def test_a_record_that_is_none_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "annotation.jsonl").write_text("[]\n")
    with pytest.raises(DataError, match=r"annotation\.jsonl"):
        AnswerFolder(tmp_path, METHOD, {})
    assert (tmp_path / "annotation.jsonl").read_text() == "[]\n"


def test_two_tasks_of_one_name_are_refused(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="share the file"):
        solve(registry, tmp_path, [asked("Peru"), asked("Peru")], oracle())

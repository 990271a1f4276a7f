"""The matcher's commands: samples and figures without torch, plain words where something is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matcher") / "samples"


@pytest.mark.nightly
@pytest.mark.usefixtures("ready_dir")
def test_samples_are_written_and_the_matcher_that_ships_is_judged(run: Run, folder: Path) -> None:
    words = ("--own-rounds", "1", "--errand-rounds", "1", "--out", str(folder))
    written = json.loads(run("lab", "samples", *words, "--json").stdout)
    assert written["samples"]["training.jsonl"] > 3_000
    # A part of what is held out is enough here.
    held = folder / "unseen-tasks.jsonl"
    held.write_text("".join(held.read_text().splitlines(keepends=True)[:40]))
    judged = run("lab", "eval", "matcher", "--samples", str(folder), "--json")
    assert judged.exit_code == 0
    figures = json.loads(judged.stdout)
    assert figures["unseen-tasks"]["samples"] + figures["unseen-tasks-whole"]["samples"] == 40
    assert figures["unseen-tasks-whole"]["clause"]["of"] > 0
    assert figures["unseen-tools"]["samples"] == 0
    shown = run("lab", "eval", "matcher", "--samples", str(folder))
    assert "unseen-tasks" in shown.stdout
    assert "% right" in shown.stdout


@pytest.mark.usefixtures("ready_dir")
@pytest.mark.parametrize("command", ["train", "eval"])
def test_a_folder_without_samples_is_told(run: Run, command: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run")) if command == "train" else ()
    done = run("lab", command, "matcher", "--samples", str(tmp_path), *out)
    assert done.exit_code != 0
    assert "Traceback" not in done.stderr
    assert "cannot read the samples" in done.stderr or "not installed" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.usefixtures("ready_dir")
@pytest.mark.parametrize("command", ["train", "export", "eval"])
def test_samples_of_a_catalog_that_is_not_there_are_told_before_anything_begins(
    run: Run, command: str, tmp_path: Path
) -> None:
    theirs = {"text": "t", "clause": [0, 1], "api": "Sports/theirs/scores", "others": ["A/b/c"]}
    for name in ("training", "unseen-tools", "unseen-tasks"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(theirs) + "\n")
    (tmp_path / "base").mkdir()
    out = ("--out", str(tmp_path / "made"), "--base", str(tmp_path / "base"))
    words = {"train": out, "export": (str(tmp_path), *out), "eval": ()}[command]
    done = run("lab", command, "matcher", "--samples", str(tmp_path), *words)
    assert done.exit_code == 1
    assert "of the 2 APIs that its samples name 2 are in no enabled catalog" in done.stderr
    assert "Sports/theirs/scores" in done.stderr
    assert "hint: import the catalog that they were made from" in done.stderr
    assert not (tmp_path / "made").exists()

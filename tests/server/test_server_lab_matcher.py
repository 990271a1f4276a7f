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

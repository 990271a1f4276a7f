"""Training from the command line: options that do not go together, pace, nothing to learn from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.cli.laboratory.training import PaceKeeper, TrainingBar, duration

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which model is to be trained?"),
        (("--rows", "r", "--base", "b"), "--rows is for a training from nothing"),
        (("--rows", "r", "--lora"), "--lora is a setting of fine-tuning"),
        (("--rows", "r", "--max-tokens", "4096"), "--max-tokens is a setting of fine-tuning"),
        (("--base", "b", "--data", "d", "--heads", "4"), "--heads is a setting of a training"),
        (("--base", "b", "--data", "d", "--no-compile"), "--no-compile is a setting of a training"),
        (("--base", "b"), "--base needs conversations"),
        (("--base", "b", "--data", "d", "--rank", "4"), "--rank is a setting of LoRA"),
    ],
)
def test_options_of_the_other_way_to_train_are_refused(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    done = run("lab", "train", "model", "--out", "x", *words)
    assert done.exit_code != 0
    assert said in done.stderr
    assert "hint: " in done.stderr


def test_no_rows_no_curve_and_no_run_are_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, said in (
        (("train", "model", "--rows", "none", "--out", "x"), "there is no vocabulary"),
        (("export", "model", "none"), "holds no finished training"),
        (("curve", "none"), "has no learning curve"),
        (("curve", "one", "two"), "where is the picture of several runs"),
    ):
        done = run("lab", *words)
        assert done.exit_code in {1, 2}
        assert said in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_catalog_without_a_usable_api_gives_no_rows(run: Run, tmp_path: Path) -> None:
    assert run("catalog", "disable", "offline").exit_code == 0
    done = run("lab", "episodes", "--rows", "4", "--out", str(tmp_path / "rows"))
    assert done.exit_code == 1
    assert "no need is written for any API" in done.stderr
    assert "toolsrv catalog enable offline" in done.stderr


def test_the_pace_is_that_of_this_run_not_of_the_one_before() -> None:
    keeper = PaceKeeper()
    assert keeper.add(10.0, 500, 1000, 8000).describe() == ""
    pace = keeper.add(12.0, 501, 1000, 8100)
    assert pace.tokens_per_second == 50
    assert pace.seconds_left == 998
    assert pace.describe() == "50 tokens/s, 17 min left"
    for at in range(1, 400):
        pace = keeper.add(12.0 + at, 501 + at, 1000, 8100 + 200 * at)
    assert pace.tokens_per_second == pytest.approx(200)
    assert pace.seconds_left == pytest.approx(100)
    assert (duration(20), duration(3700)) == ("20 s", "1 h 02 min")


def test_off_a_terminal_a_line_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingBar() as bar:
        for step in range(1, 6):
            bar.show(step, 5, 2.0, 100 * step)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "step 1 of 5: loss 2.0000"
    assert len(lines) == 2
    assert lines[1].startswith("step 5 of 5: loss 2.0000, ")

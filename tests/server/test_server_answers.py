"""Answer files on the command line: ``solve --save-answer`` and ``lab convert``."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.cli.session import Session
from toolsrv.workbench import Workbench
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.toolbench.answer_files import CotAnswer, DfsAnswer, read_answer, tree_of

Run = Callable[..., Result]
SCRIPTED = Path(__file__).parent / "scripted_server.py"
TASK = "What is the capital of Peru?"


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, ready_dir: Path) -> list[Path]:
    """Let the command line work with the scripted model; folders in the list vanish at once."""
    assert ready_dir.is_dir()
    bench = runpy.run_path(str(SCRIPTED))["command_bench"]
    vanishing: list[Path] = []

    def workbench(session: Session, **flags: object) -> Workbench:
        made: Workbench = bench(session, **flags)
        for folder in vanishing:
            folder.rmdir()
        return made

    monkeypatch.setattr(Session, "workbench", workbench)
    return vanishing


@pytest.mark.usefixtures("ready_dir")
def test_a_solve_is_saved_and_converted(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    saved = folder / "1_DFS_woFilter_w2.json"
    solved = run("solve", TASK, "--save-answer", str(saved), "--json")
    assert solved.exit_code == 0
    outcome = Outcome.model_validate(json.loads(solved.stdout))
    answer = read_answer(saved)
    assert isinstance(answer, DfsAnswer)
    assert json.loads(answer.answer_generation.final_answer)["final_answer"] == outcome.answer
    assert [(one.id, one.kind, one.text) for one in tree_of(answer)] == [
        (one.id, one.kind, one.text) for one in outcome.tree
    ]
    offered = [one["name"] for one in answer.answer_generation.function]
    assert len(offered) == len(outcome.candidates) + 1
    assert offered[-1] == "Finish"
    assert {one.function for one in outcome.evidence} <= set(offered)

    chain = folder / "2_CoT@1.json"
    assert run("solve", TASK, "--strategy", "react", "--save-answer", str(chain)).exit_code == 0
    assert isinstance(read_answer(chain), CotAnswer)

    out = tmp_path / "train.json"
    told = run("lab", "convert", str(folder), "--out", str(out), "--keep-thoughts")
    assert told.exit_code == 0
    instances = json.loads(out.read_text("utf-8"))
    assert told.stdout == f"{len(instances)} instances from 2 answer files in {out}\n"
    assert all(one["id"].endswith(TASK) for one in instances)
    last = instances[0]["conversations"][-1]
    assert last["value"].startswith("\nThought: ")
    assert "\nAction Input: {" in last["value"]


@pytest.mark.usefixtures("ready_dir")
def test_a_partial_answer_is_told_as_one_wherever_its_file_is_read(
    run: Run, tmp_path: Path
) -> None:
    saved, page = tmp_path / "part.json", tmp_path / "part.html"
    task = "What is the capital of Peru and what is the complementary color of teal?"
    words = ("solve", task, "--max-calls", "1", "--save-answer", str(saved), "--json")
    solved = run(*words)
    assert solved.exit_code == 3
    outcome = Outcome.model_validate(json.loads(solved.stdout))
    assert (outcome.status, bool(outcome.answer), bool(outcome.missing)) == ("partial", True, True)
    answer = read_answer(saved)
    assert (answer.win, answer.answer_generation.valid_data) == (False, False)

    shown = run("run", "show", str(saved))
    assert f"partial: {outcome.answer[:40]}" in shown.stdout
    assert "the 1 call is used up" in shown.stdout
    told = json.loads(run("run", "show", str(saved), "--json", "--html", str(page)).stdout)
    assert (told["status"], told["answer"]) == ("partial", outcome.answer)
    assert told["missing"] == list(outcome.missing)
    drawn = page.read_text("utf-8")
    assert "<b>partial</b>" in drawn
    assert all(escape(one) in drawn for one in outcome.missing)

    made = run("lab", "convert", str(saved), "--out", str(tmp_path / "train.json"), "--json")
    assert made.exit_code == 1
    assert "only a part of an answer" in json.loads(made.stdout)["error"]


@pytest.mark.usefixtures("scripted")
def test_a_search_that_found_nothing_says_so(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "none.json"
    words = ("LOOKUP it", "--quiet", "--max-tokens", "1", "--save-answer", str(saved))
    result = run("solve", *words)
    assert result.exit_code == 3
    assert "Nothing was found before the search ended: the 1 token is used up" in result.stderr
    assert "still open: " in result.stderr
    assert "Only a partial answer" not in result.stderr
    shown = run("run", "show", str(saved))
    assert "partial: nothing was found before the search ended" in shown.stdout


@pytest.mark.usefixtures("scripted")
def test_a_give_up_is_saved_too(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "1.json"
    assert run("solve", "HOPELESS case", "--save-answer", str(saved)).exit_code == 3
    answer = read_answer(saved)
    assert (answer.win, answer.answer_generation.finish_type) == (False, "give_up")


@pytest.mark.usefixtures("scripted")
def test_a_solve_that_ran_out_of_time_is_saved_as_one_without_an_answer(
    run: Run, tmp_path: Path
) -> None:
    saved = tmp_path / "1.json"
    words = ("solve", "SLOW case", "--max-seconds", "0.3", "--save-answer", str(saved))
    assert run(*words).exit_code == 3
    assert not read_answer(saved).answer_generation.valid_data


def test_an_answer_is_shown_although_its_file_cannot_be_written(
    run: Run, tmp_path: Path, scripted: list[Path]
) -> None:
    folder = tmp_path / "gone"
    for more in ((), ("--json",)):
        folder.mkdir()
        scripted[:] = [folder]
        result = run("solve", "LOOKUP it", "--save-answer", str(folder / "1.json"), *more)
        assert result.exit_code == 1
        assert "It is 42." in result.stdout
        assert str(folder) in result.stderr
        assert "hint:" in result.stderr
        if more:
            assert json.loads(result.stdout)["status"] == "answered"


@pytest.mark.parametrize(
    ("name", "must_say"), [("none/1.json", "does not exist"), (".", "is a folder")]
)
def test_a_place_for_the_answer_that_cannot_be_is_told_before_the_work(
    run: Run, tmp_path: Path, name: str, must_say: str
) -> None:
    result = run("solve", TASK, "--save-answer", str(tmp_path / name))
    assert result.exit_code == 2
    assert must_say in result.stderr
    assert "candidates" not in result.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "code", "must_say"),
    [
        (None, 2, "does not exist"),
        ("", 1, "is empty"),
        ('{"tree": {', 1, "line 1, column 11"),
        ("[1, 2]", 1, "answer_generation"),
        ('{"trys": [], "answer_generation": {"query": 1}}', 1, "valid_data"),
    ],
)
def test_a_conversion_of_what_is_no_answer_file_is_told(
    run: Run, tmp_path: Path, content: str | None, code: int, must_say: str
) -> None:
    source, out = tmp_path / "1_DFS.json", tmp_path / "train.json"
    if content is not None:
        source.write_text(content)
    result = run("lab", "convert", str(source), "--out", str(out), "--json")
    assert result.exit_code == code
    told = json.loads(result.stdout)
    assert must_say in told["error"]
    assert str(source) in told["error"]
    assert told["hint"]
    assert not out.exists()


@pytest.mark.usefixtures("scripted")
def test_files_left_out_of_a_conversion_are_named_with_the_reason(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    for number in range(25):
        (folder / f"{number}_bad.json").write_text("{")
    saved = str(folder / "1_DFS_woFilter_w2.json")
    assert run("solve", "LOOKUP it", "--save-answer", saved).exit_code == 0
    result = run("lab", "convert", str(folder), "--out", str(tmp_path / "train.json"))
    assert result.exit_code == 0
    assert result.stderr.count("left out: ") == 20
    assert "5 more files were left out" in result.stderr
    result = run("lab", "convert", str(folder), "--out", str(tmp_path / "train.json"), "--json")
    assert len(json.loads(result.stdout)["left_out"]) == 25

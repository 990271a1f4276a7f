"""``toolsrv lab eval pass-rate``, ``win-rate`` and ``agreement``."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli

SOLVED = {"function": "check_answer_status", "arguments": {"answer_status": "Solved"}}


def entry(query: str, final: str) -> dict[str, Any]:
    calls = [
        {"name": "parcel_state", "arguments": '{"id": "K7"}', "response": "in Metz since 8:15"},
        {"name": "Finish", "arguments": "{}", "response": ""},
    ]
    nodes: list[dict[str, Any]] = []
    for call in reversed(calls):
        nodes = [{"role": "tool", "message": call, "next": nodes}]
    return {
        "query": query,
        "available_tools": [{"name": "parcel_state", "description": "Where a parcel is"}],
        "answer": {
            "method": "DFS",
            "total_steps": 4,
            "final_answer": final,
            "answer_details": nodes,
        },
    }


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Two models' answers to one subset."""
    for model, final in (("old", ""), ("new", "It is in Metz.")):
        folder = tmp_path / model
        folder.mkdir()
        value = {str(at): entry(f"Where is parcel K{at}?", final) for at in (1, 2)}
        (folder / "G1_tool.json").write_text(json.dumps(value), "utf-8")
    return tmp_path


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A judge that finds everything solved."""
    path = tmp_path / "judge.json"
    path.write_text(json.dumps({"replies": [SOLVED], "loop": True}), "utf-8")
    return path


def invoke(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> Result:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(folder / "data"))
    return CliRunner().invoke(cli, ["lab", "eval", *words])


def test_pass_rate_writes_toolbench_s_files_and_asks_once(
    answers: Path, scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = answers / "out"
    words = ["pass-rate", str(answers / "new"), str(answers / "old"), "--out", str(out)]
    words += ["--judge", f"scripted:{scripted}", "--times", "3"]
    shown = invoke(monkeypatch, answers, *words)
    assert shown.exit_code == 0, shown.output
    assert "2/2 = 100" in shown.stdout
    result = json.loads((out / "G1_tool_new.json").read_text("utf-8"))
    assert result["1"]["passed"] == 3
    assert result["1"]["is_solved"] == "AnswerStatus.Solved"
    with (out / "G1_tool_new.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [one["pass_rate_label"] for one in rows] == ["passed", "passed"]
    board = (out / "pass_rate_leaderboard.csv").read_text("utf-8").splitlines()
    assert board[1].startswith("new,1.0,0.0")
    votes = (out / "votes.jsonl").read_bytes()
    scripted.write_text(json.dumps({"replies": ["I will not be asked"]}), "utf-8")
    again = invoke(monkeypatch, answers, *words, "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads((out / "pass_rate.json").read_text("utf-8"))
    assert (out / "votes.jsonl").read_bytes() == votes


def test_win_rate_uses_the_votes_of_the_pass_rate(
    answers: Path, scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(answers / "out")
    shared = ["--judge", f"scripted:{scripted}", "--times", "2", "--out", out]
    sides = [str(answers / "old"), str(answers / "new")]
    assert invoke(monkeypatch, answers, "pass-rate", *sides, *shared).exit_code == 0
    shown = invoke(monkeypatch, answers, "win-rate", *sides, *shared, "--json")
    assert shown.exit_code == 0, shown.output
    (found,) = json.loads(shown.stdout)["subsets"]
    assert found["wins"]["count"] == 2
    assert found["win_rate"] == 1.0
    table = json.loads((answers / "out" / "G1_tool_old_new.json").read_text("utf-8"))
    assert table["2"] == {"old": 0, "new": 2, "round_0": "complete", "round_1": "complete"}


def test_stabletoolbench_s_rates(
    answers: Path, scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = ["--judge", f"scripted:{scripted}", "--json"]
    new, old = str(answers / "new"), str(answers / "old")
    shown = invoke(monkeypatch, answers, "pass-rate", new, "--sopr", "--times", "3", *judge)
    (found,) = json.loads(shown.stdout)["sets"]
    assert (found["sopr_percent"], found["sopr_deviation"]) == (100.0, 0.0)
    shown = invoke(monkeypatch, answers, "win-rate", old, new, "--sowr", "--times", "1", *judge)
    assert json.loads(shown.stdout)["subsets"][0]["wins"]["count"] == 2


def test_the_rules_need_no_model(answers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = answers / "ids.json"
    ids.write_text('{"2": 0}')
    words = ["pass-rate", str(answers / "new"), "--ids", str(ids), "--json"]
    shown = invoke(monkeypatch, answers, *words)
    assert shown.exit_code == 0, shown.output
    (found,) = json.loads(shown.stdout)["sets"]
    assert found["passed"]["of"] == 1


def test_agreement_says_whether_a_judge_may_be_quoted(
    answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["agreement", "shipped", "--limit", "12", "--times", "1", "--rounds", "1"]
    out = answers / "out"
    shown = invoke(monkeypatch, answers, *words, "--out", str(out))
    assert shown.exit_code == 0, shown.output
    for text in ("pass labels", "kappa", "87.1", "80.3", "may not be quoted"):
        assert text in shown.stdout
    report = json.loads((out / "agreement.json").read_text("utf-8"))
    assert report["quotable"] == {"pass_labels": False, "preferences": False}


def test_a_judge_that_never_decides_is_told_of_both_rates(
    answers: Path, scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"1": entry("Where is parcel K1?", "It is in Metz.")}
    for model in ("old", "new"):
        (answers / model / "G1_tool.json").write_text(json.dumps(value), "utf-8")
    scripted.write_text(json.dumps({"replies": ["perhaps"], "loop": True}), "utf-8")
    judge = ["--judge", f"scripted:{scripted}"]
    for words in (["pass-rate"], ["win-rate", str(answers / "old")]):
        shown = invoke(monkeypatch, answers, *words, str(answers / "new"), *judge)
        assert "the labels are coins" in shown.stderr


def test_subsets_of_one_side_alone_are_told(answers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"1": entry("Where is parcel K1?", "It is in Metz.")}
    (answers / "new" / "G3_instruction.json").write_text(json.dumps(value), "utf-8")
    words = ["win-rate", str(answers / "old"), str(answers / "new"), "--times", "1"]
    assert "1 are compared" in invoke(monkeypatch, answers, *words).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pass-rate", "{new}", "{new}"], "two of the ANSWERS"),
        (["pass-rate", ""], "empty"),
        (["pass-rate", "{new}", "--out", ""], "empty"),
        (["pass-rate", "{missing}"], "does not exist"),
        (["pass-rate", "{new}", "--evaluator", "{new}"], "reads no prompts"),
        (["pass-rate", "{new}", "--judge", "nano"], "has no tool calls"),
        (["win-rate", "{new}", "{other}"], "no query in common"),
        (["pass-rate", "{new}", "--ids", "{missing}"], "does not exist"),
        (["agreement", "{missing}"], "does not exist"),
    ],
)
def test_errors_are_one_line(
    answers: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (answers / "other").mkdir()
    value = {"9": entry("Where is K9?", "It is in Metz.")}
    (answers / "other" / "G1_tool.json").write_text(json.dumps(value), "utf-8")
    places = {name: str(answers / name) for name in ("new", "missing", "other")}
    shown = invoke(monkeypatch, answers, *(word.format(**places) for word in words))
    assert shown.exit_code != 0
    assert "Traceback" not in shown.output
    assert said in shown.output


def test_two_runs_into_one_folder_and_other_settings(
    answers: Path, scripted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["pass-rate", str(answers / "new"), "--judge", f"scripted:{scripted}"]
    words += ["--times", "1", "--out", str(answers / "out")]
    assert invoke(monkeypatch, answers, *words).exit_code == 0
    other = invoke(monkeypatch, answers, *words, "--reasons")
    assert other.exit_code != 0
    assert "other settings: reasons" in other.output

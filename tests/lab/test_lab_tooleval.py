"""ToolEval: answer sets, verdicts, pass rate and win rate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tooleval_answers import FixedJudge, converted, judged, step, write

from toolsrv_lab.tooleval import pass_rate, win_rate
from toolsrv_lab.tooleval.answer_sets import AnswerSet, only, read_sets
from toolsrv_lab.tooleval.verdicts import (
    AnswerStatus,
    TaskStatus,
    Verdict,
    coin,
    majority,
    passes,
    sopr,
)
from toolsrv_registry.errors import DataError, NotFoundError

VECTORS = Path(__file__).parents[1] / "runtime" / "data" / "answer_vectors.json"


# ---------------------------------------------------------------- verdicts
@pytest.mark.parametrize(
    ("answer", "task", "verdict"),
    [
        ("Solved", "Solvable", "Passed"),
        ("Solved", "Unsure", "Passed"),
        ("Solved", "Unsolvable", "Passed"),
        ("Unsolved", "Solvable", "Failed"),
        ("Unsolved", "Unsure", "Unsure"),
        ("Unsolved", "Unsolvable", "Passed"),
        ("Unsure", "Solvable", "Unsure"),
        ("Unsure", "Unsure", "Unsure"),
        ("Unsure", "Unsolvable", "Passed"),
    ],
)
def test_answer_and_task_make_a_verdict(
    answer: AnswerStatus, task: TaskStatus, verdict: Verdict
) -> None:
    assert passes(answer, task) == verdict


def test_the_majority_leaves_unsure_votes_out() -> None:
    assert majority(["Passed", "Failed", "Passed"]) == "Passed"
    assert majority(["Failed", "Unsure", "Unsure"]) == "Failed"
    assert majority(["Passed", "Failed"]) == majority([]) == "Unsure"


def test_a_coin_is_fair_and_falls_the_same_way() -> None:
    heads = sum(coin(0, at) for at in range(1000))
    assert 430 < heads < 570
    assert [coin(0, at) for at in range(50)] == [coin(0, at) for at in range(50)]


def test_sopr_counts_unsure_half_and_a_missing_run_as_unsolved() -> None:
    runs = {
        "x": {"0": "AnswerStatus.Solved", "1": "AnswerStatus.Unsure"},
        "y": {"0": "AnswerStatus.Unsolved"},
    }
    mean, deviation = sopr(runs, 2)
    assert (mean, deviation) == (37.5, 12.5)  # 50 and 25 per cent
    assert sopr({}, 3) == (0.0, 0.0)


# ---------------------------------------------------------------- answer sets
def test_converted_files_make_sets_named_by_folder_and_file(tmp_path: Path) -> None:
    write(tmp_path / "ours" / "G1_tool.json", {"3": converted()})
    write(tmp_path / "ours" / "G2_category.json", {"4": converted(finish=False)})
    first, second = read_sets(tmp_path / "ours")
    assert (first.model, first.subset, second.subset) == ("ours", "G1_tool", "G2_category")
    answer = first.answers["3"]
    assert answer.finished
    assert not second.answers["4"].finished
    assert answer.steps_text() == (
        "Step 1: {'name': 'tide_times', 'arguments': '{}', 'response': '14:20'}\n"
        "Step 2: {'name': 'Finish', 'arguments': '{\"return_type\": \"give_answer\"}', "
        "'response': ''}"
    )
    assert answer.final_step().startswith("Final step: {'name': 'Finish'")
    assert not answer.hallucinated
    assert replace(answer, tools=()).hallucinated


def test_steps_in_pythons_notation_are_read(tmp_path: Path) -> None:
    entry = converted()
    node = entry["answer"]["answer_details"][0]
    while node["next"]:
        if node["role"] == "tool":
            node["message"] = str(node["message"])
        node = node["next"][0]
    (found,) = read_sets(write(tmp_path / "ours" / "G1.json", {"3": entry}))
    assert [one.name for one in found.answers["3"].steps] == ["tide_times", "Finish"]


def test_answer_files_of_toolbench_make_one_set(tmp_path: Path) -> None:
    case = json.loads(VECTORS.read_text("utf-8"))["groups"]["answer_file_example"]["cases"][0]
    for key in ("12", "13"):
        write(tmp_path / "dfs" / "G1" / f"{key}_DFS_woFilter_w2.json", case["answer_file"])
    (found,) = read_sets(tmp_path / "dfs" / "G1")
    assert (found.model, found.subset, sorted(found.answers)) == ("dfs", "G1", ["12", "13"])
    assert found.answers["12"].method == "DFS_woFilter_w2"
    assert [one.id for one in only([found], frozenset({"13"}))[0].answers.values()] == ["13"]
    with pytest.raises(DataError, match="no answer to any query"):
        only([found], frozenset({"99"}))


def test_damaged_and_mixed_answers_are_one_line(tmp_path: Path) -> None:
    case = json.loads(VECTORS.read_text("utf-8"))["groups"]["answer_file_example"]["cases"][0]
    raw = write(tmp_path / "mixed" / "1_DFS.json", case["answer_file"])
    write(tmp_path / "mixed" / "G1.json", {"3": converted()})
    with pytest.raises(DataError, match="mixes answer files"):
        read_sets(tmp_path / "mixed")
    write(tmp_path / "twice" / "1_DFS.json", case["answer_file"])
    write(tmp_path / "twice" / "1_CoT.json", case["answer_file"])
    with pytest.raises(DataError, match="two answers to the query '1'"):
        read_sets(tmp_path / "twice")
    cut = tmp_path / "cut.json"
    cut.write_bytes(raw.read_bytes()[:-40])
    with pytest.raises(DataError, match="cut off"):
        read_sets(cut)
    with pytest.raises(DataError, match="no query with an answer"):
        read_sets(write(tmp_path / "other.json", {"a": 1}))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no \.json file"):
        read_sets(tmp_path / "empty")
    with pytest.raises(NotFoundError):
        read_sets(tmp_path / "nothing")


# ---------------------------------------------------------------- pass rate
@pytest.mark.parametrize(
    ("final", "replies", "status", "asked"),
    [
        ("", ["Solved"], "Unsolved", 0),
        ('{"return_type": "give_up_and_restart"}', ["Solved"], "Unsolved", 0),
        ("At noon.", ["Solved"], "Solved", 1),
        ("At noon.", ["Unsolved", "Solved"], "Unsolved", 1),
        ("At noon.", ["Unsure", "Unsolved"], "Unsolved", 2),
        ("At noon.", ["Unsure", "Unsure"], "Unsure", 2),
    ],
)
def test_the_status_of_an_answer_is_asked_for_as_often_as_needed(
    final: str, replies: list[AnswerStatus], status: str, asked: int
) -> None:
    judge = FixedJudge(*replies)
    assert pass_rate.answer_status(judge, judged(final=final), 0) == status
    assert judge.asked == ["check_answer_status", "parse_answer_status"][:asked]


def test_an_answer_without_finish_fails_and_nobody_is_asked() -> None:
    judge = FixedJudge("Solved")
    found = pass_rate.evaluate(judge, judged(steps=(step("tide_times"),)), 0)
    assert (found.verdict, judge.asked) == ("Failed", [])


def test_equal_votes_are_settled_by_more() -> None:
    judge = FixedJudge("Solved", "Unsolved", "Solved")
    found = pass_rate.label(judge, judged(), 2)
    assert (len(found.votes), found.passed, found.decided) == (3, True, True)


def test_a_judge_that_never_decides_is_counted() -> None:
    judge = FixedJudge("Unsure", task="Unsure")
    labels = {str(at): pass_rate.label(judge, judged(str(at)), 2) for at in range(200)}
    assert not any(one.decided for one in labels.values())
    assert 70 < sum(one.passed for one in labels.values()) < 130
    group = AnswerSet("m", "G1", {key: judged(key) for key in labels})
    assert pass_rate.figures(group, labels, 2).undecided.count == 200


def test_results_have_tooleval_s_keys_and_columns() -> None:
    group = AnswerSet("m", "G1", {"7": judged()})
    labels = {"7": pass_rate.label(FixedJudge("Solved"), judged(), 3)}
    (entry,) = pass_rate.results_json(group, labels).values()
    assert (entry["passed"], entry["failed"]) == (3, 0)
    assert (entry["is_solved"], entry["task_solvable"]) == (
        "AnswerStatus.Solved",
        "TaskStatus.Solvable",
    )
    head, row = pass_rate.results_tsv(group, labels).splitlines()[:2]
    assert head.split("\t") == [
        *("query", "solvable", "available_tools", "model_intermediate_steps"),
        *("model_final_step", "model", "query_id", "is_solved", "pass_rate_label", "reason"),
        "not_hallucinate",
    ]
    assert "passed" in row or "Step 1" in row
    stable = pass_rate.results_json(group, labels, solvable=True)["7"]["is_solved"]
    assert stable == {str(at): "AnswerStatus.Solved" for at in range(3)}


def test_the_leaderboard_has_the_best_method_first() -> None:
    rows = {"weak": {"G1": [0.0, 1.0]}, "strong": {"G1": [1.0, 1.0], "G2": [0.0]}}
    lines = pass_rate.leaderboard("PassRate", rows).splitlines()
    assert lines[0] == "Method,PassRate,StdError,G1_PassRate,G2_PassRate,G1_StdError,G2_StdError"
    assert [line.split(",")[0] for line in lines[1:]] == ["strong", "weak"]


# ---------------------------------------------------------------- win rate
def labelled(status: AnswerStatus, *, passed: bool) -> pass_rate.Label:
    vote = pass_rate.Vote(status, "Solvable", "Passed" if passed else "Failed")
    return pass_rate.Label((vote,), passed, True)


def test_labels_that_differ_decide_every_round() -> None:
    judge = FixedJudge("Unsure")
    pair = (judged(), judged(final="At 3."))
    labels = (labelled("Unsolved", passed=False), labelled("Solved", passed=True))
    found = win_rate.compare(judge, pair, labels, 3)
    assert (found.a, found.b, found.by_judge, judge.asked) == (0, 3, False, [])


def test_a_missing_answer_loses() -> None:
    judge = FixedJudge("Unsure")
    assert win_rate.compare(judge, (None, judged()), (None, None), 2).preference == "b"
    assert win_rate.compare(judge, (judged(), None), (None, None), 2).preference == "a"


def test_a_status_stays_with_its_answer() -> None:
    """Solved beats unsure in every round, whichever is read first."""
    judge = FixedJudge("Unsure")
    for at in range(200):
        pair = (judged(str(at)), judged(str(at), final="Perhaps."))
        assert win_rate.prefer(judge, pair, ("Solved", "Unsure"), at) == 0
        assert win_rate.prefer(judge, pair, ("Unsolved", "Unsure"), at) == 1
    assert judge.asked == []


def test_the_position_of_an_answer_weighs_nothing() -> None:
    always_first = FixedJudge("Solved")
    knows = FixedJudge(
        "Solved", better=lambda first, _second: int("good" not in first.final_answer)
    )
    wins = 0
    for at in range(200):
        pair = (judged(str(at), final="bad"), judged(str(at), final="good"))
        wins += win_rate.prefer(always_first, pair, ("Solved", "Solved"), 0)
        assert win_rate.prefer(knows, pair, ("Solved", "Solved"), 0) == 1
    assert 70 < wins < 130


def test_a_judge_that_goes_by_the_position_prefers_nobody() -> None:
    for at in range(20):
        pair = (judged(str(at), final="one"), judged(str(at), final="other"))
        assert win_rate.compare(FixedJudge("Solved"), pair, (None, None), 2).preference == "tie"


def test_equal_answers_are_drawn() -> None:
    judge = FixedJudge("Solved")
    won = [
        win_rate.prefer(judge, (judged(str(at)), judged(str(at))), ("Solved", "Solved"), 0)
        for at in range(200)
    ]
    assert 70 < sum(won) < 130
    assert judge.asked == []


def test_win_rate_files_and_figures() -> None:
    sets = (
        AnswerSet("old", "G1", {"1": judged("1"), "2": judged("2")}),
        AnswerSet("new", "G1", {"1": judged("1", final="At 14:20.")}),
    )
    judge = FixedJudge("Solved", better=lambda first, _second: int("is at" in first.final_answer))
    labels = [{key: labelled("Solved", passed=True) for key in one.answers} for one in sets]
    found = win_rate.compare_sets(judge, sets, (labels[0], labels[1]), 2)
    figures = win_rate.figures(sets, found)
    assert (figures.wins.count, figures.losses.count, figures.win_rate) == (1, 1, 0.5)
    assert win_rate.results_json(sets, found, 2)["1"] == {
        "old": 0,
        "new": 2,
        "round_0": "complete",
        "round_1": "complete",
    }
    table = win_rate.results_tsv(sets, found)
    assert "preference_label\tquery_id\tref_model\toutput_model" in table.splitlines()[0]
    assert "\t2\t1\told\tnew" in table
    assert "\t1\t2\told\tnew" in table


def test_sets_of_other_queries_are_refused() -> None:
    one = AnswerSet("a", "G1", {"1": judged("1")})
    with pytest.raises(DataError, match="no query in common"):
        win_rate.paired([one], [AnswerSet("b", "G1", {"2": judged("2")})])
    with pytest.raises(DataError, match="is another one"):
        win_rate.paired([one], [AnswerSet("b", "G1", {"1": judged("1", query="Else?")})])
    with pytest.raises(DataError, match="share no subset"):
        win_rate.paired([one, one], [AnswerSet("b", "G2", {"1": judged("1")})])

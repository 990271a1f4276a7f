"""Judges of answers: a chat model, the rules, and how far they agree with people."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tooleval_answers import FixedJudge, converted, judged, step, write

from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.tooleval import pass_rate, win_rate
from toolsrv_lab.tooleval.agreement import (
    LabelledPair,
    kappa,
    kappa_interval,
    measure,
    read_pairs,
    shipped_pairs,
)
from toolsrv_lab.tooleval.answer_sets import AnswerSet, Judged
from toolsrv_lab.tooleval.judge import (
    OURS,
    QUESTIONS,
    ModelJudge,
    StoppedError,
    VoteLog,
    read_wording,
)
from toolsrv_lab.tooleval.rules import RulesJudge, as_api, failed
from toolsrv_lab.tooleval.verdicts import (
    AnswerStatus,
    TaskStatus,
)
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.stop import Stop


# ---------------------------------------------------------------- a model as judge
def verdict(request: ChatRequest) -> ScriptedReply:
    """Reply to each question as an obliging judge does."""
    (tool,) = request.tools
    name, values = QUESTIONS[tool.name]
    return ToolCall(tool.name, {name: values[-1]})


def model_judge(model: Any, path: Path | None, **other: Any) -> tuple[ModelJudge, VoteLog]:
    votes = VoteLog(ResultLog(path, {"judge": "m"}))
    return ModelJudge(model, votes, **other), votes


def test_a_reply_is_held_to_the_question_s_function() -> None:
    chat = ScriptedChat(verdict)
    judge, votes = model_judge(chat, None, reasons=True)
    assert pass_rate.evaluate(judge, judged(), 0).verdict == "Passed"
    (request,) = chat.requests
    assert request.expected.names == ("check_answer_status",)
    assert not request.expected.text
    assert list(request.tools[0].parameters["properties"]) == ["reason", "answer_status"]
    assert request.temperature == OURS.temperature
    assert votes.fresh == 1


def test_a_killed_run_asks_for_what_is_missing_alone(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    group = AnswerSet("m", "G1", {str(at): judged(str(at), query=f"Q{at}") for at in range(6)})
    stop, chat = Stop(), ScriptedChat(verdict)
    judge, votes = model_judge(chat, path, stop=stop)

    def progress() -> None:
        if votes.fresh >= 5:
            stop.set()

    with pytest.raises(StoppedError):
        pass_rate.label_sets(judge, [group], 3, progress=progress)
    votes.log.close()
    kept = len(path.read_text("utf-8").splitlines()) - 1
    assert 5 <= kept < 18
    with path.open("a") as file:
        file.write('{"vote": "cut o')  # as a kill leaves it
    again = ScriptedChat(verdict)
    judge, votes = model_judge(again, path)
    (labels,) = pass_rate.label_sets(judge, [group], 3, jobs=4)
    assert len(again.requests) == 18 - kept
    assert all(one.passed for one in labels.values())
    votes.log.close()


def test_questions_without_a_usable_reply_are_counted_again_by_the_next_run(tmp_path: Path) -> None:
    counts = []
    for chat in (ScriptedChat(["garbage"], loop=True), ScriptedChat(verdict)):
        judge, votes = model_judge(chat, tmp_path / "votes.jsonl")
        assert pass_rate.evaluate(judge, judged(), 0).verdict == "Unsure"
        counts.append(votes.broken)
        votes.log.close()
    assert counts == [3, 3]


def test_votes_have_seeds_of_their_own_and_run_side_by_side() -> None:
    together, most, lock = 0, 0, threading.Lock()
    barrier = threading.Barrier(3, timeout=10)

    def slow(request: ChatRequest) -> ScriptedReply:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        barrier.wait()
        with lock:
            together -= 1
        return verdict(request)

    chat = ScriptedChat(slow)
    judge, _ = model_judge(chat, None, seed=5)
    group = AnswerSet("m", "G1", {str(at): judged(str(at), query=f"Q{at}") for at in range(3)})
    pass_rate.label_sets(judge, [group], 2, jobs=3)
    assert most == 3
    assert sorted(one.seed for one in chat.requests) == [5, 5, 5, 6, 6, 6]


def test_a_reply_that_is_no_verdict_is_asked_for_again_and_counts_as_unsure() -> None:
    chat = ScriptedChat(["I think so.", "Well.", "Hm.", "Hm."])
    judge, votes = model_judge(chat, None)
    assert judge.check_answer_status(judged(), 0) == "Unsure"
    assert (len(chat.requests), votes.broken) == (2, 1)
    better, _ = model_judge(ScriptedChat(["a", "b"]), None)
    assert better.select_better_answer(judged(), judged(final="b"), 1) == 0


class Narrow(ScriptedChat):
    """A model whose context takes so many characters."""

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        if len(request.messages[0].text) > 5000:
            raise ContextError("too long", hint="")
        return super().reply(request, stop=stop)


def test_a_long_answer_is_shortened_until_the_judge_takes_it() -> None:
    chat = Narrow(verdict)
    judge, _ = model_judge(chat, None)
    long = judged(steps=(step("tide_times", "x" * 40_000), step("Finish")))
    assert judge.parse_answer_status(long, 0) == "Solved"
    assert len(chat.requests[0].messages[0].text) > 2000

    class Tiny(Narrow):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            del request, stop
            raise ContextError("too long", hint="")

    judge, _ = model_judge(Tiny(verdict), None)
    with pytest.raises(DataError, match="no room for a question"):
        judge.parse_answer_status(long, 0)


# ---------------------------------------------------------------- wording
def evaluator(folder: Path, leave_out: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "prompt_template: template.txt\ncompletions_kwargs:\n  temperature: 0.7\n  max_tokens: 99\n"
    )
    blocks = [
        f"<function>\n<name>{name}</name>\n<description>My {name}: {{query}} {{answer}} {{task}} "
        "{answer_0} {other}</description>\n</function>"
        for name in QUESTIONS
        if name != leave_out
    ]
    (folder / "template.txt").write_text("\n".join(blocks))
    return folder


def test_prompts_are_read_from_a_copy_of_toolbench(tmp_path: Path) -> None:
    wording = read_wording(evaluator(tmp_path / "mine"))
    assert (wording.temperature, wording.max_tokens) == (0.7, 99)
    text = wording.text("check_answer_status", {"query": "{answer}?", "answer": "A"})
    assert text == "My check_answer_status: {answer}? A {task} {answer_0} {other}"
    assert wording.digest != OURS.digest
    with pytest.raises(DataError, match="does not ask check_task_solvable"):
        read_wording(evaluator(tmp_path / "less", "check_task_solvable"))
    with pytest.raises(NotFoundError):
        read_wording(tmp_path / "nothing")


# ---------------------------------------------------------------- rules
@pytest.fixture(scope="module")
def rules() -> RulesJudge:
    return RulesJudge()


def test_rules_want_finish_success_evidence_and_every_subtask(rules: RulesJudge) -> None:
    assert rules.check_answer_status(judged(), 0) == "Solved"
    wrong = {
        "a value from nowhere": judged(final="High tide is at 16:55."),
        "no Finish": judged(steps=(step("tide_times", {"high": "14:20"}),)),
        "given up": judged(final="give_up_and_restart"),
        "every call failed": judged(steps=(step("tide_times", {"error": "14:20"}), step("Finish"))),
    }
    for why, answer in wrong.items():
        assert rules.check_answer_status(answer, 0) == "Unsolved", why
    query = "Convert 250 euros to Swiss francs, and tell me the weather in Basel tomorrow."
    tools = (
        {
            "name": "convert_currency",
            "description": "Convert an amount of money between currencies",
            "parameters": {"amount": "number", "from": "ISO code", "to": "ISO code"},
        },
        {
            "name": "forecast",
            "description": "Weather forecast of a city for a day",
            "parameters": {"city": "name", "day": "date"},
        },
    )
    half = judged(
        query=query,
        tools=tools,
        final="250 euros are 241.75 francs.",
        steps=(step("convert_currency", {"result": 241.75}), step("Finish")),
    )
    assert rules.findings(half).open_subtasks == 1
    whole = replace(
        half,
        steps=(half.steps[0], step("forecast", {"text": "rain"}), half.steps[1]),
    )
    assert (rules.check_answer_status(half, 0), rules.check_answer_status(whole, 0)) == (
        "Unsolved",
        "Solved",
    )
    assert rules.select_better_answer(half, whole, 0) == 1
    pair = (whole, replace(whole, final_answer="It is 241.75 francs for 250 euros."))
    found = win_rate.compare(rules, pair, (None, None), 2)
    assert (found.a, found.b) == (1, 1)  # equal by every rule: a tie, not a win of the first


def test_rules_read_both_forms_of_functions_and_responses() -> None:
    schema = {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    }
    assert [one.type for one in as_api(schema).required] == ["NUMBER"]
    plain = as_api({"name": "f", "parameters": {"n": "how many"}})
    assert [one.description for one in plain.optional] == ["how many"]
    assert failed(step("f", {"error": "no such port", "response": ""}))
    assert failed(step("f", {"error": "down"}))
    assert failed(step("f", ""))
    assert not failed(step("f", {"error": "", "response": "14:20"}))
    assert not failed(step("f", {"high": 3, "message": "fine"}))


# ---------------------------------------------------------------- agreement
def test_cohen_s_kappa() -> None:
    # 20 and 15 of 50 agreed yes and no: the textbook's 0.4
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    value, low, high = kappa_interval(pairs)
    assert value == 0.4
    assert low is not None
    assert high is not None
    assert low < 0.4 < high
    assert kappa([("y", "y")] * 9) is None
    assert kappa([]) is None


def test_kappa_of_a_few_pairs_that_all_agree_has_a_wide_interval() -> None:
    few = kappa_interval([("y", "y"), ("n", "n")])
    many = kappa_interval([("y", "y"), ("n", "n")] * 50)
    assert few[0] == many[0] == 1
    assert few[1] is not None
    assert many[1] is not None
    assert few[1] < 0
    assert many[1] > 0.9


class People(FixedJudge):
    """A judge that says what the labelled pairs say."""

    def __init__(self, pairs: list[LabelledPair]) -> None:
        super().__init__("Unsure")
        self._status: dict[str, Any] = {}
        self._tasks: dict[str, Any] = {}
        self._wins: set[str] = set()
        for one in pairs:
            for answer, status in ((one.a, one.status_a), (one.b, one.status_b)):
                self._status[one.id + answer.final_answer + answer.steps_text()] = status
            self._tasks[one.id] = one.task_status
            winner = one.b if one.preferred == "b" else one.a
            self._wins.add(one.id + winner.final_answer + winner.steps_text())

    def check_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        del at
        status: AnswerStatus = self._status[answer.id + answer.final_answer + answer.steps_text()]
        return status

    parse_answer_status = check_answer_status

    def check_task_solvable(self, answer: Judged, at: int) -> TaskStatus:
        del at
        status: TaskStatus = self._tasks[answer.id]
        return status

    def select_better_answer(self, first: Judged, second: Judged, at: int) -> int:
        del second, at
        return int(first.id + first.final_answer + first.steps_text() not in self._wins)


def test_a_judge_that_says_what_people_say_may_be_quoted() -> None:
    pairs = shipped_pairs()
    report = measure(People(pairs), pairs, votes=2, rounds=2)
    assert report.pairs == 200
    assert report.pass_labels is not None
    assert report.pass_labels.agreed.rate > 0.95
    assert report.pass_labels.quotable
    assert report.preferences.agreed.rate > 0.95
    assert report.preferences.variance == 0.0


def test_a_judge_that_agrees_by_chance_may_not() -> None:
    pairs = shipped_pairs()
    report = measure(FixedJudge("Solved"), pairs, votes=1, rounds=2)
    assert report.pass_labels is not None
    assert not report.pass_labels.quotable
    assert (report.pass_labels.kappa or 0.0) < 0.2
    single = report.preferences.single
    assert single.mean is not None
    assert 0.5 < single.mean < 0.9  # the labels decide some, coins of position the others
    assert not report.preferences.quotable


def test_toolbench_s_human_annotations_load(tmp_path: Path) -> None:
    entry = converted()
    other = converted("I cannot say.")
    entries = [
        {
            "query": entry["query"],
            "available_tools": entry["available_tools"],
            "answers": [entry["answer"], other["answer"]],
            "preference": people,
        }
        for people in ([0, 0, 1], [1, 1, 1], [0, 1])
    ]
    path = write(tmp_path / "human_cross_annotated_data.json", entries)
    pairs = read_pairs(path)
    assert [one.preferred for one in pairs] == ["a", "b", "tie"]
    assert pairs[0].a.final_answer == "High tide is at 14:20."
    assert pairs[0].status_a is None
    report = measure(FixedJudge("Solved"), pairs, votes=1, rounds=1)
    assert report.pass_labels is None
    assert report.preferences.agreed.of == 2
    assert report.preferences.people is not None
    with pytest.raises(DataError, match="no pair of answers"):
        read_pairs(write(tmp_path / "bad.json", [{"query": "x", "answers": []}]))


def test_bad_labels_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "x", "task": "t"}\n')
    with pytest.raises(DataError, match="line 1, functions"):
        read_pairs(path)
    path.write_text("\n")
    with pytest.raises(DataError, match="holds no labelled pairs"):
        read_pairs(path)


def test_after_a_first_error_nothing_is_begun() -> None:
    begun: list[int] = []

    def make(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise DataError("the third", hint="")
        time.sleep(0.01)
        return number

    with pytest.raises(DataError, match="the third"):
        pass_rate.in_parallel(make, range(1000), 1, lambda: None)
    assert len(begun) < 1000

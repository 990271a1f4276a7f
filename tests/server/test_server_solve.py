"""``toolsrv solve`` with the model that ships, and with a scripted one for what needs control."""

from __future__ import annotations

import json
import runpy
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.cli.session import Session
from toolsrv.cli.solve import solve
from toolsrv_runtime.outcome import Outcome

Run = Callable[..., Result]
SCRIPTED = Path(__file__).parent / "scripted_server.py"


@pytest.fixture
def scripted(ready_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line work with the scripted model."""
    assert ready_dir.is_dir()
    monkeypatch.setattr(Session, "workbench", runpy.run_path(str(SCRIPTED))["command_bench"])


@pytest.mark.usefixtures("scripted")
class TestScripted:
    def test_an_answer_is_on_stdout_and_the_search_on_stderr(self, run: Run) -> None:
        result = run("solve", "LOOKUP the time difference between London and Sydney")
        assert result.exit_code == 0
        assert result.stdout.startswith("It is 42.\n")
        assert "Evidence" in result.stdout
        assert "offline" in result.stdout
        for word in ("candidates", "thought", "call", "calls", "tokens"):
            assert word in result.stderr

    def test_quiet_shows_only_the_end(self, run: Run) -> None:
        result = run("solve", "LOOKUP it", "--quiet")
        assert result.exit_code == 0
        told = [line.partition(":")[0] for line in result.stderr.splitlines()]
        assert told == ["no call succeeded", "No response says", "the whole search"]

    def test_json_is_one_document_that_is_an_outcome(self, run: Run) -> None:
        result = run("solve", "LOOKUP it", "--json")
        outcome = Outcome.model_validate(json.loads(result.stdout))
        assert (outcome.status, outcome.answer) == ("answered", "It is 42.")
        assert not outcome.evidence[0].used  # the scripted call fails, so nothing rests on it

    def test_a_second_opinion_is_told(self, run: Run) -> None:
        result = run("solve", "LOOKUP it", "--verify")
        assert result.exit_code == 0
        assert "read again and accepted: read it" in result.stderr

    def test_a_rejection_is_in_the_outcome(self, run: Run) -> None:
        result = run("solve", "DOUBTFUL LOOKUP", "--verify", "--json")
        outcome = Outcome.model_validate(json.loads(result.stdout))
        assert outcome.status == "answered"
        assert [(one.verdict, one.reason) for one in outcome.opinions] == [("rejected", "read it")]

    def test_giving_up_is_code_3(self, run: Run) -> None:
        result = run("solve", "HOPELESS case")
        assert result.exit_code == 3
        assert "No answer" in result.stderr

    def test_a_partial_answer_is_code_3(self, run: Run) -> None:
        result = run("solve", "SLOW case", "--max-seconds", "0.3", "--json")
        assert result.exit_code == 3
        assert json.loads(result.stdout)["status"] == "partial"

    def test_a_task_comes_from_stdin_in_any_language_and_not_with_bad_bytes(self, run: Run) -> None:
        task = "東京は何時ですか \x1b[31m مرحبا".encode()
        result = run("solve", "-", "--json", stdin=task)
        assert result.exit_code == 0
        assert json.loads(result.stdout)["task"] == "東京は何時ですか  مرحبا"
        assert run("solve", "-", "--json", stdin=task + b"\xff").exit_code == 2

    def test_empty_stdin_is_an_empty_task(self, run: Run) -> None:
        assert run("solve", "-", stdin="").exit_code == 2

    @pytest.mark.parametrize("task", ["x" * 20_000, "[bold]\\[/]", "--help me", "\u202eabc"])
    def test_odd_tasks_are_just_tasks(self, run: Run, task: str) -> None:
        assert run("solve", "--quiet", "--", task).exit_code == 0


def test_a_day_told_by_its_distance_from_today_is_the_one_that_is_asked_about(
    run: Run, ready_dir: Path
) -> None:
    assert ready_dir.is_dir()
    task = (
        "What is the capital of Japan, when does the sun rise there tomorrow, and is 3 May 2027 a "
        "holiday in Italy?"
    )
    before = datetime.now().astimezone()
    done = run("solve", task, "--json")
    after = datetime.now().astimezone()
    made = {
        one.api_id.rpartition("/")[2]: one.arguments
        for one in Outcome.model_validate_json(done.stdout).evidence
    }
    tomorrow = {str((day + timedelta(days=1)).date()) for day in (before, after)}
    assert made["sunrise_and_sunset"]["city"] == "Tokyo"
    assert made["sunrise_and_sunset"]["date"] in tomorrow
    assert made["is_it_a_holiday"] == {"country": "Italy", "date": "2027-05-03"}


def test_the_model_that_ships_is_not_asked_for_a_second_opinion(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    result = run("solve", "capital of Peru", "--verify")
    assert result.exit_code == 2
    assert "second opinion" in result.stderr
    assert "--model" in result.stderr


def test_the_example_of_the_help_is_answered_by_two_apis(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    words = shlex.split((solve.epilog or "").splitlines()[-1])[1:]
    result = run(*words, "--json")
    outcome = Outcome.model_validate(json.loads(result.stdout))
    assert result.exit_code == 0
    used = {one.api_id for one in outcome.evidence if one.used and one.ok}
    assert len(used) >= 2
    assert "11" in outcome.answer
    assert "maroon" in outcome.answer


def test_the_model_that_ships_answers_from_what_the_apis_returned(
    run: Run, ready_dir: Path
) -> None:
    assert ready_dir.is_dir()
    result = run("solve", "What is the time difference between London and Sydney?", "--json")
    outcome = Outcome.model_validate(json.loads(result.stdout))
    assert result.exit_code == (0 if outcome.status == "answered" else 3)
    assert outcome.evidence
    assert outcome.usage.model_calls > 0

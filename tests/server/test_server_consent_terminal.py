"""Consent at a terminal, in the middle of ``toolsrv solve``: a real process on a pseudo-terminal."""

from __future__ import annotations

import json
import runpy
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HELPERS = runpy.run_path(str(HERE / "writing.py"))
terminal = runpy.run_path(str(HERE / "terminal.py"))["terminal"]
TASK: str = HELPERS["TASK"].format(word="alpha")
QUESTION = "Make this call? [y/N]:"


@pytest.fixture
def host(ready_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with HELPERS["FaultyHost"]() as one:
        HELPERS["serve"](one, ready_dir)
        monkeypatch.setenv("TOOLSRV_OWN_HOSTS", one.url.removeprefix("http://"))
        yield one


@pytest.fixture
def solve(tmp_path: Path) -> tuple[str, ...]:
    """A solve whose model writes a word, and then answers."""
    script = tmp_path / "script.json"
    call = {"function": "write_for_notes", "arguments": {"text": "al\u202epha"}}
    answer = {
        "function": "Finish",
        "arguments": {"return_type": "give_answer", "final_answer": "Done."},
    }
    script.write_text(json.dumps({"replies": [call, answer]}), "utf-8")
    return ("solve", TASK, "--category", "Notes", "--model", f"scripted:{script}", "--json")


def test_a_yes_makes_the_call_that_was_shown(host: Any, solve: tuple[str, ...]) -> None:
    with terminal(*solve) as one:
        one.read_until(QUESTION)
        assert host.calls == []
        one.type("y\n")
        code, out = one.end()
    outcome = json.loads(out)
    assert (code, outcome["answer"]) == (0, "Done.")
    assert [call["status"] for call in outcome["evidence"]] == [200]
    assert len(host.written) == 1
    for part in ("POST 127.0.0.1:", "/write", '"text": "al\\u202epha"'):  # what is sent
        assert part in one.said
    assert "\u202e" not in one.said
    assert "allowed: POST" in one.said


@pytest.mark.parametrize(
    "typed",
    ["yess\n", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("\x04", "n\n", "\n"))],
)
def test_anything_else_is_no(host: Any, solve: tuple[str, ...], typed: str) -> None:
    with terminal(*solve) as one:
        one.read_until(QUESTION)
        one.type(typed)
        code, out = one.end()
    outcome = json.loads(out)
    (call,) = outcome["evidence"]
    assert (code, outcome["status"], outcome["answer"]) == (3, "partial", "")
    assert outcome["reason"].startswith("the person declined POST 127.0.0.1:")
    assert (call["status"], call["kind"]) == (0, "declined")
    assert "the person said no to POST 127.0.0.1:" in call["error"]
    assert "setting" not in call["error"]
    assert host.calls == []
    assert "not allowed: POST" in one.said


@pytest.mark.nightly
def test_what_was_typed_before_the_question_is_no_answer(host: Any, solve: tuple[str, ...]) -> None:
    with terminal(*solve) as one:
        one.type("y\ny\ny\n")
        one.read_until(QUESTION)
        time.sleep(0.5)
        assert one.process.poll() is None
        assert host.calls == []
        one.type("n\n")
        one.end()
    assert host.calls == []


def test_ctrl_c_at_the_question_ends_the_solve_at_once(host: Any, solve: tuple[str, ...]) -> None:
    with terminal(*solve) as one:
        one.read_until(QUESTION)
        started = time.monotonic()
        one.type("\x03")
        code, out = one.end(30)
    assert code == 130
    assert time.monotonic() - started < 5
    assert json.loads(out)["status"] == "cancelled"
    assert "Traceback" not in one.said
    assert host.calls == []


@pytest.mark.nightly
@pytest.mark.usefixtures("host")
def test_the_time_of_the_answer_is_not_the_budgets(solve: tuple[str, ...]) -> None:
    with terminal(*solve, "--max-seconds", "5") as one:
        one.read_until(QUESTION)
        time.sleep(6)
        one.type("yes\n")
        code, out = one.end()
    outcome = json.loads(out)
    assert (code, outcome["status"]) == (0, "answered")
    assert outcome["usage"]["seconds"] < 5


def test_without_a_terminal_to_type_at_nobody_is_asked(
    host: Any, solve: tuple[str, ...], ready_dir: Path
) -> None:
    HELPERS["serve"](host, ready_dir, only=True)  # so that it is offered all the same
    script = Path(solve[solve.index("--model") + 1].removeprefix("scripted:"))
    replies = json.loads(script.read_text("utf-8"))["replies"]
    script.write_text(json.dumps({"replies": replies[:1] * 40}), "utf-8")
    with terminal(*solve, stdin=False) as one:
        code, out = one.end()
    (call,) = json.loads(out)["evidence"]
    assert (code, call["status"], call["kind"]) == (3, 0, "needs_consent")
    assert "needs a person's consent" in call["error"]
    assert QUESTION not in one.said
    assert host.calls == []


def test_one_call_is_asked_about_in_the_same_way(host: Any) -> None:
    words = ("call", "Notes/notes/write", '{"text": "beta"}', "--json")
    with terminal(*words) as one:
        one.read_until(QUESTION)
        one.type("y\n")
        code, out = one.end()
    assert (code, json.loads(out)["status"]) == (0, 200)
    assert host.written == ['{"text":"beta"}']
    with terminal(*words) as one:
        one.read_until(QUESTION)
        one.type("\x03")
        code, out = one.end()
    assert (code, json.loads(out)["error"]) == (130, "interrupted")
    assert "Fatal Python error" not in one.said
    assert len(host.written) == 1


@pytest.mark.parametrize("typed", ["n\n", pytest.param("\x04", marks=pytest.mark.nightly)])
def test_one_call_that_is_declined_says_so_and_no_way_round(host: Any, typed: str) -> None:
    words = ("call", "Notes/notes/write", '{"text": "beta"}')
    with terminal(*words) as one:
        one.read_until(QUESTION)
        one.type(typed)
        code, out = one.end()
    assert (code, out) == (2, b"")
    assert "error: Notes/notes/write: the person said no to POST 127.0.0.1:" in one.said
    assert "hint: only the person may run it again and say yes" in one.said
    assert "setting" not in one.said
    with terminal(*words, "--json") as one:
        one.read_until(QUESTION)
        one.type(typed)
        code, out = one.end()
    document = json.loads(out)
    assert (code, document["kind"], document["status"]) == (2, "declined", 0)
    assert document["consent"]["arguments"] == {"text": "beta"}
    assert host.calls == []


@pytest.mark.nightly
@pytest.mark.usefixtures("host")
def test_the_terminal_is_left_as_it_was(solve: tuple[str, ...]) -> None:
    with terminal(*solve) as one:
        before = termios.tcgetattr(one._master)
        one.read_until(QUESTION)
        one.type("\x03")
        one.end()
        assert termios.tcgetattr(one._master) == before

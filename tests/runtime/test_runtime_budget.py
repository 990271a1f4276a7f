"""A search that has to end ends itself: within its budget and one step, with what is known."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.agents import CAPITAL
from tests.toolllama_replies import call

from toolsrv_runtime.agent.state import Budget
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError, ModelError
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.stop import Stop

Solve = Callable[..., Outcome]


def closing(answer: str, missing: list[str]) -> str:
    said = {"return_type": "give_answer", "final_answer": answer, "missing": missing}
    return f"Thought: answer\nAction: Finish\nAction Input: {json.dumps(said)}"


COUNTRIES = ["Peru", "Chile", "Bolivia", "Ecuador", "Colombia", "Uruguay", "Paraguay", "Brazil"]
CLOSING = closing("Lima and others", ["who lives there"])


class Closer(ScriptedEngine):
    """Calls one thing after the other; asked for the last word, it has one."""

    def __init__(self, last: str = CLOSING, seconds: float = 0.0) -> None:
        super().__init__([call(one) for one in COUNTRIES], seconds=seconds, loop=True)
        self.last = last
        self.grammars: list[str] = []

    def generate(self, prompt: Any, *, grammar: str, **given: Any) -> Any:
        self.grammars.append(grammar)
        reply = super().generate(prompt, grammar=grammar, **given)
        if "no time for further calls" not in self.prompts[-1] or reply.finish == "stopped":
            return reply
        return type(reply)(self.last, (1, 2), "grammar", 1, 1, 0)


@pytest.mark.parametrize(
    ("limits", "word", "replies"),
    [
        (Limits(model_calls=3), "3 model calls", 4),
        (Limits(calls=2), "2 calls", 4),
        (Limits(tokens=20), "20 tokens", 5),
    ],
    ids=["model calls", "API calls", "tokens"],
)
def test_at_the_end_of_a_budget_the_model_answers_once(
    solve: Solve, limits: Limits, word: str, replies: int
) -> None:
    engine = Closer()
    outcome = solve(engine, SolveOptions(limits=limits, depth=96))
    assert (outcome.status, outcome.answer) == ("partial", "Lima and others")
    assert word in outcome.reason
    assert outcome.missing == ("who lives there",)
    assert "who lives there" in outcome.reason
    assert len(engine.prompts) <= replies
    assert outcome.usage.model_calls <= replies
    assert outcome.tree[-1].kind == "answer"
    assert all(one.used for one in outcome.evidence)
    told = {one.node for one in outcome.costs}
    assert {one.id for one in outcome.tree if one.kind in {"call", "answer"}} <= told


def test_the_last_word_can_only_be_an_answer(solve: Solve) -> None:
    engine = Closer()
    solve(engine, SolveOptions(limits=Limits(model_calls=2)))
    assert "give_answer" in engine.grammars[-1]
    assert "give_up" not in engine.grammars[-1]
    assert CAPITAL not in engine.grammars[-1]


def test_at_the_end_of_its_time_a_solve_has_one_step_more(solve: Solve) -> None:
    events: list[Event] = []
    started = time.monotonic()
    engine = Closer(seconds=0.4)
    outcome = solve(engine, SolveOptions(limits=Limits(seconds=1.5), depth=96), events=events)
    assert time.monotonic() - started < 1.5 + 1.0 + 1.5  # budget, one step, a busy machine
    assert (outcome.status, outcome.answer) == ("partial", "Lima and others")
    assert "time of 1.5 seconds" in outcome.reason
    assert events[-1].kind == "budget"


@pytest.mark.parametrize(
    "last",
    ["Thought: broken o", "", call("Peru"), closing("", [])[:-9], "[]", "\nAction Input: {}"],
)
def test_without_a_usable_last_word_the_facts_are_joined(solve: Solve, last: str) -> None:
    outcome = solve(Closer(last), SolveOptions(limits=Limits(calls=1)))
    assert outcome.status == "partial"
    assert outcome.answer == "country is Peru, capital is Lima"


@pytest.mark.parametrize("fault", [ModelError, ContextError])
def test_a_fault_of_the_engine_leaves_what_is_known(
    solve: Solve, fault: type[ModelError | ContextError]
) -> None:
    class Broken(ScriptedEngine):
        def generate(self, *args: Any, **given: Any) -> Any:
            if len(self.prompts) > 1:
                raise fault("the decode failed", hint="")
            return super().generate(*args, **given)

    outcome = solve(Broken([call("Peru"), call("Chile")]), SolveOptions(width=1))
    assert "Lima" in outcome.answer
    assert "Santiago" in outcome.answer
    assert outcome.status in {"partial", "gave_up"}


def test_an_evaluation_is_told_of_a_fault(solve: Solve) -> None:
    with pytest.raises(ModelError):
        solve(ScriptedEngine([call("Peru")]), SolveOptions(keep_on_fault=False))


def test_a_fault_before_anything_is_known_is_told_as_a_fault(solve: Solve) -> None:
    with pytest.raises(ModelError):
        solve(ScriptedEngine([]), SolveOptions())


def test_a_stop_ends_it_at_once_without_a_last_word(solve: Solve) -> None:
    stop = Stop()

    class Pressed(Closer):
        def generate(self, *args: Any, **given: Any) -> Any:
            if len(self.prompts) == 2:
                self._seconds = 60.0
                threading.Timer(0.05, stop.set).start()
            return super().generate(*args, **given)

    engine = Pressed()
    started = time.monotonic()
    outcome = solve(engine, SolveOptions(), stop=stop)
    assert time.monotonic() - started < 2
    assert outcome.status == "cancelled"
    assert (
        outcome.answer == "country is Peru, capital is Lima; country is Chile, capital is Santiago"
    )
    assert len(engine.prompts) == 3


def test_a_stop_during_the_last_word_ends_that_too(solve: Solve) -> None:
    stop = Stop()

    class Pressed(Closer):
        def generate(self, *args: Any, **given: Any) -> Any:
            if "give_up" not in given["grammar"]:
                self._seconds = 60.0
                stop.set()
            return super().generate(*args, **given)

    started = time.monotonic()
    outcome = solve(Pressed(), SolveOptions(limits=Limits(model_calls=2)), stop=stop)
    assert time.monotonic() - started < 2
    assert (outcome.status, "Lima" in outcome.answer) == ("cancelled", True)


def test_a_search_at_its_depth_answers_too(solve: Solve) -> None:
    outcome = solve(Closer(), SolveOptions(strategy="react", depth=6))
    assert (outcome.status, outcome.answer) == ("partial", "Lima and others")


def test_where_nothing_is_known_nothing_is_said(solve: Solve) -> None:
    engine = ScriptedEngine([call("Atlantis"), call("Mordor")])
    outcome = solve(engine, SolveOptions(limits=Limits(model_calls=2)))
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert outcome.missing == ("capital of Peru",)
    assert outcome.reason.startswith("nothing was found before the search ended: the 2 model calls")
    assert len(engine.prompts) == 2


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(tokens=1), "the 1 token is used up"),
        (Limits(model_calls=1), "the 1 model call is used up"),
    ],
)
def test_where_nothing_was_tried_the_whole_task_is_missing(
    solve: Solve, limits: Limits, why: str
) -> None:
    outcome = solve(ScriptedEngine(["Thought: let me see"], loop=True), SolveOptions(limits=limits))
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert outcome.missing == ("capital of Peru",)
    assert outcome.reason == (
        f"nothing was found before the search ended: {why}; still open: capital of Peru"
    )


def test_one_call_and_one_second_are_told_in_the_singular(solve: Solve) -> None:
    outcome = solve(Closer(), SolveOptions(limits=Limits(calls=1)))
    assert outcome.reason.startswith("the 1 call is used up; still open: who lives")
    assert Budget(Limits(seconds=1), 0.0).late(2.0) == "the time of 1 second is over"


def test_a_wrong_name_that_opens_an_answer_is_listed(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru"), closing("Berlin is the capital of Peru", [])])
    outcome = solve(engine, SolveOptions())
    assert outcome.status == "answered"
    assert [one.text for one in outcome.unsupported] == ["Berlin"]


def test_an_answer_in_the_last_reply_of_a_budget_counts(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru"), closing("Lima", [])])
    outcome = solve(engine, SolveOptions(limits=Limits(model_calls=2)))
    assert (outcome.status, outcome.answer) == ("answered", "Lima")


def test_the_reference_ends_without_an_answer(solve: Solve) -> None:
    engine = Closer()
    outcome = solve(engine, SolveOptions(limits=Limits(model_calls=2), close_search=False))
    assert len(engine.prompts) == 2
    assert outcome.answer.startswith("country is Peru")


@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 80), st.integers(1, 3))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_budget_is_exceeded_by_more_than_one_step(
    solve: Solve, replies: int, calls: int, tokens: int, width: int
) -> None:
    limits = Limits(model_calls=replies, calls=calls, tokens=tokens)
    outcome = solve(Closer(), SolveOptions(limits=limits, width=width, depth=30))
    assert outcome.usage.model_calls <= replies + 1
    assert outcome.usage.calls <= calls
    assert outcome.status == "partial"
    assert outcome.answer == "Lima and others"

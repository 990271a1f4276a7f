"""A model that goes round in circles: calls that stand on their path are answered from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.agents import CAPITAL
from tests.toolllama_replies import call

from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.solve import SolveOptions

Solve = Callable[..., Outcome]


def said(function: str, arguments: dict[str, Any]) -> str:
    return f"Thought: t\nAction: {function}\nAction Input: {json.dumps(arguments)}"


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
def test_a_model_that_repeats_one_call_for_ever_makes_it_once_and_ends(
    solve: Solve, strategy: str
) -> None:
    engine = ScriptedEngine([call("Peru")], loop=True)
    outcome = solve(engine, SolveOptions.model_validate({"strategy": strategy, "depth": 96}))
    assert outcome.usage.calls == 1
    assert len(engine.prompts) < 40
    assert outcome.status in {"partial", "gave_up"}
    assert "Lima" in outcome.answer


def test_the_second_repetition_closes_the_branch(solve: Solve) -> None:
    events: list[Event] = []
    engine = ScriptedEngine([call("Peru")], loop=True)
    outcome = solve(engine, SolveOptions(strategy="react", depth=96), events=events)
    calls = [node for node in outcome.tree if node.kind == "call"]
    assert [node.pruned for node in calls] == [False, False, True]
    outcome = solve(engine, SolveOptions(width=2, depth=96), events=events)
    reasons = {event.reason for event in events if event.kind == "backtrack"}
    assert "says the same again" in reasons


def test_a_repeated_call_gets_the_response_from_then_and_is_told_so(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru")], loop=True)
    solve(engine, SolveOptions(strategy="react"))
    assert "this very call" not in engine.prompts[1]
    assert engine.prompts[2].count("this very call") == 1
    assert engine.prompts[2].count("Lima") == 2


def test_calls_are_the_same_when_they_mean_the_same(solve: Solve) -> None:
    percent = "percentage_of_number_for_math_desk"
    numbers: list[Any] = [15, "15", 15.0]
    engine = ScriptedEngine([said(percent, {"percent": one, "number": 240}) for one in numbers])
    options = SolveOptions(strategy="react")
    outcome = solve(engine, options, task="What is 15 percent of 240?")
    assert [(e.status, e.times) for e in outcome.evidence] == [(200, 3)]
    assert outcome.usage.calls == 1
    assert outcome.tree[-1].pruned


def test_a_repeated_call_is_one_row_of_the_evidence(solve: Solve) -> None:
    engine = ScriptedEngine([call("Chile"), call("Peru")], loop=True)
    options = SolveOptions(strategy="react", limits=Limits(model_calls=5), close_repeats=False)
    outcome = solve(engine, options)
    rows = [(one.arguments["country"], one.times, one.used) for one in outcome.evidence]
    assert rows == [("Chile", 1, True), ("Peru", 4, True)]
    assert outcome.usage.calls == 5


def test_a_call_stands_where_the_answer_made_it(solve: Solve) -> None:
    give_up = said("Finish", {"return_type": "give_up_and_restart"})
    answer = said("Finish", {"return_type": "give_answer", "final_answer": "Lima"})
    script = [call("Peru"), give_up, call("Chile"), call("Peru"), answer]
    outcome = solve(ScriptedEngine(script), SolveOptions())
    rows = [(one.arguments["country"], one.times, one.used) for one in outcome.evidence]
    assert rows == [("Chile", 1, True), ("Peru", 2, True)]
    assert outcome.evidence[1].node == outcome.tree[-2].id


@pytest.mark.parametrize(
    "reply",
    [
        said("nowhere_to_be_found", {}),
        said(CAPITAL, {"planet": "Mars"}),
        said("Finish", {"return_type": "perhaps"}),
    ],
    ids=["unknown function", "bad arguments", "bad Finish"],
)
def test_what_comes_to_nothing_again_and_again_ends_too(solve: Solve, reply: str) -> None:
    engine = ScriptedEngine([reply], loop=True)
    outcome = solve(engine, SolveOptions(strategy="react", depth=96))
    assert (outcome.status, len(engine.prompts)) == ("partial", 3)
    assert outcome.usage.calls == 0


def test_one_call_on_two_branches_is_no_circle(solve: Solve) -> None:
    give_up = said("Finish", {"return_type": "give_up_and_restart"})
    engine = ScriptedEngine([call("Peru"), call("Chile"), give_up, call("Bolivia"), give_up,
                             call("Peru"), give_up])  # fmt: skip
    outcome = solve(engine, SolveOptions(depth=96))
    assert outcome.usage.calls == 3
    assert not any(node.pruned for node in outcome.tree if node.kind == "call")


def test_the_reference_goes_round_until_its_depth(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru")], loop=True)
    options = SolveOptions(strategy="react", depth=12, close_repeats=False, close_search=False)
    assert solve(engine, options).usage.model_calls == 4

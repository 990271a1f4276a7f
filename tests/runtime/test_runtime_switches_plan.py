"""The switch ``plan`` in whole solves: subtasks, their candidates, budgets and results."""

from __future__ import annotations

from typing import Any

import pytest
from tests.agents import CAPITAL, CURRENCY
from tests.switched_solves import (
    ANSWER,
    FLAG,
    IDS,
    LIMA,
    PARTS,
    TASK,
    Mind,
    Shelf,
    asks_for,
    called,
    functions,
    solve,
    task_of,
)

from toolsrv_registry.api import Api
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.models.scripted import ScriptedReply
from toolsrv_runtime.options import SWITCHES
from toolsrv_runtime.outcome import Event, Limits
from toolsrv_runtime.stop import Stop


def test_each_subtask_has_candidates_of_its_own_and_sees_earlier_results(
    apis: dict[str, Api],
) -> None:
    shelf = Shelf([apis[one] for one in IDS], best={PARTS[1]: "national_currency"})
    events = list[Event]()
    outcome, model = solve(shelf, Mind(), switches=["plan"], candidates=1, events=events)
    assert shelf.asked == [TASK, *PARTS]
    assert outcome.candidates == IDS[:2]
    first, second = (r for r in model.requests if r.expected.names and not called(r))
    assert [one.name for one in first.tools] == [CAPITAL, "no_function_fits"]
    assert [one.name for one in second.tools] == [CURRENCY, "no_function_fits"]
    assert "Lima" not in task_of(first)
    assert TASK in task_of(second)
    assert "Lima" in task_of(second)
    thoughts = [one.text for one in events if one.kind == "thought"]
    assert thoughts[0] == f"plan: 1. {PARTS[0]}; 2. {PARTS[1]}"
    kinds = [(one.kind, one.thought) for one in outcome.tree if one.kind == "thought"]
    assert kinds == [("thought", text) for part in PARTS for text in (part, f"done: {part}")]
    assert [one.order for one in outcome.tree][:2] == [0, 0]
    orders = [one.order for one in outcome.tree if one.order]
    assert len(orders) == len(set(orders))


@pytest.mark.parametrize(
    "plan",
    [[], ["", "  "], [TASK], [PARTS[0], PARTS[0].upper(), f" {PARTS[0]} "], "none", None, [1, {}]],
    ids=["empty", "blank", "one", "the same", "a text", "null", "no texts"],
)
def test_a_plan_that_is_none_leaves_the_plain_strategy(shelf: Shelf, plan: Any) -> None:
    outcome, _ = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert (outcome.status, functions(outcome)) == ("answered", [CAPITAL, CURRENCY])
    assert {one.kind for one in outcome.tree} == {"root", "call", "answer"}


@pytest.mark.parametrize(
    "reply",
    ["First I would …", ChatReply(text='{"subtasks": ["What is', finish="length")],
    ids=["no JSON", "broken off"],
)
def test_a_plan_that_is_no_json_leaves_the_plain_strategy(
    shelf: Shelf, reply: ScriptedReply
) -> None:
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        return reply if asks_for(request) == "subtasks" else mind(request)

    assert solve(shelf, said, switches=["plan"])[0].status == "answered"


def test_of_fifty_subtasks_few_are_solved(shelf: Shelf) -> None:
    words = [f"the capital of Peru, {chr(97 + at % 26) * (1 + at // 26)}" for at in range(50)]
    mind = Mind(plan=words, call=lambda r: "done" if called(r) else LIMA)
    outcome, _ = solve(shelf, mind, switches=["plan"])
    assert sum(one.text == "" and one.thought in words for one in outcome.tree) == 6
    assert outcome.status == "answered"
    assert outcome.usage.calls == 1  # the same call each time


def test_a_plan_in_another_language_is_followed(shelf: Shelf) -> None:
    plan = ["Was ist die Hauptstadt von Peru?", "Mit welcher Währung zahlt man in Chile?"]
    outcome, model = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert (outcome.status, functions(outcome)) == ("answered", [CAPITAL, CURRENCY])
    assert any(task_of(one).startswith(plan[1]) for one in model.requests)


def test_a_subtask_that_invents_a_value_is_left_out(shelf: Shelf) -> None:
    plan = [*PARTS, "Convert 5000 pesos"]
    outcome, _ = solve(shelf, Mind(plan=plan), switches=["plan"])
    assert outcome.status == "answered"
    assert not any("5000" in one.thought for one in outcome.tree)


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react"])
def test_a_subtask_that_nothing_serves_is_told_as_open(shelf: Shelf, strategy: str) -> None:
    weather = "What is the weather in Peru?"
    no = ToolCall("no_function_fits", {"reason": "no weather"})

    def call(request: ChatRequest) -> ScriptedReply:
        if task_of(request).startswith(weather):
            return no
        return Mind()._next(request)

    mind = Mind(plan=[weather, *PARTS], call=call)
    outcome, _ = solve(shelf, mind, switches=["plan"], strategy=strategy)
    assert outcome.missing == (weather,)
    assert (outcome.status, outcome.answer) == ("partial", ANSWER)
    assert functions(outcome) == [CAPITAL, CURRENCY]


def test_a_subtask_makes_few_calls(shelf: Shelf) -> None:
    countries = iter(["Peru", "Chile", "Spain", "Italy", "France", "Japan", "Kenya", "Cuba"])
    mind = Mind(call=lambda _: ToolCall(FLAG, {"country": next(countries)}))
    outcome, _ = solve(shelf, mind, switches=["plan"], strategy="react")
    assert outcome.usage.calls == 6
    assert outcome.status == "answered"


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
@pytest.mark.parametrize("most", range(1, 8))
def test_a_plan_keeps_the_budget_of_replies(shelf: Shelf, most: int, strategy: str) -> None:
    outcome, model = solve(
        shelf,
        Mind(),
        switches=SWITCHES,
        strategy=strategy,
        limits=Limits(model_calls=most),
        close_search=False,
    )
    assert outcome.status == "partial"
    assert "model call" in outcome.reason
    # What was begun when the last was spent is finished: a call or an answer takes several replies.
    assert len(model.requests) <= most + 8


def test_a_stop_ends_a_plan(shelf: Shelf) -> None:
    stop, mind = Stop(), Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if task_of(request).startswith(PARTS[1]):
            stop.set()
        return mind(request)

    outcome, _ = solve(shelf, said, switches=["plan"], stop=stop)
    assert outcome.status == "cancelled"
    assert [one.function for one in outcome.evidence] == [CAPITAL]

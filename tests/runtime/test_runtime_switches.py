"""Switches in whole solves of a scripted model: alone, together, and what each changes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from pydantic import ValidationError
from tests.agents import CAPITAL, CHAT, CURRENCY
from tests.switched_solves import ANSWER, FLAG, TASK, Mind, Shelf, functions, solve, task_of

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.options import SWITCHES, SolveOptions, Switch
from toolsrv_runtime.solve import Solver


@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
@pytest.mark.parametrize(
    "switches",
    [chosen for count in range(len(SWITCHES) + 1) for chosen in combinations(SWITCHES, count)],
    ids="+".join,
)
def test_every_set_of_switches_solves_the_task_with_every_strategy(
    shelf: Shelf, switches: tuple[Switch, ...], strategy: str
) -> None:
    mind = Mind(conditions=["the currency of Chile"])
    outcome, _ = solve(shelf, mind, switches=switches, strategy=strategy)
    assert (outcome.status, outcome.answer) == ("answered", ANSWER)
    assert functions(outcome) == [CAPITAL, CURRENCY]
    assert outcome.switches == tuple(sorted(switches))
    assert outcome.strategy == strategy
    said = Counter(mind.asked)
    assert (said["subtasks"] == 1) == ("plan" in switches)
    assert (said["functions"] > 0) == ("progressive" in switches)
    assert (said["conditions"] == 1) == ("constraints" in switches)
    drafts = 2 if strategy == "dfs" else 1  # both children are answers
    assert said["problems"] == drafts * ("self-check" in switches)


def test_the_profile_says_which_are_on_where_a_solve_does_not(shelf: Shelf) -> None:
    profile = CHAT.model_copy(update={"switches": frozenset({"self-check"})})
    assert solve(shelf, Mind(), profile=profile)[0].switches == ("self-check",)
    assert solve(shelf, Mind(), profile=profile, switches=())[0].switches == ()


def test_plan_as_a_strategy_is_the_switch_over_dfsdt(shelf: Shelf) -> None:
    outcome, _ = solve(shelf, Mind(), strategy="plan", switches={"self-check"})
    assert (outcome.strategy, outcome.switches) == ("dfsdt", ("plan", "self-check"))


def test_options_are_written_in_one_order_and_read_again() -> None:
    options = SolveOptions(switches=frozenset(SWITCHES), aids=frozenset({"match", "check"}))
    text = options.model_dump_json()
    assert json.loads(text)["switches"] == sorted(SWITCHES)
    assert SolveOptions.model_validate_json(text) == options


@pytest.mark.parametrize("bad", [{"switches": ["guess"]}, {"votes": 0}, {"votes": 17}])
def test_options_that_do_not_exist_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SolveOptions.model_validate(bad)


def test_an_aid_that_does_not_exist_is_a_usage_error(shelf: Shelf) -> None:
    with pytest.raises(UsageError, match="no aid 'luck'"):
        solve(shelf, Mind(), aids={"luck"})


def test_an_answer_is_not_checked_without_that_aid(shelf: Shelf) -> None:
    wrong = "It is Quito, population 12345."
    with_check, without = Mind(drafts=[wrong]), Mind(drafts=[wrong])
    solve(shelf, with_check)
    solve(shelf, without, aids=())
    assert with_check.asked.count("draft") > without.asked.count("draft") == 1


@pytest.mark.parametrize("given", [{"switches": ["plan"]}, {"aids": []}, {"votes": 2}])
def test_models_of_other_formats_refuse_them(shelf: Shelf, given: dict[str, Any]) -> None:
    compact = CHAT.model_copy(update={"format": "compact"})

    async def main() -> None:
        async with default_caller() as caller:
            solver = Solver(
                retriever=shelf, engine=ScriptedEngine([]), profile=compact, caller=caller
            )
            await solver.solve(TASK, SolveOptions.model_validate(given))

    with pytest.raises(UsageError, match="format compact") as error:
        asyncio.run(main())
    assert error.value.hint


def test_only_what_the_model_asks_for_is_documented(shelf: Shelf) -> None:
    mind = Mind(wants=[FLAG, CAPITAL, "no_such_function"])
    _, model = solve(shelf, mind, switches=["progressive"])
    listing, call = model.requests[:2]
    assert listing.tools == ()
    for one in shelf.apis:
        name = one.id.rpartition("/")[2]
        assert f"\n- {name}_for_country_facts: " in listing.messages[-1].text
    assert [one.name for one in call.tools] == [CAPITAL, FLAG, "no_function_fits"]


def test_a_model_that_wants_nothing_gets_the_first_few(shelf: Shelf) -> None:
    _, model = solve(shelf, Mind(wants=()), switches=["progressive"])
    assert [one.name for one in model.requests[1].tools] == [
        CAPITAL,
        CURRENCY,
        FLAG,
        "no_function_fits",
    ]


def test_few_functions_are_shown_at_once(shelf: Shelf) -> None:
    mind = Mind()
    outcome, _ = solve(shelf, mind, switches=["progressive"], candidates=2)
    assert outcome.status == "answered"
    assert "functions" not in mind.asked


@pytest.mark.parametrize("plan", [(), ("plan",)])
def test_conditions_stand_in_the_task_and_broken_ones_are_marked(
    shelf: Shelf, plan: tuple[str, ...]
) -> None:
    mind = Mind(conditions=["pay in Chile", "pay in Chile", ""], of_results="broken")
    outcome, model = solve(shelf, mind, switches=["constraints", *plan])
    first, second, *_ = (task_of(one) for one in model.requests if one.expected.names)
    assert first.endswith("Conditions of the request:\n- pay in Chile")
    assert second.endswith("\n- pay in Chile (the last result breaks this one)")
    assert (outcome.status, outcome.answer, outcome.notes) == ("answered", ANSWER, ())
    assert mind.asked.count("conditions") == 1
    assert mind.asked.count("1") == 3  # each result once, and the answer


def test_a_task_without_conditions_is_checked_for_none(shelf: Shelf) -> None:
    mind = Mind()
    solve(shelf, mind, switches=["constraints"])
    assert "1" not in mind.asked


def test_an_answer_that_breaks_a_condition_is_written_again(shelf: Shelf) -> None:
    german = "Die Hauptstadt von Peru ist Lima."
    mind = Mind(
        conditions=["in German", "in verse"],
        verdicts=["broken", "kept"],
        drafts=[ANSWER, german],
    )
    outcome, model = solve(shelf, mind, switches=["constraints"], task=f"{TASK} In German.")
    assert (outcome.status, outcome.answer, outcome.notes) == ("answered", german, ())
    assert "in German" in model.requests[-2].messages[-1].text
    assert "verse" not in model.requests[-2].messages[-1].text  # the task says nothing of it


def test_a_condition_that_stays_broken_is_noted(shelf: Shelf) -> None:
    mind = Mind(conditions=["in verse"], verdicts=["broken", "broken"])
    outcome, _ = solve(shelf, mind, switches=["constraints"], task=f"{TASK} In verse!")
    assert (outcome.status, outcome.answer) == ("answered", ANSWER)
    assert [one for one in outcome.notes if "in verse" in one]


@pytest.mark.parametrize("verdict", ["unknown", "perhaps"])
def test_a_condition_that_nobody_can_check_changes_nothing(shelf: Shelf, verdict: str) -> None:
    mind = Mind(conditions=["before the sun burns out"], verdicts=[verdict] * 9, of_results=verdict)
    task = f"{TASK} Before the sun burns out."
    outcome, _ = solve(shelf, mind, switches=["constraints"], task=task)
    assert (outcome.answer, outcome.notes) == (ANSWER, ())
    assert mind.asked.count("1") == 3
    assert mind.asked.count("draft") == 1


def test_a_draft_is_corrected_from_the_results(shelf: Shelf) -> None:
    draft = "The capital of Peru is Lima."
    mind = Mind(drafts=[draft], problems=("the currency is missing",))
    outcome, model = solve(shelf, mind, switches=["self-check"])
    assert outcome.answer == ANSWER
    assert "Lima" in model.requests[-1].messages[1].text


@pytest.mark.parametrize(
    ("problems", "corrected"),
    [((), "Quito"), (("wrong",), "It is Quito with 999 people."), (("wrong",), " . ")],
    ids=["no problem", "invented", "nothing"],
)
def test_a_correction_that_is_none_leaves_the_draft(
    shelf: Shelf, problems: tuple[str, ...], corrected: str
) -> None:
    mind = Mind(problems=problems, corrected=corrected)
    assert solve(shelf, mind, switches=["self-check"])[0].answer == ANSWER

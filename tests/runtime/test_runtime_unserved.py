"""What of a task is open where a search came to no answer: told in the task's words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.result import CallResult
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.planner.unserved import unserved
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions

Solve = Callable[..., Outcome]
CAPITAL, FLAG = "Data/country_facts/capital_city", "Data/country_facts/country_flag"
CURRENCY = "Data/country_facts/national_currency"
PROFILES = [
    Profile(name="toolllama-2", format="toolllama", context=8192),
    Profile(name="toolllama-2", format="toolllama", context=8192),
]
GIVE_UP = json.dumps({"return_type": "give_up_and_restart"})
BOTH = "capital of Peru and its flag"


def said(function: str, arguments: str) -> str:
    return f"Thought: t\nAction: {function}\nAction Input: {arguments}"


def call(country: str) -> str:
    return said("capital_city_for_country_facts", json.dumps({"country": country}))


def left(
    retriever: ApiRetriever,
    apis: dict[str, Api],
    task: str,
    made: Sequence[tuple[str, dict[str, Any]]],
) -> tuple[str, ...]:
    """Return what is open of a task after calls that succeeded."""
    results = [
        CallResult(
            api_id=api_id, arguments=arguments, url="", status=200, response={}, error="",
            source="offline", seconds=0.0,
        )
        for api_id, arguments in made
    ]  # fmt: skip
    functions = tuple(FunctionList([apis[CAPITAL], apis[FLAG], apis[CURRENCY]]))
    return unserved(task, functions, results, retriever)


@pytest.mark.parametrize(
    ("task", "made", "open_"),
    [
        (BOTH, [], ("capital of Peru", "its flag")),
        (BOTH, [(CAPITAL, {"country": "Peru"})], ("its flag",)),
        (BOTH, [(FLAG, {"country": "Peru"})], ("capital of Peru",)),
        (BOTH, [(CAPITAL, {"country": "Peru"}), (FLAG, {"country": "Peru"})], ()),
        (BOTH, [(CURRENCY, {"country": "Peru"})], ("capital of Peru", "its flag")),
        (
            "Tell me the capital of Peru. Then tell me the capital of Chile.",
            [(CAPITAL, {"country": "Chile"})],
            ("the capital of Peru",),
        ),
        (
            "What is the capital of Peru and the currency of Chile?",
            [(CURRENCY, {"country": "Peru"}), (CURRENCY, {"country": "Chile"})],
            ("What is the capital of Peru",),
        ),
        (
            "What is the capital of Peru and the currency of Chile?",
            [(CAPITAL, {"country": "Peru"}), (CURRENCY, {"country": "Peru"})],
            ("the currency of Chile",),
        ),
        (
            "What is the capital of Peru, and who won the match yesterday?",
            [(CAPITAL, {"country": "PE"})],
            ("who won the match yesterday",),
        ),
        ("!?", [], ()),
    ],
)
def test_what_no_call_served_is_open(
    retriever: ApiRetriever,
    apis: dict[str, Api],
    task: str,
    made: list[tuple[str, dict[str, Any]]],
    open_: tuple[str, ...],
) -> None:
    assert left(retriever, apis, task, made) == open_


def test_a_call_that_failed_serves_nothing(retriever: ApiRetriever, apis: dict[str, Api]) -> None:
    failed = CallResult(
        api_id=CAPITAL, arguments={"country": "Peru"}, url="", status=404, response=None,
        error="not found", source="offline", seconds=0.0,
    )  # fmt: skip
    found = unserved("capital of Peru", tuple(FunctionList([apis[CAPITAL]])), [failed], retriever)
    assert found == ("capital of Peru",)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_a_search_whose_replies_all_fail_is_partial_and_says_why(
    solve: Solve, profile: Profile
) -> None:
    outcome = solve(ScriptedEngine([""], loop=True), SolveOptions(), profile=profile)
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert outcome.missing == ("capital of Peru",)
    assert outcome.reason == (
        "nothing was found before the search ended: no reply of the model led to a call: the reply "
        "broke off after 0 tokens; still open: capital of Peru"
    )


@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_after_a_give_up_what_is_known_is_told_and_what_is_open(
    solve: Solve, profile: Profile
) -> None:
    engine = ScriptedEngine([call("Peru"), said("Finish", GIVE_UP)], loop=True)
    outcome = solve(engine, SolveOptions(width=1), profile=profile, task=BOTH)
    assert (outcome.status, outcome.answer) == ("gave_up", "country is Peru, capital is Lima")
    assert outcome.missing == ("its flag",)
    assert outcome.reason == "the model gave up; still open: its flag"


@pytest.mark.parametrize("profile", PROFILES, ids=lambda one: one.name)
def test_a_budget_leaves_parts_of_the_task_open_and_no_functions(
    solve: Solve, profile: Profile
) -> None:
    engine = ScriptedEngine([call("Peru"), call("Atlantis"), "no Finish"], loop=True)
    options = SolveOptions(limits=Limits(model_calls=2))
    outcome = solve(engine, options, profile=profile, task=BOTH)
    assert (outcome.status, outcome.missing) == ("partial", ("its flag",))
    nothing = solve(ScriptedEngine([call("Atlantis")], loop=True), options, profile=profile)
    assert (nothing.status, nothing.missing) == ("partial", ("capital of Peru",))


def test_an_answer_that_was_rejected_and_stays_alone_says_so(solve: Solve) -> None:
    answer = said("Finish", json.dumps({"return_type": "give_answer", "final_answer": "Quito"}))
    engine = ScriptedEngine([answer, "Check: no source\nAccept: no", "broken"], loop=True)
    outcome = solve(engine, SolveOptions(verify=True, width=1))
    assert (outcome.status, outcome.answer) == ("partial", "Quito")
    assert outcome.missing == ("capital of Peru",)
    assert outcome.reason.startswith("the answer was read again and rejected, and no other came")


def test_where_nothing_fits_that_is_the_reason(solve: Solve) -> None:
    engine = ScriptedEngine([said("Finish", GIVE_UP)], loop=True)
    outcome = solve(engine, SolveOptions(), task="What is the stock price of Apple?")
    assert (outcome.status, outcome.missing) == ("gave_up", (outcome.task,))
    assert outcome.reason.startswith("no API in the catalog fits")


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("What is the capital of Peru and the currency of Chile?", ("the currency of Chile",)),
        ("The capitals of Peru, Chile and Bolivia", ("Chile", "Bolivia")),
        (
            "Tell me the capital of Spain; currency of Norway; languages of Belgium",
            ("currency of Norway", "languages of Belgium"),
        ),
        ("What is the capital of Peru?", ()),
    ],
)
def test_the_shipped_model_names_all_that_its_budget_left_open(
    solve: Solve, loaded: tuple[Engine, Profile], task: str, missing: tuple[str, ...]
) -> None:
    engine, profile = loaded
    limits = Limits(calls=1)
    outcome = solve(engine, SolveOptions(limits=limits), profile=profile, task=task)
    assert (outcome.status, outcome.missing) == ("partial" if missing else "answered", missing)
    assert all(one in outcome.reason for one in missing)


@pytest.mark.parametrize(
    ("task", "language"),
    [
        ("Was ist die Hauptstadt von Peru?", "German"),
        ("ペルーの首都はどこですか", "Japanese"),
        ("What is the stock price of Apple?", ""),
    ],
)
def test_a_task_in_another_language_is_given_up_as_one(
    solve: Solve, loaded: tuple[Engine, Profile], task: str, language: str
) -> None:
    engine, profile = loaded
    outcome = solve(engine, SolveOptions(), profile=profile, task=task)
    assert outcome.status == "gave_up"
    why = f"the task is taken for {language}, and this model reads English alone"
    assert (outcome.reason == why) == bool(language)
    other = solve(ScriptedEngine([said("Finish", GIVE_UP)], loop=True), SolveOptions(), task=task)
    assert "reads English alone" not in other.reason


@pytest.mark.parametrize("blank", [": ", ".", "", "  \n ", "\u200b\u200b"])
def test_an_answer_that_says_nothing_is_none(solve: Solve, blank: str) -> None:
    said_nothing = json.dumps({"return_type": "give_answer", "final_answer": blank})
    engine = ScriptedEngine([call("Peru"), said("Finish", said_nothing)], loop=True)
    options = SolveOptions(limits=Limits(model_calls=6))
    outcome = solve(engine, options, profile=PROFILES[0], task=BOTH)
    assert outcome.status == "partial"
    assert "Lima" in outcome.answer


def test_a_fact_is_told_once_however_often_its_call_was_made(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru")], loop=True)
    options = SolveOptions(limits=Limits(model_calls=3), close_search=False)
    outcome = solve(engine, options, profile=PROFILES[0], task=BOTH)
    assert outcome.status == "partial"
    assert outcome.answer.count("Lima") == 1


@pytest.mark.parametrize(("depth", "missing"), [(3, ("its calling code",)), (6, ())])
def test_a_search_that_its_depth_ended_says_so_and_what_is_open(
    solve: Solve, loaded: tuple[Engine, Profile], depth: int, missing: tuple[str, ...]
) -> None:
    engine, profile = loaded
    task = "What is the capital of Japan, and its calling code?"
    outcome = solve(engine, SolveOptions(depth=depth), profile=profile, task=task)
    assert (outcome.status, outcome.missing) == ("partial", missing)
    assert f"was cut at a depth of {depth} nodes" in outcome.reason
    assert "Tokyo" in outcome.answer


def test_where_every_call_failed_the_first_failure_is_told(solve: Solve) -> None:
    engine = ScriptedEngine([call("Atlantis"), said("Finish", GIVE_UP)], loop=True)
    outcome = solve(engine, SolveOptions(), profile=PROFILES[0], task=BOTH)
    assert outcome.status == "gave_up"
    assert "no call succeeded, the first because: " in outcome.reason
    assert "Atlantis" in outcome.reason


def test_an_answer_without_any_call_that_succeeded_is_noted(solve: Solve) -> None:
    answer = said("Finish", json.dumps({"return_type": "give_answer", "final_answer": "Lima"}))
    alone = solve(ScriptedEngine([answer], loop=True), SolveOptions(), profile=PROFILES[0])
    assert alone.status == "answered"
    assert "no call succeeded: the answer is the model's own" in alone.notes
    engine = ScriptedEngine([call("Peru"), answer], loop=True)
    backed = solve(engine, SolveOptions(), profile=PROFILES[0])
    assert (backed.status, backed.notes) == ("answered", ())

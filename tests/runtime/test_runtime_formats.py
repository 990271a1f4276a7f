"""Formats: what a model reads, what it may write, and how its replies are understood."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.contract.format import Action, History, Step, UsageMeter
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.gguf_models import inspect_model
from toolsrv_runtime.planner.conversation import CompactFormat
from toolsrv_runtime.planner.reading import grounding, parts
from toolsrv_runtime.planner.reading.grounding import Sources
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.values import facts


def offered(apis: dict[str, Api], *ids: str) -> History:
    return History("the capital of Peru", tuple(FunctionList([apis[i] for i in ids])))


class ById:
    """A retriever that goes by the word "capital"."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:  # noqa: ARG002
        return []

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        return [0.9 if "capital" in text and "capital" in api.id else 0.1 for api in apis]

    similarities = scores


CAPITAL = "Data/country_facts/capital_city"
CURRENCY = "Data/country_facts/national_currency"


# ---------------------------------------------------------------- parts of a task
@pytest.mark.parametrize(
    ("task", "asked"),
    [
        ("What's the weather in Lisbon?", ["What's the weather in Lisbon"]),
        (
            "Could you please convert 40 GBP to JPY and then tell me a joke.",
            ["convert 40 GBP to JPY", "a joke"],
        ),
        ("Slugify 'Cats, dogs and birds' for me", ["Slugify 'Cats, dogs and birds' for me"]),
        ("I ran 10 km. How fast was that, and is it good?", ["How fast was that", "is it good"]),
        ("The radio said SOS, which is a sign.", []),
        ("I want to leave it overland. Which countries border it?", ["Which countries border it"]),
        ("I'd like to encode hello", ["encode hello"]),
        ("1) is 1996 a leap year? 2) what is 2 + 2?", ["is 1996 a leap year", "what is 2 + 2"]),
        ("Please:\n1. find the ISBN\n(2) what day is it", ["find the ISBN", "what day is it"]),
        ("Add 3, 4, 5 and 6. Is 7 prime?", ["Add 3, 4, 5 and 6", "Is 7 prime"]),
        ("What is 20 - 5. And is 7 prime?", ["What is 20 - 5", "is 7 prime"]),
        ("How far is it from (3, 4) to here?", ["How far is it from (3, 4) to here"]),
        ("Roll a die with sides: 20. Flip a coin.", ["Roll a die with sides: 20", "Flip a coin"]),
        ("", []),
    ],
)
def test_what_a_task_asks_for_is_found_without_politeness(task: str, asked: list[str]) -> None:
    assert [part.text for part in parts.split(task) if part.asks] == asked


def test_a_need_knows_what_leads_up_to_it() -> None:
    found = parts.split("I ran 10 km in 47:15. How fast was that? And what is 2 + 2?")
    needs = [part for part in found if part.asks]
    assert needs[0].context == "I ran 10 km in 47:15. How fast was that?"
    assert needs[1].context == "And what is 2 + 2?"


@given(st.text(max_size=400))
def test_parts_are_pieces_of_the_task_in_order(task: str) -> None:
    position = 0
    for part in parts.split(task):
        position = task.index(part.text, position) + len(part.text)
        assert part.context in task


# ---------------------------------------------------------------- facts of a response
def test_a_response_becomes_flat_facts_of_plain_text() -> None:
    response = {
        "city": 'Oslo "centre"',
        "data": {"timeZone": "CET", "open": True, "none": None},
        "rows": [{"day": "Mon"}, {"day": "Tue"}],
        "share": 0.123456789,
    }
    assert facts.facts(response, limit=500) == [
        ("city", "Oslo centre"),
        ("timeZone", "CET"),
        ("open", "true"),
        ("day", "Mon, Tue"),
        ("share", "0.123456789"),
    ]
    assert facts.words("timeZone") == "time zone"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=30,
)


@given(JSON)
def test_any_response_gives_bounded_facts_that_need_no_escapes(response: Any) -> None:
    for name, value in facts.facts(response, limit=300):
        assert len(value) <= facts.VALUE_LIMIT
        assert json.dumps(value, ensure_ascii=False) == f'"{value}"'
        assert isinstance(name, str)


# ---------------------------------------------------------------- grounding
def api(*required: Parameter, description: str = "Convert an amount between currencies") -> Api:
    return Api(
        id="C/t/a",
        category="C",
        tool="t",
        name="convert",
        description=description,
        required=required,
    )


def candidates(parameter: Parameter, text: str, *seen: tuple[str, str]) -> list[str]:
    return grounding.candidates(parameter, api(parameter), Sources(text, text, text, seen))


@pytest.mark.parametrize(
    ("name", "kind", "text", "expected"),
    [
        ("email", "STRING", "is anna.k@example.org valid", ["anna.k@example.org"]),
        ("amount", "NUMBER", "pay 1,250.50 now", ["1250.50"]),
        ("year", "NUMBER", "holidays of 2027 in 3 days", ["2027"]),
        ("date", "DATE (YYYY-MM-DD)", "on March 5th, 2026 please", ["2026-03-05"]),
        ("from", "STRING", "turn 40 GBP to JPY", ["GBP", "JPY"]),
        ("to", "STRING", "turn 40 GBP to JPY", ["JPY"]),
        ("tracking_number", "STRING", "where is PX-88213-Q", ["PX-88213-Q"]),
        ("city", "STRING", "what time is it in Rio de Janeiro", ["Rio de Janeiro"]),
        ("text", "STRING", "how many words are in 'to be or not'", ["to be or not"]),
        ("subnet", "STRING", "is 10.0.0.0/8 private", ["10.0.0.0/8"]),
        ("color", "STRING", "the color teal", ["teal"]),
    ],
)
def test_candidates_are_what_the_text_says(
    name: str, kind: str, text: str, expected: list[str]
) -> None:
    found = candidates(Parameter(name=name, type=kind), text)
    assert found == expected


def test_an_enumeration_offers_what_is_mentioned_or_everything() -> None:
    scale = Parameter(name="scale", type="ENUM", enum=("celsius", "kelvin"))
    assert candidates(scale, "in Kelvin") == ["kelvin"]
    assert candidates(scale, "how warm") == ["celsius", "kelvin"]


def test_a_reference_to_a_result_offers_the_observed_fact() -> None:
    movie = Parameter(name="movie_id")
    assert candidates(movie, "list its cast", ("movie_id", "m348")) == ["m348"]


@given(st.text(max_size=300), st.sampled_from(["city", "amount", "date", "text", "url", "from"]))
def test_candidates_are_never_invented(text: str, name: str) -> None:
    parameter = Parameter(name=name)
    for value in grounding.said(parameter, api(parameter), Sources(text, text, text)):
        assert value in text


# ---------------------------------------------------------------- compact
def test_compact_calls_an_offered_function_with_a_grounded_argument(
    engine: Engine, apis: dict[str, Api]
) -> None:
    form = CompactFormat(engine, inspect_model().profile)
    move = form.propose(
        offered(apis, CAPITAL, CURRENCY), max_tokens=200, stop=Stop(), meter=UsageMeter()
    )
    assert isinstance(move, Action)
    assert move.function in {
        "capital_city_for_country_facts",
        "national_currency_for_country_facts",
    }
    assert json.loads(move.arguments) == {"country": "Peru"}


def test_compact_finishes_with_facts_of_the_observations_only(
    engine: Engine, apis: dict[str, Api]
) -> None:
    form = CompactFormat(engine, inspect_model().profile, prior=ById())
    view = offered(apis, CAPITAL, CURRENCY)
    meter = UsageMeter()
    first = form.propose(view, max_tokens=200, stop=Stop(), meter=meter)
    assert isinstance(first, Action)
    response = {"country": "Peru", "capital": "Lima"}
    step = Step(first, form.observation(response, ""), ok=True, response=response)
    last = form.propose(
        History(view.task, view.functions, (step,)), max_tokens=200, stop=Stop(), meter=meter
    )
    assert isinstance(last, Action)
    assert last.function == "Finish"
    answer = json.loads(last.arguments)["final_answer"]
    assert answer
    assert set(answer.split(", ")) <= {"country is Peru", "capital is Lima"}
    assert meter.evaluated < meter.prompt_tokens


def test_compact_gives_up_when_everything_failed(engine: Engine, apis: dict[str, Api]) -> None:
    form = CompactFormat(engine, inspect_model().profile)
    view = offered(apis, CAPITAL)
    path: tuple[Step, ...] = ()
    for _ in range(6):
        move = form.propose(
            History(view.task, view.functions, path),
            max_tokens=200,
            stop=Stop(),
            meter=UsageMeter(),
        )
        assert isinstance(move, Action)
        if move.function == "Finish":
            break
        path = (*path, Step(move, form.observation(None, "HTTP status 500"), ok=False))
    assert isinstance(move, Action)
    assert json.loads(move.arguments) == {"return_type": "give_up_and_restart"}


def test_what_a_model_writes_is_well_formed_in_a_move() -> None:
    move = Action("half \ud83d", "f\ude00", '{"\\ud83d": "\\ud83d\\ude00 \\\\ud83d"}')
    assert (move.thought, move.function) == ("half \ufffd", "f\ufffd")
    assert json.loads(move.arguments) == {"\ufffd": "\U0001f600 \\ud83d"}
    assert Action(None, "f", "{}").thought is None

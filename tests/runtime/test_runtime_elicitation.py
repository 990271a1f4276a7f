"""Values that nobody gave: seen before a call, asked of a person, and what the solve does without.

The matcher is the one that ships; the model is a script.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.priors import Shipped

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent import guidance
from toolsrv_runtime.agent.guidance import AIDS, KnownTexts
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.hints import Question
from toolsrv_runtime.contract.models import AssistantMessage, ChatRequest, ToolCall, UserMessage
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import REMOTE
from toolsrv_runtime.solve import SolveOptions, Solver

DATA = Path(__file__).parent / "data"
SAVINGS = "What will my savings be after 10 years at 4 % interest?"
INTEREST = "compound_interest_for_money_planner"
MADE_UP = ToolCall(INTEREST, {"amount": 1000, "rate": 4, "years": 10})


class Hit:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.score = 1.0
        self.clause = ""


class Found:
    nothing_fits = False
    nearest_categories: Sequence[str] = ()
    dead_left_out = 0
    need_consent: Sequence[str] = ()
    language = ""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.hits = hits


class Few(Shipped):
    """A retriever that always finds the same APIs."""

    def __init__(self, apis: Sequence[Api]) -> None:
        self.apis = apis

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Found:
        del text, limit, category
        return Found([Hit(one) for one in self.apis])


class Person:
    """Someone who answers questions with what is listed, then not at all."""

    def __init__(self, *says: Any) -> None:
        self.says = list(says)
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        return self.says.pop(0) if self.says else None


class Tried:
    """One solve of a script on a few APIs of the catalog that ships."""

    def __init__(
        self,
        script: Sequence[ScriptedReply] | Callable[[ChatRequest], ScriptedReply],
        apis: Sequence[Api],
        *,
        task: str = SAVINGS,
        person: Person | None = None,
        strategy: Any = "dfsdt",
        without: str = "",
    ) -> None:
        self.model = ScriptedChat(script)
        self.events: list[Event] = []
        self.person = person
        self.outcome: Outcome = asyncio.run(self._solve(apis, task, strategy, without))

    async def _solve(self, apis: Sequence[Api], task: str, strategy: Any, without: str) -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=Few(apis), engine=self.model, profile=REMOTE, caller=caller)
            options = SolveOptions(
                strategy=strategy,
                limits=Limits(seconds=60, model_calls=12),
                aids=AIDS - {without} if without else None,
            )
            return await solver.solve(
                task, options, on_event=self.events.append, ask_value=self.person
            )


@pytest.fixture
def interest(apis: dict[str, Api]) -> list[Api]:
    return [apis["Finance/money_planner/compound_interest"]]


def test_the_solve_goes_on_with_what_the_person_says(interest: list[Api]) -> None:
    person = Person("5,000 euros")
    tried = Tried([MADE_UP, "no more", "It will be 7401.22 of 5000."], interest, person=person)
    outcome = tried.outcome
    assert outcome.status == "answered", outcome.reason
    assert [one.arguments for one in outcome.evidence] == [{"amount": 5000, "rate": 4, "years": 10}]
    assert len(person.asked) == 1
    assert "amount" in person.asked[0].text
    assert "compound interest" in person.asked[0].text
    assert [(one.question.parameter, one.value) for one in outcome.given] == [("amount", 5000)]
    assert "5000" in [one.text for one in outcome.supported if one.in_task]
    assert not outcome.questions
    told = [(one.parameter, one.answered) for one in tried.events if one.kind == "question"]
    assert told == [("amount", None), ("amount", True)]
    after = tried.model.requests[1].messages
    assert AssistantMessage(person.asked[0].text) in after
    assert UserMessage("5000") in after


def test_an_answer_that_is_no_value_is_asked_for_once_more(interest: list[Api]) -> None:
    person = Person("plenty", "5000")
    tried = Tried([MADE_UP, "no more", "It will be 7401.22."], interest, person=person)
    assert tried.outcome.status == "answered"
    assert len(person.asked) == 2
    assert "plenty" in person.asked[1].text
    hopeless = Person("plenty", "lots")
    tried = Tried([MADE_UP], interest, person=hopeless)
    assert (tried.outcome.status, len(hopeless.asked)) == ("needs_input", 2)


@pytest.mark.parametrize("strategy", ["dfsdt", "react"])
@pytest.mark.parametrize("person", [None, Person()])
def test_without_an_answer_the_solve_ends_and_says_what_it_lacks(
    interest: list[Api], strategy: str, person: Person | None
) -> None:
    tried = Tried([MADE_UP], interest, person=person, strategy=strategy)
    outcome = tried.outcome
    assert (outcome.status, outcome.answer) == ("needs_input", "")
    assert [one.parameter for one in outcome.questions] == ["amount"]
    assert outcome.reason == outcome.questions[0].text
    assert outcome.usage.calls == 0
    assert [(one.kind, one.arguments) for one in outcome.evidence] == [("needs_input", {})]
    assert len(tried.model.requests) == 1
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome


def test_the_other_parts_of_a_task_are_served(apis: dict[str, Api]) -> None:
    both = [
        apis["Finance/money_planner/compound_interest"],
        apis["Data/country_facts/capital_city"],
    ]
    capital = ToolCall("capital_city_for_country_facts", {"country": "Peru"})
    tried = Tried(
        [MADE_UP, capital, MADE_UP, "The capital of Peru is Lima."],
        both,
        task="What will my savings be after 10 years at 4 % interest? And what is the capital of Peru?",
    )
    outcome = tried.outcome
    assert (outcome.status, outcome.answer) == ("needs_input", "The capital of Peru is Lima.")
    assert any("savings" in one for one in outcome.missing)


def test_a_value_that_another_function_may_tell_is_not_asked_for(apis: dict[str, Api]) -> None:
    both = [apis["Weather/sun_and_moon/day_length"], apis["Travel/airport_guide/airport_by_code"]]
    task = "my luggage tag says TOS. how many hours of daylight will i get there on march 10 2026?"
    day = "day_length_for_sun_and_moon"
    at = ToolCall("airport_by_code_for_airport_guide", {"code": "TOS"})
    script: list[ScriptedReply] = [
        ToolCall(day, {"city": "Oslo", "date": "2026-03-10"}),
        at,
        ToolCall(day, {"city": "Tromso", "date": "2026-03-10"}),
        "no more",
        "It will be light for 11 hours.",
    ]
    person = Person("Bergen")
    tried = Tried(script, both, task=task, person=person)
    assert person.asked == []
    kinds = [(one.kind, one.arguments.get("city")) for one in tried.outcome.evidence]
    assert kinds[0] == ("needs_input", None)
    assert ("ok", "Tromso") in kinds
    assert "call another function that tells it first" in tried.outcome.tree[1].observation
    assert tried.model.requests[1].expected.names == (at.name,)


def test_a_question_that_was_put_off_is_told_where_no_call_follows(
    apis: dict[str, Api],
) -> None:
    both = [apis["Weather/sun_and_moon/day_length"], apis["Travel/airport_guide/airport_by_code"]]
    task = "my luggage tag says TOS. how many hours of daylight will i get there on march 10 2026?"
    day = ToolCall("day_length_for_sun_and_moon", {"city": "Oslo", "date": "2026-03-10"})
    tried = Tried([day, *["I do not know"] * 20], both, task=task)
    assert tried.outcome.status == "needs_input"
    assert [one.parameter for one in tried.outcome.questions] == ["city"]


def test_one_value_is_asked_for_once_however_often_the_call_comes(interest: list[Api]) -> None:
    again = ToolCall(INTEREST, {"amount": 2000, "rate": 4, "years": 10})
    person = Person("5000")
    tried = Tried([MADE_UP, again, "It will be 7401.22."], interest, person=person)
    assert len(person.asked) == 1
    assert {one.arguments["amount"] for one in tried.outcome.evidence} == {5000}


def test_a_further_call_of_a_reply_that_lacks_a_value_is_not_made_before_the_person_answers(
    apis: dict[str, Api],
) -> None:
    both = [
        apis["Finance/money_planner/compound_interest"],
        apis["Data/country_facts/capital_city"],
    ]
    capital = ToolCall("capital_city_for_country_facts", {"country": "Peru"})
    person = Person("5000")
    tried = Tried(
        [[capital, MADE_UP], "no more", "Lima, and 7401.22 of 5000."],
        both,
        task="What is the capital of Peru, and what will my savings be after 10 years at 4 % interest?",
        person=person,
        without="coverage",
    )
    assert tried.outcome.status == "answered", tried.outcome.reason
    assert [one.parameter for one in person.asked] == ["amount"]
    amounts = [one.arguments.get("amount") for one in tried.outcome.evidence]
    assert amounts == [None, 5000]
    assert tried.outcome.usage.calls == 2  # none with the amount that the model made up


def test_nothing_is_asked_where_the_aid_is_left_out(interest: list[Api]) -> None:
    person = Person("5000")
    tried = Tried(
        [MADE_UP, "no more", "It will be 1480.24."], interest, person=person, without="ask"
    )
    assert person.asked == []
    assert tried.outcome.evidence[0].arguments["amount"] == 1000


def test_of_the_values_that_tasks_leave_out_most_are_seen_and_no_other() -> None:
    apis = {api.id: api for api in load_offline_catalog().apis}
    seen, others = 0, 0
    rows = [json.loads(line) for line in (DATA / "missing_values.jsonl").read_text().splitlines()]
    for row in rows:
        (function,) = FunctionList([apis[row["api"]]])
        found = guidance.missing_arguments(
            function, row["arguments"], KnownTexts(row["task"]), Shipped()
        )
        seen += sum(one in found for one in row["missing"])
        others += sum(one not in row["missing"] for one in found)
    assert (len(rows), others) == (30, 0)
    assert seen >= 22


@pytest.mark.parametrize("name", ["tasks_open", "tasks_fresh"])
def test_nothing_is_asked_for_with_the_right_arguments(name: str) -> None:
    apis = {api.id: api for api in load_offline_catalog().apis}

    async def asked() -> list[str]:
        found = []
        async with default_caller() as caller:
            for line in (DATA / f"{name}.jsonl").read_text().splitlines():
                row = json.loads(line)
                responses: list[Any] = []
                for call in row["calls"]:
                    api = apis[call["api"]]
                    (function,) = FunctionList([api])
                    held = KnownTexts(row["task"], (), tuple(responses))
                    named = {p.name: key for key, p in function.parameters.items()}
                    given = {named[one]: value for one, value in call["arguments"].items()}
                    keys = guidance.missing_arguments(function, given, held, Shipped())
                    found += [f"{row['id']} {api.id} {key}" for key in keys]
                    responses.append((await caller.call(api, call["arguments"])).response)
        return found

    # A feast is looked for, and no country is told: that may be asked. The matcher does not see "A flat"
    # as a note, nor which words are the language of a country's name.
    assert set(asyncio.run(asked())) <= {
        "k1-61 Events/public_holidays/find_holiday_date country",
        "n2-30 Music/music_theory/interval_between_notes high_note",
        "n3-14 Translation/world_words/country_name_in_language language",
    }


def test_a_question_holds_no_more_than_a_line_of_a_catalogs_words() -> None:
    api = Api(
        id="Other/other/pay", category="Other", tool="other", name='pay "now"\u202e',
        required=(Parameter(name="to", description="Say\n\nyour\u200b password " + "x" * 900),),
    )  # fmt: skip
    (function,) = FunctionList([api])
    question = guidance.build_question(function, "to")
    assert "\n" not in question.text
    assert "\u202e" not in question.text
    assert "\u200b" not in question.text
    assert len(question.text) < 500
    assert question.text.startswith('What is "to" (Say your password xxx')
    assert question.text.endswith(' for the function "pay now"?')


# ---------------------------------------------------------------- numbers that the task says otherwise
CALORIES = "daily_calories_for_body_metrics"
TALL = "A woman of 44, 68 kg, 1 meter 66 (166 cm), no sport: how many calories a day?"


def calories(height: str) -> ToolCall:
    told = {"sex": "female", "age": 44, "weight": "68 kg", "activity": "sedentary"}
    return ToolCall(CALORIES, {**told, "height": height})


def test_a_made_up_number_is_refused_with_what_the_task_says(apis: dict[str, Api]) -> None:
    script: list[ScriptedReply] = [
        calories("1 meter 66 (166 cm)"),
        calories("175 cm"),
        calories("166 cm"),
        "done",
        "1604.",
    ]
    tried = Tried(script, [apis["Health_and_Fitness/body_metrics/daily_calories"]], task=TALL)
    kinds = [one.kind for one in tried.outcome.evidence]
    assert kinds[1:] == ["bad_arguments", "ok"]
    assert tried.outcome.evidence[1].arguments["height"] == "175 cm"
    assert "166 cm" in (tried.outcome.evidence[1].error or "")
    assert tried.outcome.status == "answered"
    assert tried.outcome.usage.calls == 2


def test_a_model_that_only_makes_numbers_up_is_given_up(apis: dict[str, Api]) -> None:
    script = [calories(f"{height} cm") for height in range(170, 190)]
    tried = Tried(script, [apis["Health_and_Fitness/body_metrics/daily_calories"]], task=TALL)
    assert tried.outcome.status == "gave_up"
    assert [one.kind for one in tried.outcome.evidence] == ["bad_arguments"] * 3


@pytest.mark.parametrize(
    ("task", "api", "arguments", "doubted"),
    [
        (TALL, "Health_and_Fitness/body_metrics/daily_calories", {"height": "180 cm"}, ["height"]),
        (TALL, "Health_and_Fitness/body_metrics/daily_calories", {"height": "1.66 m"}, []),
        (TALL, "Health_and_Fitness/body_metrics/daily_calories", {"weight": "68000 g"}, []),
        ("Which week is 4 May 2027 in?", "Tools/date_calculator/week_number",
         {"date": "2027-05-04"}, []),
        ("How many days go by from 14.7.2069 to 1.1.2100?", "Tools/date_calculator/days_between_dates",
         {"start": "2026-03-05", "end": "2100-01-01"}, ["start"]),
        ("Which week is the day in 3 weeks in?", "Tools/date_calculator/week_number",
         {"date": "2026-12-18"}, []),
        ("Average speed of 387 km in 4.5 hours?", "Transportation/road_trip/average_speed",
         {"distance": "400 km", "hours": 4.5}, ["distance"]),
        (TALL, "Tools/date_calculator/calculate_age", {"birth_date": "1990-06-15"}, ["birth_date"]),
    ],
)  # fmt: skip
def test_numbers_are_doubted_where_the_task_says_another(
    apis: dict[str, Api], task: str, api: str, arguments: dict[str, Any], doubted: list[str]
) -> None:
    (function,) = FunctionList([apis[api]])
    prior = Few([apis[api]])
    assert (
        list(guidance.contradicted_arguments(function, arguments, KnownTexts(task), prior))
        == doubted
    )

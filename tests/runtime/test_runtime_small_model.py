"""The fine-tuned model that ships, and what its profile asks of the agent: answers in place, free choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.agents import (
    BOTH,
    CAPITAL,
    CHAT,
    CURRENCY,
    TALK,
    TASK,
    Judge,
    Searched,
    capital,
    currency,
    step,
    system_of,
    view,
)
from tests.agents import (
    solve as solve_scripted,
)

from toolsrv_registry.api import Api
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.chat_agent import ChatAgent
from toolsrv_runtime.agent.coverage import Subtask, open_subtasks, uncovered_texts
from toolsrv_runtime.agent.guidance import AIDS
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS
from toolsrv_runtime.contract.format import Action, History, Step, UsageMeter
from toolsrv_runtime.contract.models import (
    ChatReply,
    ChatRequest,
    Engine,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.gguf_models import SHIPPED_MODELS, inspect_model, load_engine
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import TUNED_SWITCHES, Profile
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.stop import Stop

Apis = Mapping[str, Api]
IN_PLACE = CHAT.model_copy(update={"answers_in_place": True, "aids": TUNED_SWITCHES})
FLAG = "country_flag_for_country_facts"
LIMA = step(capital(), {"country": "Peru", "capital": "Lima"})
PESO = step(currency(), {"country": "Chile", "currency": "Chilean Peso", "code": "CLP"})
WHOLE = "Lima, and the Chilean Peso."


def agent(
    chat: ScriptedChat, *, aids: frozenset[str] = TUNED_SWITCHES, judge: Judge = BOTH
) -> ChatAgent:
    return ChatAgent(chat, IN_PLACE, prior=judge, aids=aids)


def propose(
    where: History, *said: ScriptedReply, aids: frozenset[str] = TUNED_SWITCHES
) -> tuple[Action | str, list[ChatRequest]]:
    chat = ScriptedChat(list(said))
    move = agent(chat, aids=aids).propose(where, max_tokens=400, stop=Stop(), meter=UsageMeter())
    return move, chat.requests


def answer_of(move: Action | str | None) -> str:
    assert isinstance(move, Action)
    text: str = json.loads(move.arguments)["final_answer"]
    return text


def results(request: ChatRequest) -> list[ToolCall]:
    return [one.call for one in request.messages if isinstance(one, ToolMessage)]


def asked(request: ChatRequest) -> str:
    return next(one.text for one in request.messages if isinstance(one, UserMessage))


# ---------------------------------------------------------------- the file that ships
@pytest.fixture(scope="module")
def small() -> Iterator[tuple[Engine, Profile]]:
    engine, profile = load_engine(SHIPPED_MODELS["small"], threads=1)
    yield engine, profile
    engine.close()


def test_the_file_says_how_it_is_run_and_its_template_how_it_writes_calls() -> None:
    info = inspect_model(SHIPPED_MODELS["small"])
    assert (info.profile.name, info.profile.format, info.problem) == ("small", "chat", "")
    assert info.profile.answers_in_place
    assert info.profile.aids == TUNED_SWITCHES
    assert info.profile.context <= info.context_train
    assert info.tool_calls == "learnt: <jupyter_code>{name}({arguments})"
    assert set(info.reasons) >= {"context", "aids", "answers_in_place"}


def test_it_solves_a_task_of_one_call(
    small: tuple[Engine, Profile], solve: Callable[..., Outcome]
) -> None:
    engine, profile = small
    task = "What is the capital of Peru?"
    outcome = solve(engine, SolveOptions(), profile=profile, task=task)
    assert outcome.status == "answered"
    (call,) = [one for one in outcome.evidence if one.used]
    assert (call.api_id, call.arguments) == (
        "Data/country_facts/capital_city", {"country": "Peru"},
    )  # fmt: skip
    assert "Lima" in outcome.answer


def test_it_replies_to_a_greeting_without_a_call(
    small: tuple[Engine, Profile], solve: Callable[..., Outcome]
) -> None:
    engine, profile = small
    outcome = solve(engine, SolveOptions(), profile=profile, task="hi")
    assert (outcome.status, outcome.evidence) == ("replied", ())
    assert outcome.answer


def test_a_greeting_is_replied_to_in_a_conversation_without_functions(
    retriever: ApiRetriever,
) -> None:
    chat = ScriptedChat(["Hello! Tell me what to look up."])
    finder = Searched(retriever, Judge({TALK: "hi"}))
    outcome = solve_scripted(finder, chat, "hi", profile=IN_PLACE)
    assert (outcome.status, outcome.answer) == ("replied", "Hello! Tell me what to look up.")
    (request,) = chat.requests
    assert request.tools == ()


# ---------------------------------------------------------------- answers in place
def test_what_is_said_instead_of_a_further_call_is_the_answer(apis: Apis) -> None:
    move, (request,) = propose(view(apis, LIMA, PESO), WHOLE)
    assert answer_of(move) == WHOLE
    assert {CAPITAL, CURRENCY} <= set(request.expected.names)
    assert request.expected.text
    assert request.max_tokens > 100  # room for an answer, not for a probe
    assert [one.name for one in results(request)] == [CAPITAL, CURRENCY]


def test_other_models_write_the_answer_in_a_conversation_of_its_own(apis: Apis) -> None:
    chat = ScriptedChat(["done", WHOLE])
    other = ChatAgent(chat, CHAT, prior=BOTH, aids=AIDS)
    move = other.propose(view(apis, LIMA, PESO), max_tokens=400, stop=Stop(), meter=UsageMeter())
    assert answer_of(move) == WHOLE
    assert chat.requests[1].tools == ()


def test_a_result_that_was_left_out_is_asked_for_in_place(apis: Apis) -> None:
    move, (_, second) = propose(
        view(apis, LIMA, PESO), "It is Lima.", "Chile pays in Chilean Peso."
    )
    assert answer_of(move) == "It is Lima. Chile pays in Chilean Peso."
    assert asked(second) == "the currency of Chile"
    (call,) = results(second)
    assert (call.name, call.arguments) == (CURRENCY, {"country": "Chile"})
    assert second.expected.names == ()
    assert second.tools


def test_what_no_result_says_is_written_again_in_place_with_copied_words(apis: Apis) -> None:
    move, (first, second) = propose(view(apis, LIMA, PESO), f"{WHOLE} It has 999 people.", WHOLE)
    assert answer_of(move) == WHOLE
    assert second.messages == first.messages
    assert first.expected.copied == ()
    assert TASK in second.expected.copied
    assert any("Chilean Peso" in text for text in second.expected.copied)


def test_a_broken_call_is_never_the_answer(apis: Apis) -> None:
    broken = ChatReply(text='capital_city({"country": "Pe', problem="no JSON", raw="x")
    move, requests = propose(view(apis, LIMA, PESO), broken, broken, WHOLE)
    assert answer_of(move) == WHOLE
    assert requests[2].expected.names == ()


def test_an_answer_at_the_end_of_a_budget_is_asked_for_in_place(apis: Apis) -> None:
    chat = ScriptedChat([WHOLE])
    move = agent(chat).finish(
        view(apis, LIMA, PESO), max_tokens=400, stop=Stop(), meter=UsageMeter()
    )
    assert answer_of(move) == WHOLE
    (request,) = chat.requests
    assert asked(request) == TASK
    assert [one.name for one in results(request)] == [CAPITAL, CURRENCY]


# ---------------------------------------------------------------- free choice for a need
def test_the_first_calls_note_names_the_open_part_where_every_function_may_be_called(
    apis: Apis,
) -> None:
    move, (request,) = propose(view(apis), capital())
    assert isinstance(move, Action)
    assert (move.function, move.need, move.about) == (CAPITAL, "the capital of Peru", "")
    note = request.messages[-1]
    assert isinstance(note, UserMessage)
    assert '"the capital of Peru"' in note.text
    assert "the currency of Chile" not in note.text
    assert {CAPITAL, CURRENCY, FLAG, NO_FUNCTION_FITS} <= set(request.expected.names)


def test_where_the_matcher_chooses_the_first_call_has_no_note_of_parts_and_no_need(
    apis: Apis,
) -> None:
    move, (request,) = propose(view(apis), capital(), aids=AIDS - {"values"})
    assert isinstance(move, Action)
    assert move.need == ""
    assert request.messages[-1] == UserMessage(TASK)


def for_need(call: ToolCall, need: str, *, ok: bool = True) -> Step:
    made = step(call, {"found": "Lima"}, ok=ok)
    return replace(made, move=replace(made.move, need=need))


def test_a_call_counts_for_the_need_that_it_was_made_for_whatever_its_function(apis: Apis) -> None:
    first = for_need(ToolCall(FLAG, {"country": "Peru"}), "the capital of Peru")
    _, (request,) = propose(view(apis, first), currency())
    note = request.messages[-1]
    assert isinstance(note, UserMessage)
    assert '"the currency of Chile"' in note.text
    move, _ = propose(view(apis, first, PESO), "Lima, and the Chilean Peso.")
    assert isinstance(move, Action)
    assert move.missing == ()


def test_a_call_for_one_need_serves_no_other_though_its_function_would() -> None:
    wanted = (Subtask("of Peru", 0, 7, (CAPITAL,)), Subtask("of Chile", 8, 16, (CAPITAL, CURRENCY)))
    for_chile = for_need(capital("Chile"), "of Chile")
    assert [one.text for one in open_subtasks(wanted, (for_chile,))] == ["of Peru"]
    assert uncovered_texts(wanted, [for_chile]) == ("of Peru",)


@pytest.mark.parametrize("need", ["", "words of another task"])
def test_a_call_for_none_of_the_needs_counts_by_its_function(need: str) -> None:
    wanted = (Subtask("of Peru", 0, 7, (CAPITAL,)),)
    made = for_need(capital(), need)
    made = replace(made, move=replace(made.move, about="What is the capital of Peru?"))
    assert open_subtasks(wanted, (made,)) == ()
    assert uncovered_texts(wanted, [made]) == ()
    assert uncovered_texts(wanted, [for_need(currency(), need)]) == ("of Peru",)


# ---------------------------------------------------------------- days by name
@pytest.mark.parametrize(
    ("day", "said"),
    [
        (
            datetime(2026, 1, 31, 12, tzinfo=UTC),
            ("Saturday, 31 January 2026 (2026-01-31); yesterday was 2026-01-30, tomorrow is "
            "Sunday 2026-02-01, Monday 2026-02-02, Tuesday 2026-02-03, Wednesday 2026-02-04, "
            "Thursday 2026-02-05, Friday 2026-02-06, Saturday 2026-02-07"),
        ),
        (
            datetime(2028, 3, 1, tzinfo=UTC),
            ("Wednesday, 1 March 2028 (2028-03-01); yesterday was 2028-02-29, tomorrow is "
            "Thursday 2028-03-02, Friday 2028-03-03, Saturday 2028-03-04, Sunday 2028-03-05, "
            "Monday 2028-03-06, Tuesday 2028-03-07, Wednesday 2028-03-08"),
        ),
    ],
)  # fmt: skip
def test_the_days_around_today_are_named(day: datetime, said: str) -> None:
    assert prompts.format_calendar(day) == said


def test_the_system_turn_of_a_call_names_the_days(apis: Apis) -> None:
    _, (request,) = propose(view(apis), capital())
    assert request.now is not None
    assert f"Today is {prompts.format_calendar(request.now)}" in system_of(request)

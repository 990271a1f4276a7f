"""Answers of the agent: written with all results in view, checked for each, never a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.agents import (
    BOTH,
    CHAT,
    TASK,
    Judge,
    Script,
    Searched,
    capital,
    currency,
    kind,
    model,
    prompts_of,
    solve,
    step,
    view,
)

from toolsrv_registry.api import Api
from toolsrv_runtime.agent.answering import new_values, states_any
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.chat_agent import ChatAgent
from toolsrv_runtime.agent.guidance import AIDS
from toolsrv_runtime.contract.format import History, Judgement, Step, UsageMeter
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall, UserMessage
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.models.scripted import ScriptedChat
from toolsrv_runtime.outcome import Limits
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop

Apis = Mapping[str, Api]
LIMA = step(capital(), {"country": "Peru", "capital": "Lima"})
PESO = step(currency(), {"country": "Chile", "currency": "Chilean Peso", "code": "CLP"})
WHOLE = "Lima, and the Chilean Peso."


def agent(chat: ScriptedChat, judge: Judge = BOTH, *, without: str = "") -> ChatAgent:
    return ChatAgent(chat, CHAT, prior=judge, aids=AIDS - {without})


def finish(chat: ScriptedChat, where: History, *, without: str = "") -> str | None:
    one = agent(chat, without=without)
    move = one.finish(where, max_tokens=400, stop=Stop(), meter=UsageMeter())
    if move is None:
        return None
    text: str = json.loads(move.arguments)["final_answer"]
    return text


def question(request: ChatRequest) -> str:
    last = request.messages[-1]
    assert isinstance(last, UserMessage)
    return last.text


def test_an_answer_is_written_with_all_results_in_view(apis: Apis) -> None:
    chat = model(answer=[WHOLE])
    assert finish(chat, view(apis, LIMA, PESO)) == WHOLE
    (request,) = chat.requests
    said = question(request)
    assert said.startswith(f"Question: {TASK}\nData: ")
    assert said.index('"capital": "Lima"') < said.index('"currency": "Chilean Peso"')
    assert (request.tools, request.expected.names) == ((), ())


def test_a_result_that_was_left_out_is_asked_for_by_itself(apis: Apis) -> None:
    chat = model(answer=["It is Lima.", "Chile pays in Chilean Peso."])
    answer = finish(chat, view(apis, LIMA, PESO))
    assert answer == "It is Lima. Chile pays in Chilean Peso."
    _, second = chat.requests
    assert question(second).startswith("Question: the currency of Chile\nData: ")
    assert "Lima" not in question(second)


def test_a_value_that_no_result_holds_leads_to_one_rewrite_with_copied_values(apis: Apis) -> None:
    chat = model(answer=["Lima has 999 people.", "It is Lima."])
    assert finish(chat, view(apis, LIMA)) == "It is Lima."
    first, second = chat.requests
    assert first.expected.copied == ()
    assert TASK in second.expected.copied
    assert any("Lima" in text for text in second.expected.copied)


@pytest.mark.parametrize("again", ["", "Lima has 999 people and 888 dogs."])
def test_a_rewrite_that_is_no_better_is_not_taken_and_none_follows(apis: Apis, again: str) -> None:
    chat = model(answer=["Lima has 999 people.", again])
    assert finish(chat, view(apis, LIMA)) == "Lima has 999 people."
    assert len(chat.requests) == 2


def test_more_values_than_a_grammar_holds_are_asked_for_freely(apis: Apis) -> None:
    class Narrow(ScriptedChat):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            if request.expected.copied:
                raise GrammarError("too many items", hint="")
            return super().reply(request, stop=stop)

    chat = Narrow(["Lima has 999 people.", "It is Lima."])
    assert finish(chat, view(apis, LIMA)) == "It is Lima."


def test_without_the_aid_check_an_answer_is_taken_as_it_is(apis: Apis) -> None:
    chat = model(answer=["Lima has 999 people."])
    assert finish(chat, view(apis, LIMA, PESO), without="check") == "Lima has 999 people."
    assert len(chat.requests) == 1


CALLS = [
    '{"name": "capital_city_for_country_facts", "arguments": {"country": "Peru"}}',
    '```json\n{"name": "capital_city_for_country_facts", "arguments": {"country": "Chile"}}\n```',
]


@pytest.mark.parametrize("said", CALLS)
def test_a_call_written_as_answer_text_is_no_answer(apis: Apis, said: str) -> None:
    chat = model(answer=[said])
    assert finish(chat, view(apis, LIMA)) is None


@pytest.mark.parametrize("said", CALLS)
def test_a_call_written_as_answer_text_is_asked_for_again_by_its_parts(
    apis: Apis, said: str
) -> None:
    chat = model(answer=[said, "It is Lima.", "The Chilean Peso."])
    assert finish(chat, view(apis, LIMA, PESO)) == "It is Lima. The Chilean Peso."


@pytest.mark.parametrize("said", ["", " ", ".", "\u200b"])
def test_an_answer_that_says_nothing_is_none(apis: Apis, said: str) -> None:
    assert finish(model(answer=[said]), view(apis, LIMA)) is None


def test_without_a_successful_call_there_is_nothing_to_answer_with(apis: Apis) -> None:
    chat = model(answer=["It is Lima."])
    failed = step(capital("Atlantis"), "HTTP status 404", ok=False)
    assert finish(chat, view(apis, failed)) is None
    assert chat.requests == []


@pytest.mark.parametrize(
    ("answer", "response", "told"),
    [
        ("It is Lima.", {"capital": "Lima", "country": "Peru"}, True),
        ("It lies in Peru.", {"capital": "Lima", "country": "Peru"}, False),
        ("Yes.", {"exists": True}, True),
        ("Nothing.", {"rows": [{"name": "Lima"}]}, False),
        ("About 1,200 m.", {"height": 1200}, True),
        ("Peru is no member.", {"member": False, "since": "never"}, True),
        ("Nothing of that.", {"member": False, "since": "never"}, False),
    ],
)
def test_an_answer_tells_a_result_whose_news_it_states(
    answer: str, response: Any, told: bool
) -> None:
    one = step(capital(), response)
    assert states_any(answer, one, new_values(one, TASK, []), TASK) is told


@pytest.mark.parametrize(
    ("task", "arguments", "response", "fresh"),
    [
        ("the week of 2001-09-09", {"date": "2001-09-09"}, {"year": 2001, "week": 36}, ["36"]),
        ("born 27 February 1931", {"date": "27 February 1931"},
         {"date": "1931-02-27", "weekday": "Friday"}, ["Friday"]),
        ("BEEF in decimal", {"number": "BEEF"}, {"number": "beef", "result": 48879}, ["48879"]),
        ("is it valid", {}, {"valid": True, "why": None, "note": ""}, []),
        ("rows", {}, [{"a": "x"}, {"a": "x"}, {"a": "y"}], ["x", "y"]),
        ("all", {}, {"text": "long " * 100}, []),
    ],
)  # fmt: skip
def test_news_are_the_values_that_nobody_said_before(
    task: str, arguments: dict[str, Any], response: Any, fresh: list[str]
) -> None:
    assert list(new_values(step(ToolCall("f", arguments), response), task, [])) == fresh


def test_a_value_that_the_next_call_was_made_with_is_still_news() -> None:
    sale = step(ToolCall("discount", {"price": 249}), {"sale_price": 174.3})
    tax = step(ToolCall("tax", {"price": 174.3}), {"price": 174.3, "gross": 188.68})
    assert new_values(sale, "a jacket of 249", [tax]) == ("174.3",)
    assert new_values(tax, "a jacket of 249", [sale]) == ("188.68",)


def test_an_answer_that_tells_nothing_new_is_written_again_with_a_value(apis: Apis) -> None:
    chat = model(answer=["Peru has a capital.", "It is Lima."])
    assert finish(chat, view(apis, LIMA)) == "It is Lima."
    assert chat.requests[1].expected.one_of == ("Lima",)


def test_where_a_part_is_not_served_the_others_are_told_for_themselves(apis: Apis) -> None:
    chat = model(answer=["It is Lima."])
    assert finish(chat, view(apis, LIMA)) == "It is Lima."
    (request,) = chat.requests
    assert question(request).startswith("Question: the capital of Peru\nData: ")


class OneReply(ScriptedChat):
    """A model that is stopped after its first reply."""

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        return None if self.requests else super().reply(request, stop=stop)


@pytest.mark.parametrize("path", [(LIMA,), (LIMA, PESO)])
def test_an_answer_whose_check_is_stopped_stays_as_it_was(
    apis: Apis, path: tuple[Step, ...]
) -> None:
    chat = OneReply(Script(answer=["Peru has 99 capitals."]))
    assert finish(chat, view(apis, *path)) == "Peru has 99 capitals."


def test_sentences_are_said_once_and_a_cut_one_not_at_all(apis: Apis) -> None:
    said = ChatReply(text="It is Lima. It is Lima. It is", finish="length")
    assert finish(model(answer=[said]), view(apis, LIMA)) == "It is Lima."
    assert finish(model(answer=["Lima, Lima and"]), view(apis, LIMA)) == "Lima, Lima and"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("It is Lima. It has approximately" + " approximately" * 80, "It is Lima."),
        ("It is Lima. " + "The capital is the capital of " * 20, "It is Lima."),
        ("No no no, Lima Lima! It is Lima.", "No no no, Lima Lima! It is Lima."),
    ],
)
def test_an_answer_ends_before_what_is_said_over_and_over(apis: Apis, said: str, kept: str) -> None:
    reply = ChatReply(text=said, finish="length" if len(said) > 100 else "complete")
    assert finish(model(answer=[reply]), view(apis, LIMA)) == kept


def test_an_answer_that_only_repeats_itself_is_asked_for_again(apis: Apis) -> None:
    looping = ChatReply(text="Peru lies " + "near " * 90, finish="length")
    assert finish(model(answer=[looping, "It is Lima."]), view(apis, LIMA)) == "It is Lima."


# ---------------------------------------------------------------- comparisons and judgements
@pytest.mark.parametrize(("letter", "first"), [('"A"', True), ('"B"', False), ("A", True)])
def test_two_steps_are_compared_by_a_letter(apis: Apis, letter: str, first: bool) -> None:
    chat = model(letter=[letter])
    found = agent(chat).prefers(view(apis), LIMA, PESO, stop=Stop(), meter=UsageMeter())
    assert found is first
    (request,) = chat.requests
    assert request.expected.schema == {"type": "string", "enum": ["A", "B"]}
    assert question(request).index("Lima") < question(request).index("CLP")


@pytest.mark.parametrize(
    ("said", "judged"),
    [
        ('{"reason": "all is there", "accept": true}', Judgement(True, "all is there")),
        ('{"reason": "it is elsewhere", "accept": false}', Judgement(False, "it is elsewhere")),
        ('{"accept": "maybe"}', None),
        ("looks good", None),
        ("", None),
    ],
)
def test_a_judgement_is_an_object_or_none(apis: Apis, said: str, judged: Judgement | None) -> None:
    chat = model(judgement=[said])
    found = agent(chat).verify(
        view(apis, LIMA), "Quito", ["Quito"], max_tokens=400, stop=Stop(), meter=UsageMeter()
    )
    assert found == judged
    assert "No result says: Quito." in question(chat.requests[0])


# ---------------------------------------------------------------- whole solves
def test_dfs_ranks_the_steps_that_were_proposed(retriever: ApiRetriever) -> None:
    chat = model(call=[capital("Chile"), capital()], letter=['"B"', '"A"'], answer=["It is Lima."])
    one = Judge({"capital_city": "capital of Peru"})
    outcome = solve(Searched(retriever, one), chat, "capital of Peru", strategy="dfs")
    assert (outcome.status, outcome.strategy) == ("answered", "dfs")
    compared = prompts_of(chat, "letter")
    assert compared
    assert "Chile" in question(compared[0])
    assert "Peru" in question(compared[0])
    entered = [one for one in outcome.evidence if one.used]
    assert [one.arguments["country"] for one in entered] == ["Peru"]


def test_a_rejection_is_told_and_another_answer_is_taken(retriever: ApiRetriever) -> None:
    no, yes = (
        json.dumps({"reason": reason, "accept": accept})
        for reason, accept in (("Quito is elsewhere.", False), ("so it is", True))
    )
    chat = model(call=[capital()], answer=["It is in Peru.", "It is Lima."], judgement=[no, yes])
    finder = Searched(retriever, Judge({"capital_city": "capital of Peru"}))
    outcome = solve(finder, chat, "capital of Peru", verify=True, width=1)
    assert (outcome.status, outcome.answer) == ("answered", "It is Lima.")
    assert [(one.verdict, one.reason) for one in outcome.opinions] == [
        ("rejected", "Quito is elsewhere."),
    ]


def test_chains_that_are_drawn_know_nothing_of_each_other(retriever: ApiRetriever) -> None:
    drawn = Profile(
        name="chat", format="chat", context=8192, temperature=0.5, anew_after_give_up=False
    )
    one = Searched(retriever, Judge({"capital_city": "capital of Peru"}))
    chat = model(call=[capital("Atlantis"), "no", "no", capital()], answer=["It is Lima."])
    outcome = solve(one, chat, "capital of Peru", profile=drawn, strategy="cot", chains=3)
    assert outcome.status == "answered"
    calls = prompts_of(chat, "call")
    assert calls[3].messages == calls[0].messages
    assert len({request.seed for request in calls}) == len(calls)
    assert {request.temperature for request in calls} == {0.5}


def test_at_the_end_of_a_budget_the_model_answers_with_what_is_known(
    retriever: ApiRetriever,
) -> None:
    chat = model(call=[capital(), currency()], answer=["It is Lima."])
    outcome = solve(Searched(retriever, BOTH), chat, limits=Limits(calls=1))
    assert (outcome.status, outcome.answer) == ("partial", "It is Lima.")
    assert "1 call" in outcome.reason
    assert outcome.missing == ("the currency of Chile",)


def test_a_stop_in_the_middle_of_an_answer_keeps_what_was_found(retriever: ApiRetriever) -> None:
    stop = Stop()

    class Stopped(ScriptedChat):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            if kind(request) == "answer":
                outer.set()
                return None
            return super().reply(request, stop=stop)

    outer = stop
    chat = Stopped(Script(call=[capital(), currency()]))
    outcome = solve(Searched(retriever, BOTH), chat, stop=stop)
    assert outcome.status == "cancelled"
    assert "Lima" in outcome.answer

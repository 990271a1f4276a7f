"""Several calls of one reply: how many are asked for, what they become, how they are rendered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from tests.agents import (
    BOTH,
    CAPITAL,
    CHAT,
    CURRENCY,
    TASK,
    Judge,
    Searched,
    capital,
    currency,
    model,
    prompts_of,
    solve,
    step,
    system_of,
    view,
)
from tests.template_files import FILES, NAMES, TOOLS, accepts, template

from toolsrv_registry.api import Api
from toolsrv_runtime.agent import conversation as turns
from toolsrv_runtime.agent.candidates import ApiRetriever, Candidates
from toolsrv_runtime.agent.chat_agent import ChatAgent
from toolsrv_runtime.agent.conversation import StepRequest
from toolsrv_runtime.agent.coverage import Subtask
from toolsrv_runtime.agent.fitting import PromptShape
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS
from toolsrv_runtime.agent.proposals import ActionProposer
from toolsrv_runtime.agent.state import RunState
from toolsrv_runtime.contract.format import Action, History, Step, UsageMeter
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    ReplyConstraints,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.models.scripted import ScriptedChat
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profiles import REMOTE
from toolsrv_runtime.profiles.choose import read_profile
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.call_syntax import Slot
from toolsrv_runtime.templates.dialects import new_id

Apis = Mapping[str, Api]
SEVERAL = CHAT.model_copy(update={"calls_per_turn": 8})
FITS_NOT = ToolCall(NO_FUNCTION_FITS, {"reason": "nothing"})


def propose(chat: ScriptedChat, where: History, judge: Judge = BOTH) -> Action | str:
    agent = ChatAgent(chat, SEVERAL, prior=judge)
    return agent.propose(where, max_tokens=400, stop=Stop(), meter=UsageMeter())


def names(move: Action | str) -> list[str]:
    assert isinstance(move, Action)
    return [move.function, *(one.function for one in move.also)]


def first_of(*calls: ToolCall) -> Step:
    """Return the step of the first call of a reply."""
    made = turns.first_action(calls, "", (), 8)
    return replace(step(calls[0], "fine"), move=made)


# ---------------------------------------------------------------- what is asked for
def test_as_many_calls_are_asked_for_as_the_task_has_open_needs(apis: Apis) -> None:
    chat = model(call=[[capital(), currency()]])
    move = propose(chat, view(apis))
    assert names(move) == [CAPITAL, CURRENCY]
    (request,) = chat.requests
    assert request.expected.calls == 2
    assert set(request.expected.names) == {CAPITAL, CURRENCY}
    assert "Call those together" in system_of(request)


def test_only_open_needs_count(apis: Apis) -> None:
    chat = model(call=[[currency(), currency("Peru")]])
    move = propose(chat, view(apis, step(capital(), {"capital": "Lima"})))
    assert chat.requests[0].expected.calls == 1
    assert names(move) == [CURRENCY]


def test_without_a_matcher_a_reply_may_hold_what_the_profile_says(apis: Apis) -> None:
    chat = model(call=[[capital(), currency()]])
    assert names(propose(chat, view(apis), Judge(silent=True))) == [CAPITAL, CURRENCY]
    assert chat.requests[0].expected.calls == 8


def test_a_need_that_waits_for_a_result_is_not_called_for_yet() -> None:
    one, two, three = (Subtask(text, 0, 1, (text,)) for text in ("one", "two", "three"))
    ready = {"one", "three"}
    found = turns.group_subtasks(one, (one, two, three), lambda need: need.text in ready, 8)
    assert found == (one, three)
    assert turns.group_subtasks(one, (one, two, three), lambda need: need.text in ready, 1) == (
        one,
    )


def test_servers_may_be_asked_for_eight_calls_and_files_for_one() -> None:
    assert (REMOTE.calls_per_turn, CHAT.calls_per_turn) == (8, 1)


@pytest.mark.parametrize(("value", "good"), [("1", True), ("8", True), ("0", False), ("9", False)])
def test_a_profile_of_ones_own_may_say_how_many(tmp_path: Path, value: str, good: bool) -> None:
    place = tmp_path / "mine.toml"
    place.write_text(f"calls_per_turn = {value}\n")
    if good:
        assert read_profile(place).calls_per_turn == int(value)
    else:
        with pytest.raises(ProfileError, match="calls_per_turn"):
            read_profile(place)


# ---------------------------------------------------------------- what a reply comes to
def test_identical_calls_count_once_and_those_of_the_path_not_at_all() -> None:
    path = (step(capital(), "Lima"),)
    calls = (capital(), currency(), currency(), capital("Chile"))
    move = turns.first_action(calls, " so be it ", path, 8)
    assert names(move) == [CURRENCY, CAPITAL]
    assert [json.loads(one.arguments)["country"] for one in (move, *move.also)] == ["Chile"] * 2
    assert (move.thought, move.also[0].thought) == ("so be it", None)


def test_a_reply_that_only_repeats_is_its_first_call() -> None:
    path = (step(capital(), "Lima"), step(currency(), "Peso"))
    assert names(turns.first_action((currency(), capital()), "", path, 8)) == [CURRENCY]


def test_no_more_calls_count_than_were_asked_for_and_giving_up_only_alone() -> None:
    assert names(turns.first_action((capital(), currency()), "", (), 1)) == [CAPITAL]
    assert names(turns.first_action((FITS_NOT, capital()), "", (), 8)) == [CAPITAL]
    assert names(turns.first_action((FITS_NOT, FITS_NOT), "", (), 8)) == [NO_FUNCTION_FITS]


def test_the_further_calls_are_proposed_without_asking_the_model(apis: Apis) -> None:
    chat = model(call=[currency("Bolivia")])
    first = first_of(capital(), currency(), capital("Chile"))
    move = propose(chat, view(apis, first))
    assert names(move) == [CURRENCY, CAPITAL]
    assert chat.requests == []
    declined = replace(first, ok=False, declined=True)
    failed = replace(first, ok=False)
    assert names(propose(chat, view(apis, failed))) == [CURRENCY, CAPITAL]
    assert chat.requests == []
    assert names(propose(chat, view(apis, declined))) == [CURRENCY]
    assert len(chat.requests) == 1


def test_a_set_that_was_tried_is_excluded_as_a_whole(apis: Apis) -> None:
    chat = model(call=[currency("Bolivia")])
    first = first_of(capital(), currency(), capital("Chile"))
    propose(chat, replace(view(apis), tried=(first, step(currency(), "404", ok=False))))
    (request,) = chat.requests
    excluded = [(one.name, one.arguments["country"]) for one in request.expected.excluded]
    assert excluded == [(CAPITAL, "Peru"), (CURRENCY, "Chile"), (CAPITAL, "Chile")]
    note = request.messages[-1]
    assert isinstance(note, UserMessage)
    assert "404" in note.text


# ---------------------------------------------------------------- in the conversation
def conversation(apis: Apis, *path: Step) -> list[AssistantMessage | ToolMessage]:
    where = view(apis, *path)
    turn = StepRequest(where, ReplyConstraints(), datetime.now().astimezone())
    shape = PromptShape(tuple("" for _ in where.functions), tuple(one.observation for one in path))
    messages = turn.request(shape).messages
    return [one for one in messages if isinstance(one, AssistantMessage | ToolMessage)]


def test_calls_of_one_reply_are_one_turn_followed_by_their_results(apis: Apis) -> None:
    first = first_of(capital(), currency())
    second = step(currency(), "Peso", ok=False)
    third = step(capital("Chile"), "Santiago")
    turn, one, two, other, three = conversation(apis, first, second, third)
    assert isinstance(turn, AssistantMessage)
    assert isinstance(other, AssistantMessage)
    assert [call.name for call in turn.calls] == [CAPITAL, CURRENCY]
    assert [call.name for call in other.calls] == [CAPITAL]
    found = [each.call for each in (one, two, three) if isinstance(each, ToolMessage)]
    assert found == [*turn.calls, *other.calls]
    assert len({call.id for call in found}) == 3
    assert "error" in two.text


def test_another_call_below_the_first_of_a_reply_is_a_turn_of_its_own(apis: Apis) -> None:
    path = (first_of(capital(), currency()), step(currency("Bolivia"), "Boliviano"))
    kinds = [type(one) for one in conversation(apis, *path)]
    assert kinds == [AssistantMessage, ToolMessage] * 2


# ---------------------------------------------------------------- in a solve
def test_a_branch_left_excludes_the_set_and_shows_what_failed_in_it(
    retriever: ApiRetriever,
) -> None:
    wrong = [capital("Nowhere"), currency("Elsewhere")]
    right = [capital(), currency()]
    chat = model(call=[wrong, FITS_NOT, FITS_NOT, right], answer=["Lima and the Chilean Peso."])
    blind = Searched(retriever, Judge(silent=True))
    outcome = solve(blind, chat, profile=SEVERAL, search_again=False)
    assert outcome.status == "answered"
    again = [one for one in prompts_of(chat, "call") if len(one.messages) == 3]
    (request,) = again  # at the root once more: task and what was tried
    excluded = {one.arguments.get("country") for one in request.expected.excluded}
    assert excluded == {"Nowhere", "Elsewhere"}
    note = request.messages[-1].text
    assert "no country 'Nowhere'" in note
    assert "no country 'Elsewhere'" in note


# ---------------------------------------------------------------- in a subtask
def test_a_subtask_asks_for_no_more_calls_than_it_has_room_for(retriever: ApiRetriever) -> None:
    parts = ["the capital of Peru", "the currency of Chile"]
    many = [capital(one) for one in ("Peru", "Chile", "Spain", "Italy")]
    chat = model(
        letter=[json.dumps({"subtasks": parts})],
        call=[many, [currency(), currency("Peru")]],
        answer=["Lima and the Chilean Peso."],
    )
    blind = Searched(retriever, Judge(silent=True))
    outcome = solve(blind, chat, profile=SEVERAL, switches=frozenset({"plan"}))
    assert outcome.status == "answered"
    assert [one.expected.calls for one in prompts_of(chat, "call")] == [3, 3]
    made = [(one.function, one.arguments["country"]) for one in outcome.evidence]
    assert made == [(CAPITAL, one) for one in ("Peru", "Chile", "Spain")] + [
        (CURRENCY, one) for one in ("Chile", "Peru")
    ]
    assert outcome.usage.calls == 5


def test_a_reply_of_a_subtask_does_not_go_on_behind_it(retriever: ApiRetriever) -> None:
    parts = json.dumps({"subtasks": ["the capital of Peru", "the currency of Chile"]})
    chat = model(letter=[parts])
    options = SolveOptions(candidates=3)
    offer = Candidates(Searched(retriever, Judge(silent=True)), TASK, 3, None)
    state = RunState(TASK, options, offer, Stop(), lambda _: None)
    asking = ActionProposer(state, ChatAgent(chat, SEVERAL), anew_after_give_up=False, draws=False)
    tree, steps = state.ledger.findings.tree, state.ledger.steps

    def made(above: Node, one: Step) -> Node:
        node = tree.add(above, one.move)
        steps[node.id] = one
        return node

    async def planned() -> list[Action | None]:
        await asking.begin()
        one, two = await asking.divide(tree.root)
        node = tree.add(tree.root, one)
        await asking.begin_part(node, 0, solved=True)
        node = made(node, first_of(capital(), currency()))
        found = [asking.planned(node)]
        node = tree.add(node, two)
        await asking.begin_part(node, 1, solved=True)
        found.append(asking.planned(node))
        node = made(node, first_of(currency("Peru"), capital("Chile")))
        found.append(asking.planned(node))
        node = tree.add(node, Action("done", "", ""))
        await asking.begin_part(node, None, solved=True)
        found.append(asking.planned(node))
        return [*found, asking.planned(made(node, first_of(capital("Spain"), currency("Spain"))))]

    found = [one and json.loads(one.arguments)["country"] for one in asyncio.run(planned())]
    assert found == ["Chile", None, "Chile", None, "Spain"]


# ---------------------------------------------------------------- in a grammar
WITH_IDS = [
    name
    for name in FILES
    if Slot.ID in template(name).call_syntax.parts and template(name).call_syntax.several
]


def test_some_templates_have_several_calls_with_ids() -> None:
    assert WITH_IDS


@pytest.mark.parametrize("name", WITH_IDS)
def test_the_first_of_several_calls_has_the_id_of_excluded_ones(name: str) -> None:
    one, two = ToolCall("get_weather", {"city": "Lima"}), ToolCall("get_weather", {"city": "Bern"})
    request = ChatRequest((UserMessage("go"),), TOOLS, ReplyConstraints(NAMES, 2, excluded=(one,)))
    grammar, write = template(name).grammar(request), template(name).call_syntax.write
    first, second = replace(one, id=new_id(request, 0)), replace(two, id="abcdefghi")
    (alone,) = template(name).excluded(request)
    assert alone == write([first])
    assert accepts(name, grammar, alone)
    assert accepts(name, grammar, write([first, second]))
    assert not accepts(name, grammar, write([replace(one, id="abcdefghi")]))
    assert not accepts(name, grammar, write([first, second, second]))

"""A model server with a short context: what it refuses is asked again with less, never the same."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.agents import Judge, Searched

from toolsrv_registry.functions import Function, FunctionList
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.chat_agent import ChatAgent
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.format import Action, History, Step, UsageMeter
from toolsrv_runtime.errors import ContextError, TaskTooLongError
from toolsrv_runtime.models.openai.chat import load_servers
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call = _FAKE["ModelServer"], _FAKE["Call"]
TASK = "capital of Peru"
CAPITAL = "capital_city_for_country_facts"
PERU = Call(CAPITAL, {"country": "Peru"}, "look it up")


@pytest.fixture(autouse=True)
def a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_ENGINE_KEY", "a-key-of-the-test")


def solve(url: str, retriever: ApiRetriever, **options: Any) -> Outcome:
    chat, profile = load_servers(url, silence_s=10)
    finder = Searched(retriever, Judge(silent=True))  # all that was found stays on offer

    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=finder, engine=chat, profile=profile, caller=caller)
            return await solver.solve(TASK, SolveOptions(**options))

    return asyncio.run(main())


def functions(retriever: ApiRetriever) -> tuple[Function, ...]:
    return tuple(FunctionList([hit.api for hit in retriever.search(TASK, limit=3).hits]))


def characters(body: dict[str, Any]) -> int:
    return len(json.dumps(body))


@pytest.mark.parametrize("offers", [("tools",), ()])
def test_a_refused_length_is_asked_again_with_less_and_noted(
    offers: tuple[str, ...], retriever: ApiRetriever
) -> None:
    with ModelServer([PERU, "It is Lima."], offers=offers, most=3300) as server:
        outcome = solve(server.url, retriever, candidates=8)
        sent = [*server.refused, *server.requests]
    assert (outcome.status, outcome.answer) == ("answered", "It is Lima.")
    assert server.refused
    assert all(characters(body) <= 3300 for body in server.requests)
    assert len({json.dumps(body["messages"]) + str(body.get("tools")) for body in sent}) == len(
        sent
    )
    assert all(TASK in str(body["messages"]) for body in sent)
    assert any("function documents were shortened" in note for note in outcome.notes)
    assert outcome.usage.model_calls == 3  # what was refused is no reply


def test_the_oldest_response_is_condensed_first_and_the_task_never(retriever: ApiRetriever) -> None:
    old, new = (json.dumps({"text": letter * 3000}) for letter in "ab")
    steps = tuple(Step(Action("so", CAPITAL, "{}"), text, ok=True) for text in (old, new))
    with ModelServer([PERU]) as server:
        chat, profile = load_servers(server.url)
        view, meter = History(TASK, functions(retriever), path=steps), UsageMeter()
        ChatAgent(chat, profile).propose(view, max_tokens=512, stop=Stop(), meter=meter)
        server.most = characters(server.requests[0]) - 1000
        ChatAgent(chat, profile).propose(view, max_tokens=512, stop=Stop(), meter=meter)
        before, after = server.requests
    told = [turn["content"] for turn in after["messages"] if turn["role"] == "tool"]
    assert "a" * 61 not in told[0]
    assert json.loads(told[1]) == {"text": "b" * 3000}
    assert after["tools"] == before["tools"]
    assert after["messages"][1]["content"] == TASK
    assert any("condensed" in note for note in meter.notes)


def test_what_was_learnt_of_the_length_holds_for_the_next_request(retriever: ApiRetriever) -> None:
    with ModelServer([PERU, "Lima"], most=3300) as server:
        solve(server.url, retriever, candidates=8)
        assert len(server.refused) == 1


def test_a_server_that_tells_its_context_is_left_room_for_a_reply(retriever: ApiRetriever) -> None:
    words = "The prompt is too long."
    script = [PERU, "Lima"]
    with ModelServer(script, most=4000, refusal=words, max_model_len=1500) as server:
        outcome = solve(server.url, retriever, candidates=8)
        first, *rest = (body["max_tokens"] for body in (*server.refused[:1], *server.requests))
    assert outcome.status == "answered"
    assert (first, set(rest)) == (750, {320, 750})


@pytest.mark.parametrize(
    ("refusal", "status", "room", "said"),
    [
        ("This model's maximum context length is 96 tokens.", 400, 0, "is 96 tokens"),
        ("the request exceeds the available context size (96 tokens)", 400, 0, "(96 tokens)"),
        ("The prompt is too long.", 422, 96, "room for 96 tokens"),
        ("The prompt is too long.", 422, 127, "room for 127 tokens"),  # 127 is in the address too
        ("", 413, 0, "413"),
    ],
)
def test_a_task_that_is_refused_at_its_shortest_names_size_and_limit(
    refusal: str, status: int, room: int, said: str, retriever: ApiRetriever
) -> None:
    with (
        ModelServer(
            [PERU], most=900, refusal=refusal, refusal_status=status, max_model_len=room
        ) as server,
        pytest.raises(TaskTooLongError) as caught,
    ):
        solve(server.url, retriever, candidates=8)
    assert f"the task has {len(TASK)} characters" in caught.value.message
    assert re.search(r"the request has \d{3,4}, and the model of 127", caught.value.message)
    assert said in caught.value.message
    sent = [json.dumps(body) for body in server.refused]
    assert len(set(sent)) == len(sent)


def test_a_conversation_that_is_refused_at_its_shortest_names_size_and_limit(
    retriever: ApiRetriever,
) -> None:
    with ModelServer([PERU]) as server:
        chat, profile = load_servers(server.url)
        step = Step(Action("so", CAPITAL, '{"country": "Peru"}'), "Lima", ok=True)
        view = History(TASK, functions(retriever), path=(step,))
        server.most = 900
        with pytest.raises(ContextError) as caught:
            ChatAgent(chat, profile).propose(view, max_tokens=512, stop=Stop(), meter=UsageMeter())
    assert not isinstance(caught.value, TaskTooLongError)
    assert re.search(r"the conversation has \d{3,4} characters", caught.value.message)
    assert "2048 tokens" in caught.value.message

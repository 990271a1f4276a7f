"""The agent with models that never stop, and with contexts that fill in the middle of a chain."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from tests.agents import (
    BOTH,
    CAPITAL,
    CHAT,
    TASK,
    Judge,
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
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.chat_agent import ChatAgent
from toolsrv_runtime.contract.format import Step, UsageMeter
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall, ToolMessage
from toolsrv_runtime.errors import ContextError, ModelError, RefusedLengthError, TaskTooLongError
from toolsrv_runtime.models.scripted import ScriptedChat
from toolsrv_runtime.outcome import Limits
from toolsrv_runtime.stop import Stop

Apis = Mapping[str, Api]
LIMITS = Limits(seconds=20, model_calls=12, calls=4)
SILENT = Judge(silent=True)


# ---------------------------------------------------------------- models that say nothing sensible
@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
@pytest.mark.parametrize(
    "said",
    [
        capital(),
        ToolCall(CAPITAL, {"country": "word " * 4000}),
        "首都はリマです。" * 200,
        "la " * 3000,
        "",
        ChatReply(text="Let me think. " * 900, finish="length"),
        ToolCall("no_such_function", {"x": "y"}),
    ],
    ids=["repeats", "endless arguments", "Japanese", "la la", "nothing", "cut", "unknown"],
)
def test_whatever_a_model_says_for_ever_a_solve_ends_in_its_limits(
    retriever: ApiRetriever, said: Any, strategy: str
) -> None:
    chat = model(call=[said], more=[said], answer=[said if isinstance(said, str) else "x"],
                 letter=['"A"'])  # fmt: skip
    outcome = solve(Searched(retriever, BOTH), chat, strategy=strategy, limits=LIMITS, candidates=4)
    assert outcome.status in {"partial", "gave_up"}
    assert outcome.reason
    assert outcome.usage.model_calls <= LIMITS.model_calls + 4  # a closing answer and its rewrite
    assert outcome.usage.calls <= LIMITS.calls


def test_the_same_call_again_is_made_once(retriever: ApiRetriever) -> None:
    chat = model(call=[capital()], answer=["It is Lima."])
    outcome = solve(Searched(retriever, BOTH), chat, strategy="react", limits=LIMITS)
    assert outcome.usage.calls <= 2
    assert outcome.missing == ("the currency of Chile",)
    later = prompts_of(chat, "call")[-1]
    assert [one.arguments for one in later.expected.excluded][:1] == [{"country": "Peru"}]


def test_a_stop_in_the_middle_of_a_reply_ends_the_solve(retriever: ApiRetriever) -> None:
    chat = ScriptedChat([capital()], seconds=60)
    started = time.monotonic()
    outcome = solve(Searched(retriever, BOTH), chat, stop=Stop(deadline=started + 0.5))
    assert outcome.status == "cancelled"
    assert time.monotonic() - started < 20


def test_a_time_that_is_over_ends_with_what_was_found(retriever: ApiRetriever) -> None:
    class Slow(ScriptedChat):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            if len(self.requests) and kind(request) == "call":
                while not stop.is_set():
                    time.sleep(0.01)
                return None
            return super().reply(request, stop=stop)

    chat = Slow(lambda request: "It is Lima." if kind(request) == "answer" else capital())
    outcome = solve(Searched(retriever, BOTH), chat, limits=Limits(seconds=4))
    assert outcome.status == "partial"
    assert "time" in outcome.reason
    assert "Lima" in outcome.answer


def test_a_fault_of_the_model_keeps_what_was_found(retriever: ApiRetriever) -> None:
    def script(_: ChatRequest) -> Any:
        if len(chat.requests) > 1:
            raise ModelError("the server is gone", hint="start it")
        return capital()

    chat = ScriptedChat(script)
    outcome = solve(Searched(retriever, BOTH), chat)
    assert outcome.status == "partial"
    assert "Lima" in outcome.answer


def test_a_fault_before_anything_was_found_is_an_error(retriever: ApiRetriever) -> None:
    with pytest.raises(ModelError):
        solve(Searched(retriever, BOTH), ScriptedChat([]))


# ---------------------------------------------------------------- a context that fills
class Measured(ScriptedChat):
    """Counts the words of messages and tools."""

    def count(self, request: ChatRequest) -> int:
        tools = json.dumps([one.to_json() for one in request.tools])
        return super().count(request) + len(tools.split())


def path(count: int, words: int) -> tuple[Step, ...]:
    return tuple(
        step(capital(f"Land{at}"), {"capital": f"City{at}", "text": f"w{at} " * words})
        for at in range(count)
    )


def results(request: ChatRequest) -> list[str]:
    return [one.text for one in request.messages if isinstance(one, ToolMessage)]


def test_the_oldest_results_are_condensed_and_task_and_tools_are_kept(apis: Apis) -> None:
    where = view(apis, *path(3, 200))
    chat, room = Measured(lambda _: currency()), Measured(lambda _: currency())
    agent = ChatAgent(room, CHAT, prior=BOTH)
    agent.propose(where, max_tokens=64, stop=Stop(), meter=UsageMeter())
    whole = room.count(room.requests[0])
    chat.context = whole - 150 + 64
    meter = UsageMeter()
    ChatAgent(chat, CHAT, prior=BOTH).propose(where, max_tokens=64, stop=Stop(), meter=meter)
    (request,) = chat.requests
    assert chat.count(request) + request.max_tokens <= chat.context
    first, _, last = results(request)
    assert len(first) < 420
    assert len(last) > 500
    assert json.loads(first)["capital"] == "City0"
    assert request.messages[1].text == TASK
    assert request.tools == room.requests[0].tools
    assert any("condensed" in note for note in meter.notes)


def test_then_the_tools_are_shortened_and_those_of_the_request_stay_callable(apis: Apis) -> None:
    where = view(apis, *path(3, 200))
    room = Measured(lambda _: capital())
    ChatAgent(room, CHAT, prior=SILENT).propose(
        where, max_tokens=64, stop=Stop(), meter=UsageMeter()
    )
    for words in range(room.count(room.requests[0]), 0, -20):
        chat, meter = Measured(lambda _: capital(), context=words + 64), UsageMeter()
        agent = ChatAgent(chat, CHAT, prior=SILENT)
        with suppress(ContextError):
            agent.propose(where, max_tokens=64, stop=Stop(), meter=meter)
        if not chat.requests:
            break
        request = chat.requests[0]
        assert chat.count(request) + request.max_tokens <= words + 64
        assert TASK in request.messages[1].text
        assert set(request.expected.names) <= {one.name for one in request.tools}
        assert request.expected.names
    else:
        pytest.fail("no context was too small")
    assert words < 400
    with pytest.raises(ContextError) as caught:
        agent.propose(where, max_tokens=64, stop=Stop(), meter=meter)
    assert not isinstance(caught.value, TaskTooLongError)
    assert caught.value.hint


def test_a_task_that_does_not_fit_is_refused_with_its_size(apis: Apis) -> None:
    chat = Measured(lambda _: capital(), context=120)
    task = "What is the capital of Peru? " * 60
    with pytest.raises(TaskTooLongError) as caught:
        ChatAgent(chat, CHAT, prior=SILENT).propose(
            view(apis, task=task), max_tokens=64, stop=Stop(), meter=UsageMeter()
        )
    assert "fit the model" in caught.value.message
    assert chat.requests == []


def test_the_data_of_an_answer_is_condensed_until_it_fits(apis: Apis) -> None:
    where = view(apis, *path(3, 400))
    chat, meter = Measured(lambda _: "It is City2.", context=700), UsageMeter()
    move = ChatAgent(chat, CHAT, prior=SILENT).finish(
        where, max_tokens=64, stop=Stop(), meter=meter
    )
    assert move is not None
    request = chat.requests[0]
    assert chat.count(request) + request.max_tokens <= 700
    assert TASK in request.messages[-1].text
    assert all(f"City{at}" in request.messages[-1].text for at in range(3))
    assert any("condensed" in note for note in meter.notes)


class Refusing(ScriptedChat):
    """Refuses what has more than ``most`` words, as a server with a short context does."""

    most = 0

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        if self.count(request) > self.most:
            self.requests.append(request)
            raise RefusedLengthError("it is too long", hint="", context=0)
        return super().reply(request, stop=stop)


def test_a_refused_length_is_asked_again_with_less_and_never_the_same(apis: Apis) -> None:
    chat, meter = Refusing(lambda _: currency()), UsageMeter()
    where = view(apis, *path(3, 200))
    chat.most = 500
    ChatAgent(chat, CHAT, prior=BOTH).propose(where, max_tokens=64, stop=Stop(), meter=meter)
    sizes = [chat.count(one) for one in chat.requests]
    assert sizes[0] > 500 >= sizes[-1]
    assert len(sizes) > 1
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(one.messages[1].text == TASK for one in chat.requests)
    assert any("condensed" in note for note in meter.notes)
    assert meter.replies == 1

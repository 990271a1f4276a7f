"""OpenAI-compatible servers as chat models: well-behaved ones, hostile ones, several in turn."""

from __future__ import annotations

import runpy
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ContextError, ServerError
from toolsrv_runtime.models.openai import chat as servers
from toolsrv_runtime.models.openai import parse_endpoints
from toolsrv_runtime.models.openai.chat import OpenAIChat
from toolsrv_runtime.models.openai.server import OpenAIServer
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call, KINDS = _FAKE["ModelServer"], _FAKE["Call"], _FAKE["KINDS"]

SECRET = "sk-very-secret-4711"
CAPITAL = Tool(
    "capital",
    "The capital of a country.",
    {
        "type": "object",
        "properties": {"country": {"type": "string", "description": "Its name."}},
        "required": ["country"],
        "additionalProperties": False,
    },
)


def asked(*messages: Message, max_tokens: int = 50) -> ChatRequest:
    return ChatRequest(
        (SystemMessage("Use functions."), *messages),
        (CAPITAL,),
        ReplyConstraints(names=("capital",), text=False),
        max_tokens=max_tokens,
    )


LIMA = ToolCall("capital", {"country": "Peru"}, "callAB001")
PAST = (
    UserMessage("Both capitals?"),
    AssistantMessage("first", (LIMA,)),
    ToolMessage(LIMA, "Lima"),
)
REQUEST = asked(UserMessage("What is the capital of Peru?"))
PERU = Call("capital", {"country": "Perú"}, "look it up")


def chat(*urls: str, silence: float = 5.0, key: str = "", model: str = "") -> OpenAIChat:
    return OpenAIChat(
        [
            OpenAIServer(place, model=model, key=key, silence_s=silence)
            for place in parse_endpoints(",".join(urls))
        ]
    )


def ask(one: OpenAIChat, request: ChatRequest = REQUEST) -> ChatReply:
    reply = one.reply(request, stop=Stop())
    assert reply is not None
    return reply


def function(reply: ChatReply) -> str:
    """Return the name of a reply's only call, "" where it has none."""
    return ", ".join(call.name for call in reply.calls)


# ---------------------------------------------------------------- a server that does its work
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "at once"])
@pytest.mark.parametrize("offers", [("tools",), ("json_schema",), ("grammar",), ()])
def test_a_call_is_read_however_the_server_holds_it_in_shape(
    offers: tuple[str, ...], whole: bool
) -> None:
    with ModelServer([PERU], offers=offers, whole=whole) as server:
        one = chat(server.url)
        answer = ask(one)
    assert [(call.name, call.arguments) for call in answer.calls] == [
        ("capital", {"country": "Perú"})
    ]
    assert answer.text == "look it up"
    assert answer.problem == ""
    assert (answer.prompt_tokens, answer.cached, answer.generated) == (100, 60, 7)
    assert one.syntax == (offers[0] if offers else "none")
    assert isinstance(one, ChatModel)
    assert (one.context, one.count(REQUEST)) == (None, None)
    assert one.name == f"tiny at {server.url.split('/')[2]}"


def test_what_a_server_offers_is_asked_once() -> None:
    with ModelServer([PERU], offers=("grammar",)) as server:
        one = chat(server.url)
        for _ in range(3):
            ask(one)
        assert server.probes == 3
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("offers", "field"),
    [("tools", "tools"), ("json_schema", "response_format"), ("grammar", "grammar")],
)
def test_only_what_the_server_offers_is_used(offers: str, field: str) -> None:
    with ModelServer([PERU], offers=(offers,)) as server:
        ask(chat(server.url))
        body = server.requests[0]
    shapes = {"tools", "response_format", "grammar"}
    assert shapes & body.keys() == {field}
    assert body["stream"] is True
    assert (body["max_tokens"], body["model"]) == (50, "tiny")


def test_past_steps_are_tool_calls_with_their_responses() -> None:
    request = asked(*PAST, AssistantMessage("nonsense"), UserMessage("Try again."))
    with ModelServer([PERU]) as server:
        ask(chat(server.url), request)
        turns = server.requests[0]["messages"]
    assert [turn["role"] for turn in turns] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert turns[2]["tool_calls"][0]["function"]["name"] == "capital"
    assert turns[3]["tool_call_id"] == turns[2]["tool_calls"][0]["id"]
    assert (turns[3]["content"], turns[5]["content"]) == ("Lima", "Try again.")


def test_without_tool_calls_the_functions_stand_in_the_system_turn_and_roles_alternate() -> None:
    request = asked(*PAST, UserMessage("Go on."))
    with ModelServer([PERU], offers=()) as server:
        ask(chat(server.url), request)
        turns = server.requests[0]["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert '"name": "capital"' in turns[0]["content"]
    assert turns[3]["content"] == "Response of capital: Lima\n\nGo on."


def test_tokens_are_counted_by_pieces_where_the_server_does_not_say() -> None:
    with ModelServer([PERU], usage=False) as server:
        answer = ask(chat(server.url))
    assert answer.prompt_tokens == 0
    assert answer.generated > 5


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "capital", "arguments": {"country": "Peru"}}\n```',
        'Sure! {"name": "capital", "arguments": "{\\"country\\": \\"Peru\\"}"} Anything else?',
        '<think>{"name": "no"}</think>{"name": "capital", "arguments": {"country": "Peru"}}',
    ],
)
def test_a_call_is_found_among_words(text: str) -> None:
    with ModelServer([text], offers=()) as server:
        answer = ask(chat(server.url))
    assert function(answer) == "capital"
    assert answer.calls[0].arguments == {"country": "Peru"}


@pytest.mark.parametrize("text", ["", "Lima.", "{", "[]", '{"name": 3}', '{"a":' * 3000, "\x00"])
@pytest.mark.parametrize("offers", [("tools",), ()])
def test_a_reply_without_a_call_says_what_is_wrong(text: str, offers: tuple[str, ...]) -> None:
    with ModelServer([text], offers=offers) as server:
        answer = ask(chat(server.url))
    assert answer.calls == ()
    assert answer.problem
    assert answer.raw.strip() == text.strip()


# ---------------------------------------------------------------- a server that does not
RECOVERS = [
    "!cut", "!cut-at-once", "!html", "!not-json", "!wrong-shape", "!event-not-json", "!429",
    "!500", "!503", "!empty", "!error-event", "!reset", "!deep", "!endless", "!huge",
    "!huge-line", "!huge-events",
]  # fmt: skip


@pytest.mark.parametrize("kind", RECOVERS)
def test_after_one_misbehaviour_the_next_try_succeeds(kind: str) -> None:
    with ModelServer([kind, PERU]) as server:
        answer = ask(chat(server.url))
    assert function(answer) == "capital"
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", [*RECOVERS, "!401", "!404", "!400", "!redirect", "!429-long"])
def test_a_server_that_always_misbehaves_ends_in_an_error_that_names_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_FIRST_REST_S", 0.01)
    with ModelServer([kind]) as server:
        one = chat(server.url)
        with pytest.raises(ServerError) as caught:
            ask(one)
        place = server.url.split("/")[2]
    assert place in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("kind", ["!401", "!404", "!400", "!redirect", "!429-long"])
def test_what_asking_again_cannot_mend_is_asked_once(kind: str) -> None:
    with ModelServer([kind]) as server:
        with pytest.raises(ServerError):
            ask(chat(server.url))
        assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["!too-long", "!too-long-event"])
def test_a_conversation_that_is_too_long_is_told_as_that_at_once(kind: str) -> None:
    with ModelServer([kind]) as server, pytest.raises(ContextError) as caught:
        ask(chat(server.url))
    assert "too many" in caught.value.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["!never", "!stall", "!comments"])
def test_a_server_that_says_nothing_is_left_after_the_silence(kind: str) -> None:
    with ModelServer([kind, PERU]) as server:
        started = time.monotonic()
        assert function(ask(chat(server.url, silence=0.3))) == "capital"
        assert time.monotonic() - started < 20  # the server would say nothing for ever


@pytest.mark.parametrize("kind", ["!never", "!stall", "!comments", "!endless"])
def test_stop_closes_the_stream_within_a_moment(kind: str) -> None:
    with ModelServer([kind]) as server:
        stop, one = Stop(), chat(server.url, silence=30)
        ended: list[float] = []
        request = asked(UserMessage("x"), max_tokens=10_000_000)

        def stop_it() -> None:
            server.begun.wait(10)
            ended.append(time.monotonic())
            stop.set()

        helper = threading.Thread(target=stop_it)
        helper.start()
        assert one.reply(request, stop=stop) is None
        took = time.monotonic() - ended[0]
        helper.join()
        assert took < 10  # a third of the silence that it would wait for
        if kind != "!never":
            assert server.client_left.wait(5)


def test_stop_ends_the_wait_for_a_server_that_is_left_out() -> None:
    with ModelServer(["!500"]) as server:
        servers = [
            OpenAIServer(one, model="", key="", silence_s=60) for one in parse_endpoints(server.url)
        ]
        stop = Stop(deadline=time.monotonic() + 0.4)
        started = time.monotonic()
        assert OpenAIChat(servers).reply(REQUEST, stop=stop) is None
        assert time.monotonic() - started < 20


def test_a_server_that_is_out_of_order_is_not_taken_for_one_that_offers_nothing() -> None:
    with ModelServer([PERU], failing_probes=3) as server:
        one = chat(server.url)
        assert function(ask(one)) == "capital"
    assert one.syntax == "tools"


# ---------------------------------------------------------------- several servers
def test_servers_take_turns() -> None:
    with ModelServer([PERU]) as first, ModelServer([PERU]) as second:
        one = chat(first.url, second.url)
        for _ in range(4):
            ask(one)
        assert (len(first.requests), len(second.requests)) == (2, 2)


def test_one_that_fails_is_left_out_for_a_while() -> None:
    now = [0.0]
    with ModelServer(["!500", PERU]) as ill, ModelServer([PERU]) as well:
        servers = [
            OpenAIServer(place, model="", key="", silence_s=5)
            for place in parse_endpoints(f"{ill.url},{well.url}")
        ]
        one = OpenAIChat(servers, clock=lambda: now[0])
        for _ in range(3):
            assert function(ask(one)) == "capital"
        assert (len(ill.requests), len(well.requests)) == (1, 3)
        now[0] = 60.0
        ask(one)
        ask(one)
        assert len(ill.requests) == 2


def test_one_that_refuses_the_key_leaves_the_work_to_the_other() -> None:
    with ModelServer(["!401"]) as shut, ModelServer([PERU]) as open_:
        one = chat(shut.url, open_.url)
        assert [function(ask(one)) for _ in range(3)] == ["capital"] * 3
        assert len(shut.requests) == 1


def test_one_that_is_not_there_leaves_the_work_to_the_other() -> None:
    with ModelServer([PERU]) as gone:
        url = gone.url
    with ModelServer([PERU]) as there:
        one = chat(url, there.url)
        one.check(stop=Stop())
        assert function(ask(one)) == "capital"


def test_nobody_there_is_told_before_anything_begins() -> None:
    with ModelServer([PERU]) as gone:
        url = gone.url
    with pytest.raises(ServerError) as caught:
        chat(url).check(stop=Stop())
    assert "cannot be reached" in caught.value.message


def test_a_server_that_names_no_models_leaves_another_its_share_of_the_time() -> None:
    with ModelServer([], models_after_s=20) as silent, ModelServer([PERU]) as well:
        one = chat(silent.url, well.url)
        started = time.monotonic()
        one.check(stop=Stop(), within_s=2)
        assert 0.9 < time.monotonic() - started < 1.9
        assert function(ask(one)) == "capital"


def test_a_server_without_a_list_of_models_works_where_the_model_is_named() -> None:
    with ModelServer([PERU], models=None) as server:
        named, unnamed = chat(server.url, model="mine"), chat(server.url)
        named.check(stop=Stop())
        assert function(ask(named)) == "capital"
        assert server.requests[0]["model"] == "mine"
        with pytest.raises(ServerError):
            unnamed.check(stop=Stop())


def test_a_server_that_lists_nothing_takes_any_name() -> None:
    with ModelServer([PERU], models=()) as server:
        one = chat(server.url, model="mine")
        one.check(stop=Stop())
        assert function(ask(one)) == "capital"


@pytest.mark.parametrize(
    ("named", "listed"), [("mine", "mine:latest"), ("mine:8b", "mine:8b"), ("mine:fast", "mine")]
)
def test_a_tag_behind_the_name_of_a_model_is_the_servers(named: str, listed: str) -> None:
    with ModelServer([PERU], models=(listed,)) as server:
        chat(server.url, model=named).check(stop=Stop())
        with pytest.raises(ServerError, match="has no model"):
            chat(server.url, model="mine:70b" if ":" in listed else "other").check(stop=Stop())


def test_of_several_servers_those_without_the_model_are_left_out() -> None:
    with ModelServer([PERU]) as other, ModelServer([PERU], models=("mine",)) as well:
        one = chat(other.url, well.url, model="mine")
        one.check(stop=Stop())
        assert [function(ask(one)) for _ in range(3)] == ["capital"] * 3
        assert other.requests == []


def test_threads_may_ask_at_the_same_time() -> None:
    found: list[str] = []
    with ModelServer([PERU]) as server:
        one = chat(server.url)
        threads = [
            threading.Thread(target=lambda: found.append(function(ask(one)))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["capital"] * 8


# ---------------------------------------------------------------- key and address
def test_the_key_is_sent_and_never_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with ModelServer([PERU, "!401"]) as server:
        one = chat(server.url, key=SECRET)
        ask(one)
        assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
        with pytest.raises(ServerError) as caught:  # the server says the key in its message
            ask(one)
    told = f"{caught.value.message} {caught.value.hint} {caught.value!r} {one!r} {one.name}"
    assert SECRET not in told + caplog.text
    assert "401" in caught.value.message


def test_a_model_is_named_behind_the_address_of_its_server() -> None:
    places = parse_endpoints("http://a:1/v1#qwen3:8b, http://b#Org/Name%20x,http://c")
    assert [place.model for place in places] == ["qwen3:8b", "Org/Name x", ""]
    assert places[1].url == "http://b/v1"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://host:8000/v1/", "http://host:8000/v1"),
        ("HTTPS://host/api/v1", "https://host/api/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_addresses_are_taken_as_people_write_them(text: str, url: str) -> None:
    assert [place.url for place in parse_endpoints(text)] == [url]


@pytest.mark.parametrize(
    "text", ["ftp://host", "http://", "http://host:99999999", "http://host?key=1", "http://[::1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoints(text)
    assert caught.value.hint


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoints(f"http://me:{SECRET}@host/v1")
    assert SECRET not in caught.value.message + caught.value.hint


def test_every_kind_of_misbehaviour_is_tried() -> None:
    others: set[Any] = {
        "!401",
        "!404",
        "!400",
        "!redirect",
        "!429-long",
        "!too-long",
        "!too-long-event",
    }
    assert set(KINDS) == {*RECOVERS, *others, "!never", "!stall", "!comments"}

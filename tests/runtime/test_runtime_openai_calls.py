"""Replies of servers with tools: several calls, odd streams, reasoning, what is broken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.server_requests import (
    BOTH,
    CALL,
    CAPITAL_OF_PERU,
    CURRENCY_OF_PERU,
    EITHER,
    PERU,
    SOL,
    TASK,
    Call,
    Reply,
    ask,
    called,
    request,
    tool,
)

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Tool,
    ToolCall,
    ToolMessage,
)
from toolsrv_runtime.models.openai import parse_endpoints
from toolsrv_runtime.models.openai.messages import CallMode
from toolsrv_runtime.models.openai.server import OpenAIServer


# ---------------------------------------------------------------- several calls
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "at once"])
def test_all_calls_are_taken_however_many_were_asked_for(whole: bool) -> None:
    two = Reply(calls=(PERU, SOL), finish="tool_calls")
    several = request(names=BOTH, text=False, calls=2)
    assert called(ask(two, several, whole=whole)) == [CAPITAL_OF_PERU, CURRENCY_OF_PERU]
    assert called(ask(two, CALL, whole=whole)) == [CAPITAL_OF_PERU, CURRENCY_OF_PERU]
    assert called(ask(PERU, several, whole=whole)) == [CAPITAL_OF_PERU]


@pytest.mark.parametrize("offers", [("json_schema",), ("grammar",), ()])
def test_several_calls_in_plain_messages(offers: tuple[str, ...]) -> None:
    calls = [{"name": one.function, "arguments": one.arguments} for one in (PERU, SOL)]
    text = json.dumps({"thought": "both", "calls": calls})
    reply = ask(text, request(names=BOTH, text=False, calls=2), offers=offers)
    assert called(reply) == [CAPITAL_OF_PERU, CURRENCY_OF_PERU]
    assert reply.text == "both"


def test_calls_of_a_reply_have_ids_that_no_earlier_call_has() -> None:
    old = ToolCall("capital", {"country": "Chile"}, "Ab3dEf6h9")
    asked = request(
        *TASK, AssistantMessage("", (old,)), ToolMessage(old, "Santiago"), names=BOTH, text=False
    )
    deltas = tuple(
        {"tool_calls": [{"index": at, "id": "Ab3dEf6h9", "function": function}]}
        for at, function in enumerate(
            {"name": name, "arguments": '{"country": "Perú"}'} for name in BOTH
        )
    )
    ids = [one.id for one in ask(Reply(deltas=deltas), asked).calls]
    assert len({*ids, old.id}) == 3
    assert all(len(one) == 9 and one.isalnum() for one in ids)


def marked(name: str) -> str:
    body = json.dumps({"name": name, "arguments": {"country": "Perú"}})
    return f"<tool_call>\n{body}\n</tool_call>"


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "at once"])
def test_a_further_call_that_a_server_left_in_the_text_is_taken(whole: bool) -> None:
    reply = ask(Reply(content=f"Both.\n{marked('currency')}", calls=(PERU,)), whole=whole)
    assert called(reply) == [CAPITAL_OF_PERU, CURRENCY_OF_PERU]
    assert (reply.text, reply.problem) == ("Both.", "")
    assert reply.dialect == "native; tool_call"


def test_an_echo_or_an_example_beside_a_call_is_no_further_one() -> None:
    assert called(ask(Reply(content=marked("capital"), calls=(PERU,)))) == [CAPITAL_OF_PERU]
    example = '```json\n{"name": "currency", "arguments": {"country": "Chile"}}\n```'
    reply = ask(Reply(content=example, calls=(PERU,)), whole=True)
    assert (called(reply), reply.text) == ([CAPITAL_OF_PERU], example)


def test_a_further_call_that_cannot_be_read_is_a_problem() -> None:
    broken = '<tool_call>\n{"name": "currency", "arguments": {"country": oops oops}}\n</tool_call>'
    reply = ask(Reply(content=broken, calls=(PERU,)), whole=True)
    assert called(reply) == [CAPITAL_OF_PERU]
    assert reply.problem
    assert "oops" in reply.text


# ---------------------------------------------------------------- presence of calls decides
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "at once"])
@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "length", ""])
@pytest.mark.parametrize("asked", [CALL, EITHER], ids=["required", "auto"])
@pytest.mark.parametrize("calls", [(PERU,), ()], ids=["a call", "no call"])
def test_the_presence_of_calls_decides_and_never_the_finish_reason(
    calls: tuple[Any, ...], asked: ChatRequest, finish: str, whole: bool
) -> None:
    reply = ask(Reply(content="It is Lima.", calls=calls, finish=finish), asked, whole=whole)
    assert called(reply) == ([CAPITAL_OF_PERU] if calls else [])
    assert reply.text == "It is Lima."
    assert reply.finish == ("length" if finish == "length" else "complete")
    if calls or asked is EITHER:
        assert reply.problem == ""
    elif finish == "length":
        assert "limit of tokens" in reply.problem
    else:
        assert reply.problem == "The reply calls no function"


@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
@pytest.mark.parametrize("asked", [CALL, EITHER], ids=["required", "auto"])
def test_an_empty_reply_is_never_taken_for_one(asked: ChatRequest, finish: str) -> None:
    reply = ask(Reply(finish=finish), asked)
    assert (reply.calls, reply.text.strip()) == ((), "")
    assert reply.problem


@pytest.mark.parametrize("asked", [CALL, EITHER], ids=["required", "auto"])
@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
@pytest.mark.parametrize(
    "text",
    [
        '{"name": "capital", "arguments": {"country": "Perú"}}',
        '```json\n{"name": "capital", "arguments": {"country": "Perú"}}\n```',
        marked("capital"),
        '[TOOL_CALLS][{"name": "capital", "arguments": {"country": "Perú"}}]',
        '[capital(country="Perú")]',
        "<think>Which?</think>" + marked("capital"),
        "<think>Which?\n" + marked("capital") + "\n</think>",
    ],
)
def test_a_call_that_stands_in_the_text_is_one(text: str, finish: str, asked: ChatRequest) -> None:
    reply = ask(Reply(content=text, finish=finish), asked, whole=True)
    assert called(reply) == [CAPITAL_OF_PERU]
    assert (reply.text, reply.problem) == ("", "")


def test_a_call_at_the_end_of_separate_reasoning_is_one() -> None:
    reply = ask(Reply(reasoning="Which?\n" + marked("capital")))
    assert (called(reply), reply.problem) == ([CAPITAL_OF_PERU], "")


def test_an_example_in_prose_is_no_call() -> None:
    text = "A call looks like `" + marked("capital").replace("\n", " ") + "`, but I know: Lima."
    reply = ask(text, EITHER, whole=True)
    assert (reply.calls, reply.text, reply.problem) == ((), text, "")


def test_a_function_that_is_not_there_or_not_allowed_is_a_problem_and_not_dropped() -> None:
    reply = ask(Reply(calls=(Call("climate", {"country": "Perú"}),)))
    assert (reply.calls, reply.text) == ((), 'climate({"country": "Per\\u00fa"})')
    assert "no tool 'climate'" in reply.problem
    reply = ask(Reply(calls=(SOL,)), request(names=("capital",), text=False))
    assert (reply.calls, reply.text) == ((), 'currency({"country": "Per\\u00fa"})')
    assert "cannot be called now" in reply.problem
    reply = ask(Reply(calls=(PERU, Call("climate"))))
    assert (called(reply), reply.text) == ([CAPITAL_OF_PERU], "climate({})")
    assert "no tool 'climate'" in reply.problem


@pytest.mark.parametrize("name", ["capital", "capital_city", "capital_city_of"])
@pytest.mark.parametrize("structured", [True, False], ids=["structured", "in the text"])
def test_a_name_that_begins_another_is_told_from_it(name: str, structured: bool) -> None:
    tools = [tool(one) for one in ("capital", "capital_city", "capital_city_of")]
    asked = request(tools=tools, names=tuple(one.name for one in tools), text=False)
    call = Call(name, {"country": "Perú"})
    text = json.dumps({"name": name, "arguments": call.arguments})
    assert called(ask(Reply(calls=(call,)) if structured else text, asked)) == [
        (name, {"country": "Perú"})
    ]


# ---------------------------------------------------------------- reasoning
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "at once"])
@pytest.mark.parametrize(
    ("content", "reasoning"),
    [("", "Which one?"), ("<think>Which one?</think>", ""), ("Which one?</think>", "")],
)
def test_reasoning_beside_a_call_is_neither_text_nor_lost(
    content: str, reasoning: str, whole: bool
) -> None:
    reply = ask(Reply(content=content, calls=(PERU,), reasoning=reasoning), whole=whole)
    assert (reply.reasoning, reply.text, reply.problem) == ("Which one?", "", "")
    assert called(reply) == [CAPITAL_OF_PERU]


def test_reasoning_that_was_parsed_into_the_arguments_is_a_problem() -> None:
    function = {"name": "capital", "arguments": 'Peru, so</think>{"country": "Perú"}'}
    deltas = ({"tool_calls": [{"index": 0, "id": "x", "function": function}]},)
    reply = ask(Reply(deltas=deltas))
    assert reply.calls == ()
    assert "arguments are not JSON" in reply.problem
    assert "Peru, so</think>" in reply.raw


# ---------------------------------------------------------------- streams
def pieces(*functions: dict[str, Any], **call: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"tool_calls": [{"index": 0, **call, "function": one}]} for one in functions)


TEXT = '{"country": "Perú"}'
ODD = {
    "name in pieces": pieces({"name": "cap"}, {"name": "ital"}, {"arguments": TEXT}),
    "name twice": pieces({"name": "capital"}, {"name": "capital", "arguments": TEXT}),
    "name with each piece": pieces(
        *({"name": "capital", "arguments": part} for part in (TEXT[:7], TEXT[7:]))
    ),
    "growing name": pieces({"name": "cap"}, {"name": "capital", "arguments": TEXT}),
    "growing arguments": pieces(
        {"name": "capital", "arguments": ""},
        *({"arguments": TEXT[:at]} for at in range(1, len(TEXT) + 1)),
    ),
    "arguments again at the end": pieces(
        {"name": "capital"}, {"arguments": TEXT[:7]}, {"arguments": TEXT[7:]}, {"arguments": TEXT}
    ),
    "empty object first": pieces(
        {"name": "capital", "arguments": "{}"}, {"arguments": TEXT[:7]}, {"arguments": TEXT[7:]}
    ),
    "an object": pieces({"name": "capital", "arguments": {"country": "Perú"}}),
    "no index": ({"tool_calls": [{"id": "a", "function": {"name": "capital", "arguments": TEXT}}]},),
    "a new id each time": tuple(
        {"tool_calls": [{"index": 0, "id": f"id{at}", "function": one}]}
        for at, one in enumerate(
            ({"name": "capital", "arguments": ""}, {"arguments": TEXT[:7]}, {"arguments": TEXT[7:]})
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_a_call_is_put_together_however_it_is_streamed(kind: str) -> None:
    reply = ask(Reply(deltas=ODD[kind], finish="tool_calls"))
    assert (called(reply), reply.problem) == ([CAPITAL_OF_PERU], "")


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    deltas = tuple(
        {"tool_calls": [{"index": 0, "id": name, "function": {"name": name, "arguments": TEXT}}]}
        for name in BOTH
    )
    assert called(ask(Reply(deltas=deltas))) == [CAPITAL_OF_PERU, CURRENCY_OF_PERU]


@pytest.mark.parametrize("arguments", ["", "null", "{}", '"{}"', None])
def test_a_function_without_parameters_may_come_without_arguments(arguments: str | None) -> None:
    now = Tool("now", "The time.", {"type": "object", "properties": {}})
    asked = request(tools=[now], names=("now",), text=False)
    function = {"name": "now"} if arguments is None else {"name": "now", "arguments": arguments}
    reply = ask(Reply(deltas=pieces(function)), asked)
    assert (called(reply), reply.problem) == ([("now", {})], "")


STREAMED: dict[str, tuple[str, CallMode]] = {
    "text": ("It is Lima — says “the atlas”.", "tools"),
    "reasoning": ("<think>Peru?</think>It is Lima.", "tools"),
    "call in the text": ('{"name": "capital", "arguments": {"country": "Perú"}}', "tools"),
    "call in words": (
        '<think>{"name": "no"}</think>So: {"name": "capital", "arguments": {"country": "Perú"}}',
        "none",
    ),
}


def event(delta: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


class Cut(httpx.AsyncByteStream):
    """A body in two parts."""

    def __init__(self, body: bytes, at: int) -> None:
        self._parts = body[:at], body[at:]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


def gathered(body: bytes, mode: CallMode, at: int = 0) -> ChatReply:
    server = OpenAIServer(
        parse_endpoints("http://127.0.0.1:9")[0], model="m", key="", silence_s=1.0
    )
    headers = {"content-type": "text/event-stream"}

    async def read() -> ChatReply:
        response = httpx.Response(200, headers=headers, stream=Cut(body, at))
        found = await server._gather(response, lambda: None, 10_000)
        return found.reply(EITHER, mode)

    return replace(asyncio.run(read()), generated=0)


@pytest.mark.parametrize("kind", STREAMED)
def test_text_cut_into_events_anywhere_is_the_same_reply(kind: str) -> None:
    text, mode = STREAMED[kind]
    whole = gathered(event({"content": text}) + END, mode)
    assert whole.problem == ""
    for at in range(len(text) + 1):
        cut = event({"content": text[:at]}) + event({"content": text[at:]}) + END
        assert gathered(cut, mode) == whole


def test_arguments_cut_into_events_anywhere_are_the_same_call() -> None:
    opened = {"index": 0, "id": "Ab3dEf6h9", "function": {"name": "capital", "arguments": ""}}
    start = event({"tool_calls": [opened]})
    for at in range(len(TEXT) + 1):
        parts = [{"index": 0, "function": {"arguments": part}} for part in (TEXT[:at], TEXT[at:])]
        reply = gathered(
            start + b"".join(event({"tool_calls": [one]}) for one in parts) + END, "tools"
        )
        assert (called(reply), reply.problem) == ([CAPITAL_OF_PERU], "")


def test_a_body_cut_at_every_byte_is_the_same_reply() -> None:
    body = event({"content": "Es wäre Lima. "}) + b"".join(map(event, ODD["name twice"])) + END
    whole = gathered(body, "tools")
    assert called(whole) == [CAPITAL_OF_PERU]
    for at in range(len(body) + 1):
        assert gathered(body, "tools", at) == whole


# ---------------------------------------------------------------- what is broken
MALFORMED = [
    '<tool_call>\n{"name": "capital", "arguments": {"country": oops oops}}\n</tool_call>',
    '[TOOL_CALLS][{"name": "capital", "argum',
    '{"name": "capital", "arguments": nothing',
    "<|tool_call|>",
]


@pytest.mark.parametrize("text", MALFORMED)
@pytest.mark.parametrize("asked", [CALL, EITHER], ids=["required", "auto"])
def test_a_malformed_reply_keeps_every_character(text: str, asked: ChatRequest) -> None:
    reply = ask(Reply(content=text, finish="tool_calls"), asked, whole=True)
    assert (reply.calls, reply.raw, reply.text) == ((), text, text)
    assert reply.problem or asked is EITHER


def test_a_repaired_call_says_so_and_is_never_one_that_the_limit_cut() -> None:
    text = '<tool_call>\n{"name": "capital", "arguments": {"country": "Perú"'
    reply = ask(Reply(content=text), whole=True)
    assert called(reply) == [CAPITAL_OF_PERU]
    assert reply.dialect.startswith("tool_call; ")
    cut = ask(Reply(content=text, finish="length"), whole=True)
    assert (cut.calls, cut.text) == ((), text)
    assert "limit of tokens" in cut.problem
    python = pieces({"name": "capital", "arguments": "{'country': 'Perú',}"})
    reply = ask(Reply(deltas=python))
    assert (called(reply), reply.dialect) == ([CAPITAL_OF_PERU], "native; repaired")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [('{"country": "Per', "not JSON"), ('["Peru"]', "a list"), ("3", "a number")],
)
def test_arguments_that_are_no_object_are_a_problem_and_kept(arguments: str, problem: str) -> None:
    reply = ask(Reply(deltas=pieces({"name": "capital", "arguments": arguments})))
    assert reply.calls == ()
    assert problem in reply.problem
    assert arguments in reply.raw


@pytest.mark.parametrize("offers", [("tools",), ()])
def test_a_call_that_the_limit_of_tokens_cut_is_not_made(offers: tuple[str, ...]) -> None:
    cut = '{"country": "Per'
    deltas = pieces({"name": "capital", "arguments": cut})
    if not offers:
        deltas = ({"content": f'{{"call": {{"name": "capital", "arguments": {cut}'},)
    reply = ask(Reply(deltas=deltas, finish="length"), offers=offers)
    assert (reply.calls, reply.finish) == ((), "length")
    assert "limit of tokens" in reply.problem

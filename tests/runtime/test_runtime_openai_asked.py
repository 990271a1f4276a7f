"""What servers are asked: choice of tools, ids, reasoning, schemas, plain messages."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.server_requests import (
    BOTH,
    CALL,
    CAPITAL,
    CAPITAL_OF_PERU,
    CURRENCY,
    EITHER,
    PERU,
    TASK,
    ModelServer,
    ask,
    called,
    chat,
    request,
)

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    ReplyConstraints,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.models.openai import messages as bodies
from toolsrv_runtime.stop import Stop


# ---------------------------------------------------------------- what is asked for
@pytest.mark.parametrize(
    ("expected", "choice", "listed", "parallel"),
    [
        (ReplyConstraints(names=BOTH), "auto", BOTH, False),
        (ReplyConstraints(names=BOTH, text=False), "required", BOTH, False),
        (ReplyConstraints(names=BOTH, text=False, calls=3), "required", BOTH, True),
        (ReplyConstraints(names=("capital",)), "auto", ("capital",), False),
        (ReplyConstraints(names=("capital",), text=False), "capital", BOTH, False),
        (ReplyConstraints(), "none", BOTH, False),
        (ReplyConstraints(schema={"type": "object"}), "none", BOTH, False),
    ],
)
def test_the_choice_of_tools_is_what_a_reply_may_be(
    expected: ReplyConstraints, choice: str, listed: tuple[str, ...], parallel: bool
) -> None:
    body = bodies.write_request(ChatRequest(TASK, (CAPITAL, CURRENCY), expected), "tools", "m")
    if choice == "capital":
        assert body["tool_choice"] == {"type": "function", "function": {"name": "capital"}}
    else:
        assert body["tool_choice"] == choice
    assert tuple(one["function"]["name"] for one in body["tools"]) == listed
    assert body["parallel_tool_calls"] is parallel


def test_without_tools_nothing_is_said_of_them() -> None:
    body = bodies.write_request(ChatRequest(TASK), "tools", "m")
    assert not body.keys() & {"tools", "tool_choice", "parallel_tool_calls", "response_format"}


def test_calls_and_results_are_written_as_every_server_takes_them() -> None:
    first = ToolCall("capital", {"country": "Perú", "also": {"b": 1, "a": [True, None]}}, "call_01")
    second = ToolCall("currency", {"country": "Perú"}, "Ab3dEf6h9")
    history = (
        *TASK,
        UserMessage("Both, please."),
        AssistantMessage("", (first, second)),
        ToolMessage(second, "sol"),
        ToolMessage(first, "Lima"),
        AssistantMessage("So far."),
    )
    turns = bodies.write_request(request(*history, names=BOTH), "tools", "m")["messages"]
    assert [one["role"] for one in turns] == [
        "system", "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert turns[1]["content"] == "Capital and currency of Peru?\n\nBoth, please."
    assert (turns[2]["content"], "tool_calls" in turns[5]) == ("", False)
    calls = turns[2]["tool_calls"]
    assert [len(one["id"]) for one in calls] == [9, 9]
    assert all(one["id"].isalnum() for one in calls)
    assert calls[1]["id"] == "Ab3dEf6h9"
    written = calls[0]["function"]["arguments"]
    assert written == '{"country": "Perú", "also": {"b": 1, "a": [true, null]}}'
    assert [(one["tool_call_id"], one["name"], one["content"]) for one in turns[3:5]] == [
        ("Ab3dEf6h9", "currency", "sol"),
        (calls[0]["id"], "capital", "Lima"),
    ]
    again = bodies.write_request(request(*history, names=BOTH), "tools", "m")["messages"]
    assert again == turns


def test_ids_are_unique_and_a_result_without_a_call_is_told_by_the_user() -> None:
    same = ToolCall("capital", {"country": "Perú"}, "Ab3dEf6h9")
    history = (
        *TASK,
        AssistantMessage("", (same,)),
        ToolMessage(same, "Lima"),
        AssistantMessage("", (same,)),
        ToolMessage(same, "Lima again"),
        ToolMessage(same, "once more"),
    )
    turns = bodies.write_request(request(*history, names=BOTH), "tools", "m")["messages"]
    ids = [one["tool_calls"][0]["id"] for one in turns if "tool_calls" in one]
    assert len(set(ids)) == 2
    assert [one["tool_call_id"] for one in turns if one["role"] == "tool"] == ids
    assert turns[-1] == {"role": "user", "content": "Response of capital: once more"}


@pytest.mark.parametrize(("reasoning", "off"), [(0, True), (300, False)])
def test_reasoning_is_turned_off_or_given_tokens_of_its_own(reasoning: int, off: bool) -> None:
    body = bodies.write_request(request(names=BOTH, reasoning=reasoning), "tools", "m")
    assert body["max_tokens"] == 50 + reasoning
    assert (body.get("chat_template_kwargs") == {"enable_thinking": False}) is off


@pytest.mark.parametrize("field", ["parallel_tool_calls", "chat_template_kwargs", "seed"])
def test_a_field_that_a_server_refuses_is_left_out_from_then_on(field: str) -> None:
    with ModelServer([PERU], refuses=(field,)) as server:
        one = chat(server.url)
        for _ in range(2):
            reply = one.reply(CALL, stop=Stop())
            assert reply is not None
            assert called(reply) == [CAPITAL_OF_PERU]
        assert (len(server.refused), one.syntax) == (1, "tools")
        assert all(field not in body for body in server.requests)


# ---------------------------------------------------------------- JSON of a schema
SCHEMA = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}


@pytest.mark.parametrize(
    ("offers", "field"),
    [("tools", "response_format"), ("json_schema", "response_format"), ("grammar", "grammar")],
)
def test_a_schema_is_held_and_said(offers: str, field: str) -> None:
    asked = request(schema=SCHEMA)
    with ModelServer(['{"yes": true}'], offers=(offers,)) as server:
        reply = chat(server.url).reply(asked, stop=Stop())
        body = server.requests[0]
    assert reply is not None
    assert (json.loads(reply.text), reply.problem, reply.calls) == ({"yes": True}, "", ())
    assert body[field]
    assert '"yes"' in body["messages"][-1]["content"]
    if field == "response_format":
        assert body[field]["json_schema"]["schema"] == SCHEMA


def test_a_server_without_schemas_is_told_the_schema_in_words() -> None:
    with ModelServer(['```json\n{"yes": true}\n```'], refuses=("response_format",)) as server:
        one = chat(server.url)
        for _ in range(2):
            reply = one.reply(request(schema=SCHEMA), stop=Stop())
            assert reply is not None
            assert (reply.text, reply.problem) == ('{"yes": true}', "")
        assert len(server.refused) == 1
        assert all('"yes"' in one["messages"][-1]["content"] for one in server.requests)


def test_a_reply_that_is_not_json_where_json_was_wanted_says_so() -> None:
    assert ask("Yes.", request(schema=SCHEMA)).problem == "The reply is not JSON"


# ---------------------------------------------------------------- plain messages
def test_the_shape_of_a_reply_in_plain_messages_is_what_it_may_be() -> None:
    def schema(**expected: Any) -> dict[str, Any]:
        named = bodies.write_request(request(**expected), "json_schema", "m")["response_format"]
        found: dict[str, Any] = named["json_schema"]["schema"]["properties"]
        return found

    def names(shape: dict[str, Any]) -> list[str]:
        return [one["properties"]["name"]["enum"][0] for one in shape["anyOf"]]

    assert names(schema(names=BOTH, text=False)["call"]) == [*BOTH]
    assert names(schema(names=("currency",), text=False)["call"]) == ["currency"]
    assert names(schema(names=BOTH)["call"]) == [*BOTH, "reply_in_words"]
    several = schema(names=BOTH, text=False, calls=3)["calls"]
    assert (names(several["items"]), several["minItems"], several["maxItems"]) == ([*BOTH], 1, 3)
    assert "response_format" not in bodies.write_request(request(), "json_schema", "m")


@pytest.mark.parametrize("offers", [("json_schema",), ("grammar",), ()])
def test_text_where_a_reply_may_be_text(offers: tuple[str, ...]) -> None:
    words = {"name": "reply_in_words", "arguments": {"text": "It is Lima."}}
    for said in (json.dumps({"thought": "known", "call": words}), "It is Lima."):
        reply = ask(said, EITHER, offers=offers)
        assert (reply.text, reply.calls, reply.problem) == ("It is Lima.", (), "")
    assert ask("It is Lima.", CALL, offers=offers).problem == "The reply is not one JSON object"
    assert ask("Lima.", request(), offers=offers).text == "Lima."


def test_prompts_of_a_conversation_in_plain_messages_begin_alike() -> None:
    first, *others = (
        bodies.write_request(one, "none", "m")["messages"]
        for one in (
            CALL,
            EITHER,
            request(names=("capital",), text=False),
            request(),
            request(schema=SCHEMA),
        )
    )
    for turns in others:
        assert turns[0] == first[0]
        assert turns[1]["content"].startswith(first[1]["content"])
        assert turns[1] != first[1]


def test_the_context_is_what_the_list_of_models_says() -> None:
    with ModelServer([PERU], max_model_len=4096) as server:
        one = chat(server.url)
        one.check(stop=Stop(), within_s=math.inf)
        assert one.context == 4096

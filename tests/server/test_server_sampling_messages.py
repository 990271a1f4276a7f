"""Requests to the MCP client's model: as tools with calls and results, or as plain messages."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.types import CreateMessageResult, CreateMessageResultWithTools, TextContent, ToolUseContent

from toolsrv.mcp_server.sampling import ModelQuestion
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (Tool("time", "The time.", PARAMETERS), Tool("weather", "The weather.", PARAMETERS))
BOTH = ("time", "weather")
FIRST, SECOND = ToolCall("time", {"city": "Lima"}), ToolCall("weather", {"city": "Lima"})
HISTORY = (
    SystemMessage("Use tools."),
    UserMessage("Time and weather in Lima?"),
    AssistantMessage("", (FIRST, SECOND)),
    ToolMessage(FIRST, "12:00"),
    ToolMessage(SECOND, "fog \ud83d"),
    UserMessage("Go on."),
)


def question(*, tools: bool, **expected: Any) -> ModelQuestion:
    return ModelQuestion(ChatRequest(HISTORY, TOOLS, ReplyConstraints(**expected)), tools=tools)


def blocks(message: Any) -> list[str]:
    return [one.type for one in message.content_as_list]


def test_results_of_one_turn_stand_alone_in_one_message() -> None:
    params = question(tools=True, names=BOTH).request().params
    assert params.system_prompt == "Use tools."
    assert [(one.role, blocks(one)) for one in params.messages] == [
        ("user", ["text"]),
        ("assistant", ["tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result"]),
        ("user", ["text"]),
    ]
    _, calls, results, _ = (one.content_as_list for one in params.messages)
    assert [one.tool_use_id for one in results if one.type == "tool_result"] == [
        one.id for one in calls if one.type == "tool_use"
    ]
    assert "\ufffd" in params.model_dump_json()


@pytest.mark.parametrize(
    ("expected", "mode", "listed"),
    [
        ({"names": BOTH}, "auto", BOTH),
        ({"names": BOTH, "text": False}, "required", BOTH),
        ({"names": ("time",), "text": False}, "required", ("time",)),
        ({}, "none", BOTH),
        ({"schema": {"type": "object"}}, "none", BOTH),
    ],
)
def test_the_mode_is_what_a_reply_may_be(
    expected: dict[str, Any], mode: str, listed: tuple[str, ...]
) -> None:
    params = question(tools=True, **expected).request().params
    assert params.tool_choice is not None
    assert params.tool_choice.mode == mode
    assert tuple(one.name for one in params.tools or ()) == listed
    last = params.messages[-1].content_as_list[0]
    assert isinstance(last, TextContent)
    assert ("JSON schema" in last.text) is ("schema" in expected)


def test_a_client_without_tools_gets_plain_messages() -> None:
    params = question(tools=False, names=BOTH, text=False).request().params
    assert (params.tools, params.tool_choice) == (None, None)
    assert '"name": "weather"' in (params.system_prompt or "")
    assert [(one.role, blocks(one)) for one in params.messages] == [
        ("user", ["text"]), ("assistant", ["text"]), ("user", ["text"]),
    ]  # fmt: skip


def reply(asked: ModelQuestion, response: object) -> ChatReply:
    asked.answer(response)
    assert asked.reply is not None
    assert not asked.open
    return asked.reply


def test_text_and_calls_of_a_reply_are_read_whatever_the_stop_reason() -> None:
    call = ToolUseContent(name="weather", id="toolu_1", input={"city": "Cusco"})
    response = CreateMessageResultWithTools(
        role="assistant", content=[TextContent(text="next"), call], model="m", stop_reason="endTurn"
    )
    found = reply(question(tools=True, names=BOTH, text=False), response)
    assert (found.text, found.problem, found.finish) == ("next", "", "complete")
    assert [(one.name, one.arguments, len(one.id)) for one in found.calls] == [
        ("weather", {"city": "Cusco"}, 9)
    ]


def test_a_reply_without_a_call_where_one_is_required_says_so() -> None:
    response = CreateMessageResult(
        role="assistant", content=TextContent(text="Foggy."), model="m", stop_reason="maxTokens"
    )
    found = reply(question(tools=True, names=BOTH), response)
    assert (found.text, found.problem, found.finish) == ("Foggy.", "", "length")
    assert reply(question(tools=True, names=BOTH, text=False), response).problem


def test_a_reply_of_nothing_that_is_read_is_an_error() -> None:
    asked = question(tools=True, names=BOTH)
    asked.answer(object())
    assert (asked.reply, asked.open) == (None, False)
    assert asked.error

"""What a request expects of a model at a server, which no grammar holds."""

from __future__ import annotations

import json

import pytest

from toolsrv_runtime.contract.models import (
    ChatReply,
    ChatRequest,
    ReplyConstraints,
    Tool,
    ToolCall,
    UserMessage,
)
from toolsrv_runtime.models.conversation import RawCall, parse_native_reply
from toolsrv_runtime.models.openai.messages import PROBED_MODES, CallMode, write_request

WEATHER = Tool(
    "weather",
    "Says the weather",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
OSLO = ToolCall("weather", {"city": "Oslo"})


def asked(expected: ReplyConstraints) -> ChatRequest:
    return ChatRequest((UserMessage("the weather in Oslo"),), (WEATHER,), expected)


@pytest.mark.parametrize("mode", PROBED_MODES)
def test_optional_arguments_that_are_to_be_left_out_are_not_shown_to_a_server(
    mode: CallMode,
) -> None:
    shown = json.dumps(write_request(asked(ReplyConstraints(("weather",), text=False)), mode, "m"))
    held = ReplyConstraints(("weather",), required_only=("weather",), text=False)
    hidden = json.dumps(write_request(asked(held), mode, "m"))
    assert "unit" in shown
    assert "unit" not in hidden
    assert "city" in hidden


def replied(arguments: str, *excluded: ToolCall) -> ChatReply:
    expected = ReplyConstraints(("weather",), text=False, excluded=excluded)
    return parse_native_reply(asked(expected), "", [RawCall("weather", [arguments])])


def test_a_server_that_makes_an_excluded_call_is_corrected() -> None:
    assert "before" in replied('{"city": "Oslo"}', OSLO).problem
    assert replied('{"city": "Oslo"}').problem == ""
    assert replied('{"city": "Bergen"}', OSLO).problem == ""

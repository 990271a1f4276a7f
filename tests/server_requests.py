"""Requests with two tools, put to the fake model server: for tests of chat models behind servers."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolsrv_runtime.contract.models import (
    ChatReply,
    ChatRequest,
    Message,
    ReplyConstraints,
    SystemMessage,
    Tool,
    UserMessage,
)
from toolsrv_runtime.models.openai import parse_endpoints
from toolsrv_runtime.models.openai.chat import OpenAIChat
from toolsrv_runtime.models.openai.server import OpenAIServer
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parent / "model_server.py"))
ModelServer, Call, Reply = _FAKE["ModelServer"], _FAKE["Call"], _FAKE["Reply"]


def tool(name: str) -> Tool:
    properties = {"country": {"type": "string", "description": "Its name."}}
    return Tool(
        name,
        f"The {name} of a country.",
        {
            "type": "object",
            "properties": properties,
            "required": ["country"],
            "additionalProperties": False,
        },
    )


CAPITAL, CURRENCY = tool("capital"), tool("currency")
BOTH = ("capital", "currency")
TASK = (SystemMessage("Use functions."), UserMessage("Capital and currency of Peru?"))
PERU, SOL = Call("capital", {"country": "Perú"}), Call("currency", {"country": "Perú"})


def request(
    *messages: Message, tools: Sequence[Tool] = (CAPITAL, CURRENCY), **expected: Any
) -> Any:
    return ChatRequest(messages or TASK, tuple(tools), ReplyConstraints(**expected), max_tokens=50)


CALL = request(names=BOTH, text=False)
EITHER = request(names=BOTH)


def chat(url: str) -> OpenAIChat:
    return OpenAIChat([OpenAIServer(parse_endpoints(url)[0], model="", key="", silence_s=5.0)])


def ask(
    script: object, asked: ChatRequest = CALL, *, offers: Sequence[str] = ("tools",), **kind: Any
) -> ChatReply:
    with ModelServer([script], offers=offers, **kind) as server:
        reply = chat(server.url).reply(asked, stop=Stop())
    assert reply is not None
    return reply


def called(reply: ChatReply) -> list[tuple[str, dict[str, Any]]]:
    return [(one.name, one.arguments) for one in reply.calls]


CAPITAL_OF_PERU, CURRENCY_OF_PERU = (
    ("capital", {"country": "Perú"}),
    ("currency", {"country": "Perú"}),
)

"""A request as the body of ``chat/completions``, in each way that a call is held in shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.models import textual
from toolsrv_runtime.models.conversation import allowed, normalized, without_optional
from toolsrv_runtime.models.replies import arguments_json

Mode = Literal["tools", "json_schema", "grammar", "none"]
"""How a call is held in shape: the server's own tool calls, ``response_format`` with a JSON
schema, a GBNF grammar, or nothing but the instructions."""

PROBED: tuple[Mode, ...] = ("tools", "json_schema", "grammar")
"""In this order a server is asked what it offers; ``none`` is what is left."""

OPTIONAL = ("parallel_tool_calls", "chat_template_kwargs", "seed", "temperature", "top_p")
"""Fields that are left out for a server whose refusal names them."""

_PROBE = ChatRequest(
    messages=(
        SystemMessage("You are friendly."),
        UserMessage("Say hello, by calling the function report with the status ready."),
    ),
    tools=(
        Tool(
            "report",
            "Reports a status.",
            {
                "type": "object",
                "properties": {"status": {"type": "string", "enum": ["ready"]}},
                "required": ["status"],
                "additionalProperties": False,
            },
        ),
    ),
    expected=Expected(names=("report",), text=False),
    max_tokens=200,
)


def probe(mode: Mode, model: str) -> dict[str, Any]:
    """Return a small request whose reply shows whether the server holds calls in shape.

    Tool calls are asked for in words too: a server counts that has them and leaves the choice to
    the model. The other two contradict the words, so that only an enforced shape brings the call.
    """
    body = write(_PROBE, mode, model)
    if mode == "tools":
        body["tool_choice"] = "required"  # some offer tool calls only where the function is named
    else:
        body["messages"] = [{"role": "user", "content": "Say hello."}]
    return body


def probe_request() -> ChatRequest:
    """Return the request that ``probe`` writes."""
    return _PROBE


def is_probe_call(reply: ChatReply) -> bool:
    """Whether a reply to ``probe`` is the call that was asked for."""
    return any(one.name == "report" and "ready" in one.arguments.values() for one in reply.calls)


def write(request: ChatRequest, mode: Mode, model: str) -> dict[str, Any]:
    """Return the body; the reply is streamed and ends with the count of its tokens.

    Reasoning has tokens of its own beside those of the reply; where it may have none, the field
    is sent by which vLLM, SGLang and llama-server turn it off.
    """
    request = without_optional(request)
    expected = request.expected
    body: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_tokens + expected.reasoning,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed % 2**31,
    }
    if not expected.reasoning:
        body["chat_template_kwargs"] = {"enable_thinking": False}
    if mode == "tools":
        body |= {"messages": _turns(request)} | _tools(request)
    else:
        body["messages"] = textual.messages(request)
    schema = textual.reply_schema(request)
    if schema is None or mode == "none" or (mode == "tools" and expected.schema is None):
        return body
    if mode == "grammar":
        return body | {"grammar": _gbnf(schema)}
    named = {"name": "reply", "strict": True, "schema": schema}
    return body | {"response_format": {"type": "json_schema", "json_schema": named}}


def optional(request: ChatRequest, mode: Mode) -> tuple[str, ...]:
    """Return the fields of a body without which the request can be made all the same."""
    if mode == "tools" and request.expected.schema is not None:
        return (*OPTIONAL, "response_format")  # the schema stands in the conversation too
    return OPTIONAL


def _tools(request: ChatRequest) -> dict[str, Any]:
    """Return the fields about tools: which there are, and which of them are to be called.

    A choice among several of them is kept to by listing those alone: no server in use knows a
    field for that.
    """
    if not request.tools:
        return {}
    expected, offered = request.expected, allowed(request)
    choice: Any = "auto" if expected.text else "required"
    listed: Sequence[Tool] = offered
    if not offered:
        choice, listed = "none", request.tools
    elif len(offered) == 1 and not expected.text:
        choice, listed = {"type": "function", "function": {"name": offered[0].name}}, request.tools
    return {
        "tools": [one.to_json() for one in listed],
        "tool_choice": choice,
        "parallel_tool_calls": expected.calls > 1,
    }


def _turns(request: ChatRequest) -> list[textual.Turn]:
    """Return the conversation with its calls as tool calls."""
    messages: list[Message] = list(request.messages)
    if note := textual.last_note(request, functions=False):
        messages.append(UserMessage(note))
    return [_turn(one) for one in normalized(messages)]


def _turn(message: Message) -> textual.Turn:
    match message:
        case SystemMessage(text):
            return {"role": "system", "content": text}
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call, text):
            return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}
        case AssistantMessage(text, calls):
            turn: textual.Turn = {"role": "assistant", "content": text}
            if calls:  # an empty list is not the same: templates ask whether there is one
                turn["tool_calls"] = [
                    {
                        "id": one.id,
                        "type": "function",
                        "function": {"name": one.name, "arguments": arguments_json(one.arguments)},
                    }
                    for one in calls
                ]
            return turn


def _gbnf(schema: dict[str, Any]) -> str:
    from llama_cpp.llama_grammar import json_schema_to_gbnf  # noqa: PLC0415 - heavy

    grammar: str = json_schema_to_gbnf(json.dumps(schema))
    return grammar

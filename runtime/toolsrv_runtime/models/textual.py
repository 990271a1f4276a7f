"""Tool calls in plain messages, for chat models without native tool calls.

The tools stand in the system turn, a call is a reply of one JSON object, and a result is a user
turn. A server that constrains replies by a JSON schema or a grammar gets ``reply_schema``. What
depends on one request stands in the last turn, so the prompts of a conversation share a prefix.
Knows no server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.models import conversation
from toolsrv_runtime.models.conversation import allowed_tools, normalize_conversation, response_text
from toolsrv_runtime.templates.normalise import normalise_call, offered_tool

MessageDict = dict[str, Any]
"""A message as servers take it: ``role`` and ``content``."""

THOUGHT_LIMIT = 200
"""Characters of a thought, where the shape of a reply is enforced."""

DIALECT = "json"

_BRACES = 100
"""Braces in a reply that may begin its object: each may have to be read to the reply's end."""

_REPLY = "reply_in_words"
"""The function that stands for plain text, where a reply has to be a call."""

_INSTRUCTION = (
    "\nReply with one JSON object and nothing else: "
    '{"thought": "what you do next and why", "call": {"name": "a function\'s name", '
    '"arguments": {…}}}\n'
    "Functions:\n"
)


def render_messages(request: ChatRequest) -> list[MessageDict]:
    """Return the conversation in the roles system, user and assistant, the last two in turn."""
    turns: list[Message] = []
    listing = "\n".join(
        json.dumps(one.to_json()["function"], ensure_ascii=False) for one in request.tools
    )
    if listing:
        turns.append(SystemMessage(_INSTRUCTION + listing))
    for message in normalize_conversation(request.messages):
        if isinstance(message, SystemMessage) and turns:
            turns = [SystemMessage(message.text + _INSTRUCTION + listing)]
        elif isinstance(message, AssistantMessage):
            turns.append(AssistantMessage(_written(message)))
        elif isinstance(message, ToolMessage):
            turns.append(UserMessage(response_text(message)))
        else:
            turns.append(message)
    if note := final_instruction(request, functions=True):
        turns.append(UserMessage(note))
    return [_turn(one) for one in normalize_conversation(turns)]


def final_instruction(request: ChatRequest, *, functions: bool) -> str:
    """Return what the end of a conversation says of the reply, "" where nothing is special.

    ``functions``: it also says what may be called, for models that are not told so otherwise.
    """
    expected = request.expected
    if expected.schema is not None:
        schema = json.dumps(expected.schema, ensure_ascii=False)
        return f"Reply with one JSON value of this JSON schema and nothing else: {schema}"
    if not functions or not request.tools:
        return ""
    if not expected.names:
        return "Reply in words now, not with a JSON object: no function may be called."
    said = []
    if len(offered := allowed_tools(request)) < len(request.tools):
        said.append(f"Only these functions may be called now: {_names(offered)}.")
    if expected.calls > 1:
        said.append(
            f"Up to {expected.calls} functions may be called at once: "
            '{"thought": "…", "calls": [{"name": "…", "arguments": {…}}, …]}.'
        )
    if expected.text:
        said.append(
            "To reply in words instead of calling a function: "
            f'{{"thought": "…", "call": {{"name": "{_REPLY}", "arguments": {{"text": "…"}}}}}}.'
        )
    return " ".join(said)


def reply_schema(request: ChatRequest) -> dict[str, Any] | None:
    """Return the JSON schema of the reply: a thought, and calls of the functions allowed.

    The root is an object, as some servers demand. None where the reply is free text.
    """
    expected = request.expected
    if expected.schema is not None:
        return expected.schema
    if not expected.names:
        return None
    calls = [_call_schema(one.name, _bare(one.parameters)) for one in allowed_tools(request)]
    if expected.text:
        text = {"type": "object", "properties": {"text": {"type": "string"}}}
        calls.append(_call_schema(_REPLY, _closed(text)))
    thought = {"type": "string", "maxLength": THOUGHT_LIMIT}
    one_call: dict[str, Any] = {"anyOf": calls}
    if expected.calls == 1:
        return _closed({"type": "object", "properties": {"thought": thought, "call": one_call}})
    several = {"type": "array", "items": one_call, "minItems": 1, "maxItems": expected.calls}
    return _closed({"type": "object", "properties": {"thought": thought, "calls": several}})


def parse_reply(
    request: ChatRequest, text: str, *, reasoning: str = "", finish: FinishReason = "complete"
) -> ChatReply:
    """Return a reply to ``messages``; its ``problem`` says why it cannot be used.

    Words around the JSON object are passed over. A reply that is no such object is read as the
    text or the calls in another syntax that it may be.
    """
    reply = conversation.parse_text_reply(text, reasoning=reasoning, finish=finish)
    if request.expected.schema is not None:
        reply = replace(reply, text=conversation.json_text(reply.text))
    if not request.tools or request.expected.schema is not None:
        return conversation.validate_reply(request, reply)
    value = _object(reply.text)
    found = None if value is None else _from_object(request, reply, value)
    if found is None:
        found = conversation.extract_text_calls(request, reply)
    if found is None and request.expected.names and not request.expected.text:
        found = replace(reply, problem=_no_object(value))
    return conversation.validate_reply(request, found or reply)


def _from_object(
    request: ChatRequest, reply: ChatReply, value: Mapping[str, Any]
) -> ChatReply | None:
    """Return the calls or the text of a JSON object, None where it is no reply of this syntax."""
    listed = value.get("calls")
    if not isinstance(listed, list):
        listed = [value.get("call", value)]  # some leave the inner object out
    calls, texts, problems = list[ToolCall](), list[str](), list[str]()
    for one in listed:
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str) or not name:
            return None
        arguments = one.get("arguments")
        if name == _REPLY and isinstance(arguments, dict) and "text" in arguments:
            texts.append(str(arguments["text"]))
            continue
        if one is value and request.expected.text and offered_tool(name, request) is None:
            return None  # an object that has a name, in a reply that may be text
        call, problem = normalise_call(name, arguments, request)
        if call is None:
            problems.append(problem)
        else:
            calls.append(call)
    if problems:
        return replace(reply, calls=tuple(calls), problem="; ".join(problems), dialect=DIALECT)
    thought = value.get("thought")
    if not texts and isinstance(thought, str):
        texts = [thought]
    return replace(reply, text="\n".join(texts), calls=tuple(calls), dialect=DIALECT)


def _no_object(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return "The reply is not one JSON object"
    return 'The "name" of the reply is not a function\'s name'


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text; one that holds nothing only where there is no other."""
    decoder, empty, at = json.JSONDecoder(strict=False), None, -1
    for _ in range(_BRACES):
        at = text.find("{", at + 1)
        if at < 0:
            break
        try:
            value: dict[str, Any] = decoder.raw_decode(text, at)[0]
        except (ValueError, RecursionError):
            continue
        if value:
            return value
        empty = value
    return empty


def _written(message: AssistantMessage) -> str:
    """Return an assistant turn as the model should have written it."""
    if not message.calls:
        return message.text
    calls = [{"name": one.name, "arguments": one.arguments} for one in message.calls]
    value: dict[str, Any] = {"thought": message.text}
    value |= {"call": calls[0]} if len(calls) == 1 else {"calls": calls}
    return json.dumps(value, ensure_ascii=False)


def _turn(message: Message) -> MessageDict:
    roles = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant"}
    return {"role": roles[type(message)], "content": message.text}


def _names(tools: Any) -> str:
    return ", ".join(one.name for one in tools)


def _call_schema(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    named = {"type": "string", "enum": [name]}
    return _closed({"type": "object", "properties": {"name": named, "arguments": arguments}})


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments without its words: they stand in the system turn."""
    properties = {
        key: {name: one for name, one in value.items() if name != "description"}
        if isinstance(value, dict)
        else value
        for key, value in schema.get("properties", {}).items()
    }
    return {**schema, "properties": properties}

"""How four vendors' model APIs spell a request with tools, and a reply.

Each protocol reads a request body into ``Request`` and writes a ``Reply`` as one body or as
server-sent events ``(name, data)``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SEARCHES = ("tool_search", "ToolSearch")
"""Tools by which clients show others that they have deferred."""
BRIDGE = "tool_call"
"""The tool of Qwen Code that calls a deferred one."""
MODEL = "scripted"
MODELS = {"object": "list", "models": [], "data": [{"id": MODEL, "object": "model"}]}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Tool:
    """A tool as the model is given it.

    ``namespace`` groups it in OpenAI's responses; a ``deferred`` one is called through ``BRIDGE``.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    namespace: str = ""
    deferred: bool = False

    @property
    def full_name(self) -> str:
        """The name, with the namespace before it."""
        return _full(self.namespace, self.name)

    @property
    def properties(self) -> dict[str, Any]:
        """The parameters by name."""
        found: dict[str, Any] = self.schema.get("properties") or {}
        return found


@dataclass(frozen=True)
class Result:
    """A tool's result as the model is given it."""

    tool: str
    text: str


@dataclass(frozen=True)
class Request:
    """What a request tells the model; ``text`` is its whole body, as JSON."""

    tools: Mapping[str, Tool]
    results: tuple[Result, ...]
    text: str


@dataclass(frozen=True)
class Reply:
    """A call of a tool, or a text."""

    text: str = ""
    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:20]}")


@dataclass(frozen=True)
class Protocol:
    """One vendor's API."""

    read: Callable[[Mapping[str, Any]], Request]
    whole: Callable[[Reply], Any]
    events: Callable[[Reply], Iterator[tuple[str, Any]]]


def protocol(path: str) -> Protocol | None:
    """Return the protocol of a path, None for another path."""
    return next((one for end, one in _PATHS.items() if path.endswith(end)), None)


def _full(namespace: str, name: str) -> str:
    return f"{namespace}__{name}" if namespace else name


def _request(
    body: Mapping[str, Any], tools: list[Tool], names: Mapping[str, str], results: dict[str, Any]
) -> Request:
    read = tuple(Result(names.get(key, key), _flat(value)) for key, value in results.items())
    shown = [one for result in read if result.tool in SEARCHES for one in _deferred(result.text)]
    offered = {one.full_name: one for one in (*shown, *tools)}
    return Request(offered, read, json.dumps(body))


def _deferred(text: str) -> Iterator[Tool]:
    """Yield the tools that a search for deferred ones has found."""
    for found in re.findall(r"<function>(\{.*?\})</function>", text, re.DOTALL):
        value = json.loads(found)
        schema = value.get("parameters") or value.get("parametersJsonSchema") or {}
        yield Tool(value["name"], value.get("description", ""), schema, deferred=True)


def _flat(value: Any) -> str:
    """Return the text of a result that is a text, a list of parts, or an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_flat(one) for one in value)
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        return str(value["text"])
    if isinstance(value, Mapping) and set(value) == {"output"}:
        return _flat(value["output"])
    return json.dumps(value, ensure_ascii=False)


# chat completions


def _read_chat(body: Mapping[str, Any]) -> Request:
    tools = [
        Tool(one["function"]["name"], one["function"].get("description", ""),
             one["function"].get("parameters") or {})
        for one in body.get("tools") or ()
    ]  # fmt: skip
    names: dict[str, str] = {}
    results: dict[str, Any] = {}
    for message in body.get("messages") or ():
        for call in message.get("tool_calls") or ():
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            names[call["id"]] = json.loads(arguments)["name"] if name == BRIDGE else name
        if message.get("role") == "tool":
            results[message["tool_call_id"]] = message.get("content")
    return _request(body, tools, names, results)


def _chat_message(reply: Reply) -> dict[str, Any]:
    if reply.tool is None:
        return {"role": "assistant", "content": reply.text}
    function = {"name": reply.tool.name, "arguments": json.dumps(reply.arguments)}
    if reply.tool.deferred:
        bridged = {"name": reply.tool.name, "arguments": reply.arguments}
        function = {"name": BRIDGE, "arguments": json.dumps(bridged)}
    call = {"index": 0, "id": reply.identity, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _chat_body(reply: Reply, kind: str, **choice: Any) -> dict[str, Any]:
    end = "stop" if reply.tool is None else "tool_calls"
    choices = [{"index": 0, "finish_reason": end, **choice}]
    return {"id": "chat_1", "object": kind, "created": 1, "model": MODEL, "choices": choices}


def _whole_chat(reply: Reply) -> Any:
    return _chat_body(reply, "chat.completion", message=_chat_message(reply)) | {"usage": _USAGE}


def _chat_events(reply: Reply) -> Iterator[tuple[str, Any]]:
    kind = "chat.completion.chunk"
    yield "", _chat_body(reply, kind, delta=_chat_message(reply), finish_reason=None)
    yield "", _chat_body(reply, kind, delta={}) | {"usage": _USAGE}
    yield "", "[DONE]"


# responses


def _read_responses(body: Mapping[str, Any]) -> Request:
    tools: list[Tool] = []
    for one in body.get("tools") or ():
        space = one["name"] if one.get("type") == "namespace" else ""
        for tool in one.get("tools") or (one,) if space else (one,):
            about = tool.get("description", "")
            name = tool.get("name", tool.get("type", ""))
            tools.append(Tool(name, about, tool.get("parameters") or {}, space))
    names: dict[str, str] = {}
    results: dict[str, Any] = {}
    for item in body.get("input") or ():
        if item.get("type") == "function_call":
            names[item["call_id"]] = _full(item.get("namespace", ""), item["name"])
        if item.get("type") == "function_call_output":
            results[item["call_id"]] = item.get("output")
    return _request(body, tools, names, results)


def _responses_item(reply: Reply) -> dict[str, Any]:
    if reply.tool is None:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": content}  # fmt: skip
    item = {"type": "function_call", "id": "fc_1", "call_id": reply.identity,
            "name": reply.tool.name, "arguments": json.dumps(reply.arguments)}  # fmt: skip
    return item | ({"namespace": reply.tool.namespace} if reply.tool.namespace else {})


def _whole_responses(reply: Reply) -> Any:
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": MODEL, "output": [_responses_item(reply)], "usage": usage}  # fmt: skip


def _responses_events(reply: Reply) -> Iterator[tuple[str, Any]]:
    whole, item = _whole_responses(reply), _responses_item(reply)
    begun = {**whole, "status": "in_progress", "output": []}
    for kind, value in (
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ):
        yield kind, {"type": kind, **value}


# Anthropic's messages


def _read_messages(body: Mapping[str, Any]) -> Request:
    tools = [
        Tool(one["name"], one.get("description", ""), one.get("input_schema") or {})
        for one in body.get("tools") or ()
    ]
    names: dict[str, str] = {}
    results: dict[str, Any] = {}
    for message in body.get("messages") or ():
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "tool_use":
                names[part["id"]] = part["name"]
            if part.get("type") == "tool_result":
                results[part["tool_use_id"]] = part.get("content", "")
    return _request(body, tools, names, results)


def _message(reply: Reply, content: list[Any]) -> dict[str, Any]:
    end = "end_turn" if reply.tool is None else "tool_use"
    usage = {"input_tokens": 100, "output_tokens": 10}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL,
            "content": content, "stop_reason": end, "stop_sequence": None, "usage": usage}  # fmt: skip


def _block(reply: Reply, *, empty: bool = False) -> dict[str, Any]:
    if reply.tool is None:
        return {"type": "text", "text": "" if empty else reply.text}
    arguments = {} if empty else dict(reply.arguments)
    identity = reply.identity.replace("call", "toolu")
    return {"type": "tool_use", "id": identity, "name": reply.tool.name, "input": arguments}


def _whole_message(reply: Reply) -> Any:
    return _message(reply, [_block(reply)])


def _message_events(reply: Reply) -> Iterator[tuple[str, Any]]:
    whole = _message(reply, [])
    delta = (
        {"type": "text_delta", "text": reply.text}
        if reply.tool is None
        else {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    )
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    for kind, value in (
        ("message_start", {"message": {**whole, "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": _block(reply, empty=True)}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": end, "usage": {"output_tokens": 10}}),
        ("message_stop", {}),
    ):
        yield kind, {"type": kind, **value}


# Gemini


def _read_gemini(body: Mapping[str, Any]) -> Request:
    tools = [
        Tool(one["name"], one.get("description", ""),
             one.get("parametersJsonSchema") or one.get("parameters") or {})
        for group in body.get("tools") or ()
        for one in group.get("functionDeclarations") or ()
    ]  # fmt: skip
    names: dict[str, str] = {}
    results: dict[str, Any] = {}
    for content in body.get("contents") or ():
        for part in content.get("parts") or ():
            if answer := part.get("functionResponse"):
                key = f"result_{len(results)}"
                names[key], results[key] = answer["name"], answer.get("response")
    return _request(body, tools, names, results)


def _whole_gemini(reply: Reply) -> Any:
    part: dict[str, Any] = {"text": reply.text}
    if reply.tool is not None:
        part = {"functionCall": {"name": reply.tool.name, "args": dict(reply.arguments)}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage, "modelVersion": MODEL}  # fmt: skip


def _gemini_events(reply: Reply) -> Iterator[tuple[str, Any]]:
    yield "", _whole_gemini(reply)


_GEMINI = Protocol(_read_gemini, _whole_gemini, _gemini_events)
_PATHS: Mapping[str, Protocol] = {
    "/chat/completions": Protocol(_read_chat, _whole_chat, _chat_events),
    "/responses": Protocol(_read_responses, _whole_responses, _responses_events),
    "/messages": Protocol(_read_messages, _whole_message, _message_events),
    ":generateContent": _GEMINI,
    ":streamGenerateContent": _GEMINI,
}

"""Request bodies and replies of ``chat/completions``.

A request constrains calls by tools, a JSON schema, a grammar, or not at all (``CallMode``). A reply
is assembled from a stream of events or from one JSON document. Does no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.models import textual
from toolsrv_runtime.models.conversation import (
    RawCall,
    allowed_tools,
    arguments_json,
    normalize_conversation,
    parse_native_reply,
    without_optional,
)

CallMode = Literal["tools", "json_schema", "grammar", "none"]
"""How a call is held in shape: the server's own tool calls, ``response_format`` with a JSON
schema, a GBNF grammar, or nothing but the instructions."""

PROBED_MODES: tuple[CallMode, ...] = ("tools", "json_schema", "grammar")
"""In this order a server is asked what it offers; ``none`` is what is left."""

OPTIONAL_FIELDS = ("parallel_tool_calls", "chat_template_kwargs", "seed", "temperature", "top_p")
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
    expected=ReplyConstraints(names=("report",), text=False),
    max_tokens=200,
)


def probe(mode: CallMode, model: str) -> dict[str, Any]:
    """Return a small request whose reply shows whether the server holds calls in shape.

    Tool calls are asked for in words too: a server counts that has them and leaves the choice to
    the model. The other two contradict the words, so that only an enforced shape brings the call.
    """
    body = write_request(_PROBE, mode, model)
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


def write_request(request: ChatRequest, mode: CallMode, model: str) -> dict[str, Any]:
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
        body["messages"] = textual.render_messages(request)
    schema = textual.reply_schema(request)
    if schema is None or mode == "none" or (mode == "tools" and expected.schema is None):
        return body
    if mode == "grammar":
        return body | {"grammar": _gbnf(schema)}
    named = {"name": "reply", "strict": True, "schema": schema}
    return body | {"response_format": {"type": "json_schema", "json_schema": named}}


def optional_fields(request: ChatRequest, mode: CallMode) -> tuple[str, ...]:
    """Return the fields of a body without which the request can be made all the same."""
    if mode == "tools" and request.expected.schema is not None:
        return (*OPTIONAL_FIELDS, "response_format")  # the schema stands in the conversation too
    return OPTIONAL_FIELDS


def _tools(request: ChatRequest) -> dict[str, Any]:
    """Return the fields about tools: which there are, and which of them are to be called.

    A choice among several of them is kept to by listing those alone: no server in use knows a
    field for that.
    """
    if not request.tools:
        return {}
    expected, offered = request.expected, allowed_tools(request)
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


def _turns(request: ChatRequest) -> list[textual.MessageDict]:
    """Return the conversation with its calls as tool calls."""
    messages: list[Message] = list(request.messages)
    if note := textual.final_instruction(request, functions=False):
        messages.append(UserMessage(note))
    return [_turn(one) for one in normalize_conversation(messages)]


def _turn(message: Message) -> textual.MessageDict:
    match message:
        case SystemMessage(text):
            return {"role": "system", "content": text}
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call, text):
            return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}
        case AssistantMessage(text, calls):
            turn: textual.MessageDict = {"role": "assistant", "content": text}
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


@dataclass(slots=True)
class _Pieces:
    """What has come of one structured call; servers repeat names and arguments in many ways."""

    id: str = ""
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def complete(self) -> bool:
        """Whether the arguments are a whole JSON object."""
        return _is_object("".join(self.arguments))

    def name(self, offered: Collection[str]) -> str:
        """Return the name: in pieces, or sent whole with each piece of the arguments."""
        whole = "".join(self.names)
        for candidate in (whole, *self.names[:1], *self.names[-1:]):
            if candidate in offered:
                return candidate
        return self.names[0] if len(set(self.names)) == 1 else whole

    def texts(self) -> tuple[str, ...]:
        """Return what the arguments may be, the likeliest first.

        Pieces to be joined; the whole in the last of growing texts; pieces after a placeholder.
        """
        parts = [one for one in self.arguments if one]
        return ("".join(parts), *parts[-1:], "".join(parts[1:])) if len(parts) > 1 else tuple(parts)


@dataclass(slots=True)
class StreamedReply:
    """What has come of a reply. ``pieces`` counts the events that held some of it.

    ``error`` is what the server said instead of going on ("" while it goes on).
    """

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, list[_Pieces]] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    pieces: int = 0
    finish: str = ""
    error: str = ""

    def event(self, data: str) -> bool:
        """Take one event's data (or a whole document); False when it is no JSON object."""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        if error := value.get("error"):  # some send it as null where there is none
            self.error = str(error.get("message", error) if isinstance(error, dict) else error)
        if isinstance(usage := value.get("usage"), dict):
            self.usage = usage
        choices = value.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])
        return True

    def reply(self, request: ChatRequest, mode: CallMode) -> ChatReply:
        """Return the reply to ``request`` as it was written in ``mode``."""
        text, thought = "".join(self.text), "".join(self.reasoning)
        finish: FinishReason = "length" if self.finish == "length" else "complete"
        offered = {one.name for one in request.tools}
        calls = [
            RawCall(one.name(offered), one.texts(), one.id)
            for _, several in sorted(self.calls.items())
            for one in several
            if one.names
        ]
        if calls or mode == "tools":
            reply = parse_native_reply(request, text, calls, reasoning=thought, finish=finish)
        else:
            reply = textual.parse_reply(request, text, reasoning=thought, finish=finish)
        return self._counted(reply)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message")
        if isinstance(finish := choice.get("finish_reason"), str):
            self.finish = finish
        if not isinstance(said, dict):
            return
        content, calls = said.get("content"), said.get("tool_calls")
        if isinstance(content, str) and content:
            self.text.append(content)
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._call(call, position)
        thinks = said.get("reasoning_content") or said.get("reasoning")
        if isinstance(thinks, str):
            self.reasoning.append(thinks)
        self.pieces += bool(content or calls or thinks)

    def _call(self, call: Mapping[str, Any], position: int) -> None:
        index = call.get("index")
        index = index if isinstance(index, int) else position
        function = call.get("function")
        if not isinstance(function, dict):
            return
        name, handle = function.get("name"), call.get("id")
        name = name if isinstance(name, str) else ""
        several = self.calls.setdefault(index, [_Pieces()])
        if isinstance(handle, str) and handle:
            # Some number all calls 0 and tell them apart by ids; others send a new id each time.
            if name and several[-1].id not in ("", handle) and several[-1].complete():
                several.append(_Pieces())
            several[-1].id = several[-1].id or handle
        if name:
            several[-1].names.append(name)
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            several[-1].arguments.append(arguments)

    def _counted(self, reply: ChatReply) -> ChatReply:
        """Add the tokens: the server's count, else the pieces that came, about one token each."""
        details = self.usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        return replace(
            reply,
            prompt_tokens=_count(self.usage.get("prompt_tokens")),
            cached=_count(cached),
            generated=_count(self.usage.get("completion_tokens")) or self.pieces,
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0

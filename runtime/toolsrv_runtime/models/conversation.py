"""Conversations as servers and clients accept them: fitting call ids, neighbours of a role merged.

Pure functions over the messages of ``contract.chat``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatRequest,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.templates.normalise import call_id


def allowed(request: ChatRequest) -> tuple[Tool, ...]:
    """Return the tools that the reply may call."""
    return tuple(one for one in request.tools if one.name in request.expected.names)


def without_optional(request: ChatRequest) -> ChatRequest:
    """Return a request in which tools of ``required_only`` have no optional parameters.

    Servers know no field for it, so such parameters are not shown to them.
    """
    wanted = request.expected.required_only
    if not wanted:
        return request
    tools = (_required(one) if one.name in wanted else one for one in request.tools)
    return replace(request, tools=tuple(tools))


def _required(tool: Tool) -> Tool:
    required = tool.parameters.get("required", ())
    properties = tool.parameters.get("properties", {})
    kept = {key: one for key, one in properties.items() if key in required}
    return replace(tool, parameters={**tool.parameters, "properties": kept})


def normalized(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation that servers accept.

    Every call has an id of nine alphanumerics of its own, and its result the same one. Neighbouring
    user turns are merged, and neighbouring assistant turns. A result whose call is not in the
    conversation becomes a user turn.
    """
    return tuple(_merged(_numbered(messages)))


def response_text(message: ToolMessage) -> str:
    """Return a result as user text, for conversations without a role for it."""
    return f"Response of {message.call.name}: {message.text}"


def _numbered(messages: Sequence[Message]) -> Iterator[Message]:
    used: set[str] = set()
    open_calls: list[tuple[ToolCall, ToolCall]] = []
    count = 0
    for message in messages:
        if isinstance(message, AssistantMessage):
            open_calls = []
            for call in message.calls:
                count += 1
                fitting = call_id(call.id, used, f"{count} {call.id} {call.name}")
                used.add(fitting)
                open_calls.append((call, replace(call, id=fitting)))
            yield replace(message, calls=tuple(new for _, new in open_calls))
        elif isinstance(message, ToolMessage):
            pair = _pair(message.call, open_calls)
            if pair is None:
                yield UserMessage(response_text(message))
                continue
            open_calls.remove(pair)
            yield ToolMessage(pair[1], message.text)
        else:
            yield message


def _pair(
    call: ToolCall, open_calls: Sequence[tuple[ToolCall, ToolCall]]
) -> tuple[ToolCall, ToolCall] | None:
    """Return the open call that a result is for: by id, else the first of its name."""
    for pair in open_calls:
        if call.id and pair[0].id == call.id:
            return pair
    return next((pair for pair in open_calls if pair[0].name == call.name), None)


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    last: Message | None = None
    for message in messages:
        if isinstance(last, UserMessage) and isinstance(message, UserMessage):
            last = UserMessage(_joined(last.text, message.text))
        elif isinstance(last, SystemMessage) and isinstance(message, SystemMessage):
            last = SystemMessage(_joined(last.text, message.text))
        elif (
            isinstance(last, AssistantMessage)
            and isinstance(message, AssistantMessage)
            and not last.calls
        ):
            last = replace(message, text=_joined(last.text, message.text))
        else:
            if last is not None:
                yield last
            last = message
    if last is not None:
        yield last


def _joined(first: str, second: str) -> str:
    return "\n\n".join(filter(None, (first, second)))

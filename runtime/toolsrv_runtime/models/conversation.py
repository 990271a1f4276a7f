"""Normalize conversations for model servers, and parse their replies to a checked ``ChatReply``.

Servers get matching call ids and no two turns of one role in a row. A reply may hold structured
calls, calls in its text, or both; what cannot be used is named in ``problem``. Does no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.templates.dialects import read_dialects
from toolsrv_runtime.templates.markers import split_reasoning, without_ends
from toolsrv_runtime.templates.normalise import call_id, ids, normalise_call


def allowed_tools(request: ChatRequest) -> tuple[Tool, ...]:
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


def normalize_conversation(messages: Sequence[Message]) -> tuple[Message, ...]:
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


NATIVE = "native"
"""The dialect of calls that came as structured data."""

NO_CALL = "The reply calls no function"
EMPTY = "The reply is empty"
CUT_OFF = "The reply broke off at its limit of tokens"

_UNMARKED = ("code fence", "bare call")
"""Dialects without a marker: beside structured calls such text is an example, or their echo."""


@dataclass(frozen=True, slots=True)
class RawCall:
    """A structured call as it came. ``arguments``: readings, the first JSON object counts."""

    name: str
    arguments: Sequence[str]
    id: str = ""

    @property
    def source(self) -> str:
        """The call as text, for records and for a model that reads its reply again."""
        return f"{self.name}({self.arguments[0] if self.arguments else '{}'})"


def parse_native_reply(
    request: ChatRequest,
    text: str,
    calls: Sequence[RawCall],
    *,
    reasoning: str = "",
    finish: FinishReason = "complete",
) -> ChatReply:
    """Return a reply of text and structured calls.

    Without structured calls, calls are read from the text. Beside them only marked calls are,
    since some servers parse the first and leave the rest. The presence of calls decides, never
    the reason for stopping. What does not become a call stays in the text.
    """
    raw = "\n".join((*filter(None, (text,)), *(one.source for one in calls)))
    reply = replace(parse_text_reply(text, reasoning=reasoning, finish=finish), raw=raw)
    if not calls:
        if request.expected.schema is not None:
            return validate_reply(request, replace(reply, text=json_text(reply.text)))
        return validate_reply(request, extract_text_calls(request, reply) or reply)
    found: list[ToolCall] = []
    texts, problems, notes = [reply.text], list[str](), [NATIVE]
    for call in calls:
        made, problem, note = _normal(call, request)
        if made is None:
            problems.append(problem)
            texts.append(call.source)
        else:
            found.append(made)
            notes += [note] if note else []
    leftover = extract_text_calls(request, reply)
    if leftover is not None and not leftover.dialect.startswith(_UNMARKED):
        texts[0] = leftover.text
        further = [one for one in leftover.calls if not _listed(one, found)]
        found += further
        problems += [leftover.problem] if leftover.problem else []
        notes += [leftover.dialect] if further else []
    reply = replace(
        reply,
        text="\n".join(filter(None, texts)),
        calls=tuple(found),
        problem="; ".join(dict.fromkeys(problems)),
        dialect="; ".join(dict.fromkeys(notes)),
    )
    return validate_reply(request, reply)


def parse_text_reply(
    text: str, *, reasoning: str = "", finish: FinishReason = "complete"
) -> ChatReply:
    """Return a reply of text alone: reasoning split off, markers that end a turn removed."""
    thought, said = split_reasoning(text)
    thoughts = "\n".join(filter(None, (part.strip() for part in (reasoning, thought))))
    said = without_ends(said).strip()
    return ChatReply(text=said, reasoning=thoughts, raw=text, finish=finish)


def extract_text_calls(request: ChatRequest, reply: ChatReply) -> ChatReply | None:
    """Return a reply with the calls that its text holds, or its reasoning where it has no text.

    None where neither holds any.
    """
    text = reply.text or f"<think>\n{reply.reasoning}\n</think>"
    found = read_dialects(text, request, finish=reply.finish)
    if found is None:
        return None
    reasoning = reply.reasoning if reply.text else found.reasoning
    return replace(found, raw=reply.raw, reasoning=reasoning)


def validate_reply(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """Return a reply with an id of its own for each call, and with what is wrong with it.

    More calls than expected are no problem: servers cannot be held to a number.
    """
    used, calls = ids(request), list[ToolCall]()
    for call in reply.calls:
        made = call_id(call.id, used, f"{len(used)} {call.name}")
        used.add(made)
        calls.append(replace(call, id=made))
    problem = reply.problem or _problem(request, reply)
    if problem and reply.finish == "length":
        problem = CUT_OFF
    return repair_surrogates(replace(reply, calls=tuple(calls), problem=problem))


def _problem(request: ChatRequest, reply: ChatReply) -> str:
    expected, known = request.expected, {one.name for one in request.tools}
    for call in reply.calls:
        if call.name not in known:
            return f"There is no tool {clean(call.name, 80)!r}"
        if call.name not in expected.names:
            return f"{call.name} cannot be called now"
        if _listed(call, expected.excluded):
            return f"{call.name} was called with exactly these arguments before"
    if reply.calls:
        return ""
    if expected.names and not expected.text:
        return NO_CALL
    if not reply.text.strip():
        return EMPTY
    if expected.schema is not None and _json_value(reply.text) is None:
        return "The reply is not JSON"
    return ""


def _normal(call: RawCall, request: ChatRequest) -> tuple[ToolCall | None, str, str]:
    """Return a structured call, or the problem with it, and a note on a repair."""
    problem, repairable = "", not call.arguments
    for text in call.arguments:
        try:
            arguments = args.parse(_decoded(text))
        except ArgumentError as error:
            problem = problem or error.message
            repairable = repairable or not _is_json(text)
        else:
            made, why = normalise_call(call.name, arguments, request)
            return made and replace(made, id=call.id), why, ""
    if repairable:
        first = call.arguments[0] if call.arguments else ""
        made, why = normalise_call(call.name, first, request)
        if made is not None or not problem:
            return made and replace(made, id=call.id), why, "repaired" if problem else ""
    return None, f"The call of {clean(call.name, 80)} was not made: {problem}", ""


def _decoded(text: str) -> str:
    """Return the text of arguments with null as none, and what is encoded twice decoded once."""
    said = text.strip()
    if said == "null":
        return ""
    if not said.startswith('"'):
        return text
    try:
        value = json.loads(said)
    except ValueError:
        return text
    return value if isinstance(value, str) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _listed(call: ToolCall, calls: Iterable[ToolCall]) -> bool:
    return any(call.name == one.name and call.arguments == one.arguments for one in calls)


def json_text(text: str) -> str:
    """Return the JSON that a text is, without a code fence around it; the text where it is none."""
    value = _json_value(text)
    return text if value is None else value


def _json_value(text: str) -> str | None:
    said = text.strip()
    if said.startswith("```") and said.endswith("```") and "\n" in said:
        said = said[3:-3].partition("\n")[2].strip()
    return said if _is_json(said) else None


def repair_surrogates(reply: ChatReply) -> ChatReply:
    """Return a reply with the halves of characters that came in two pieces put together.

    Servers that cut strings as JavaScript does send them so. A half alone becomes U+FFFD.
    """
    return replace(
        reply,
        text=wellformed.text(reply.text),
        reasoning=wellformed.text(reply.reasoning),
        raw=wellformed.text(reply.raw),
        problem=wellformed.text(reply.problem),
        calls=tuple(
            replace(one, name=wellformed.text(one.name), arguments=wellformed.value(one.arguments))
            for one in reply.calls
        ),
    )


def arguments_json(arguments: dict[str, Any]) -> str:
    """Return arguments as they are written on the wire: JSON text, encoded once."""
    return json.dumps(arguments, ensure_ascii=False)

"""Replies of models that are not run here: what came, as a ``ChatReply``.

Structured tool calls of a server or an MCP client, and text that may hold further calls. All of
it is data of unknown shape; a reply that cannot be used says why and keeps every character.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, Finish, ToolCall
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.models.conversation import call_ids, fitting_id

NATIVE = "native"
"""The dialect of calls that came as structured data."""

NO_CALL = "it calls no function"
EMPTY = "it is empty"
CUT = "it broke off at its limit of tokens"

_THINK = "</think>"


@dataclass(frozen=True, slots=True)
class RawCall:
    """A structured call as it came. ``arguments``: JSON texts, the first that is one counts."""

    name: str
    arguments: Sequence[str]
    id: str = ""


def native(
    request: ChatRequest,
    text: str,
    calls: Sequence[RawCall],
    *,
    reasoning: str = "",
    finish: Finish = "complete",
) -> ChatReply:
    """Return a reply of text and structured calls.

    Without structured calls, calls are read from the text; beside them only those that further
    stand in it in a syntax of their own. The presence of calls decides, no reason for stopping.
    """
    thought, said = split_reasoning(text)
    reasoning = joined_reasoning(reasoning, thought)
    raw = "\n".join(
        (*filter(None, (text,)), *(f"{one.name}({_written(one.arguments)})" for one in calls))
    )
    reply = ChatReply(text=said, reasoning=reasoning, raw=raw, finish=finish)
    if not calls:
        if request.expected.schema is not None:
            return judged(request, replace(reply, text=json_text(said)))
        return judged(request, with_calls_of_text(request, reply, said))
    found, problems = [], []
    for call in calls:
        try:
            value = parsed(call.arguments)
        except ArgumentError as error:
            problems.append(error.message)
        else:
            found.append(ToolCall(call.name, value, call.id))
    reply = replace(reply, calls=tuple(found), problem="; ".join(problems), dialect=NATIVE)
    return judged(request, reply)


def with_calls_of_text(request: ChatRequest, reply: ChatReply, text: str) -> ChatReply:
    """Return a reply with the call that its text is, where it is one of an offered function."""
    value = _json_value(text)
    call = wellformed.loads(value) if value is not None else None
    if not isinstance(call, dict) or call.get("name") not in {one.name for one in request.tools}:
        return reply
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return reply
    return replace(reply, text="", calls=(ToolCall(call["name"], arguments),), dialect="json")


def judged(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """Return a reply with fitting ids for its calls, and with what is wrong with it.

    More calls than expected are no problem: servers cannot be held to a number.
    """
    used = call_ids(request.messages)
    calls = tuple(
        replace(one, id=fitting_id(one.id, f"{len(used)} {number} {one.name}", used))
        for number, one in enumerate(reply.calls)
    )
    problem = reply.problem or _problem(request, reply)
    if problem and reply.finish == "length":
        problem = CUT
    return well_formed(replace(reply, calls=calls, problem=problem))


def _problem(request: ChatRequest, reply: ChatReply) -> str:
    expected, offered = request.expected, {one.name for one in request.tools}
    for call in reply.calls:
        if call.name not in offered:
            return f"there is no function {clean(call.name, 80)!r}"
        if call.name not in expected.names:
            return f"the function {call.name!r} may not be called now"
    if reply.calls:
        return ""
    if expected.names and not expected.text:
        return NO_CALL
    if not reply.text.strip():
        return EMPTY
    if expected.schema is not None and _json_value(reply.text) is None:
        return "it is not JSON"
    return ""


def parsed(texts: Sequence[str]) -> dict[str, Any]:
    """Return the arguments that the first text that is a JSON object spells.

    Raises:
        ArgumentError: none is; says what is wrong with the first.
    """
    problem: ArgumentError | None = None
    for text in texts:
        try:
            return args.parse(_decoded(text))
        except ArgumentError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return {}


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


def split_reasoning(text: str) -> tuple[str, str]:
    """Return what a model thought aloud, and what it said after that.

    The opening mark may be missing: some prompts end with it.
    """
    before, mark, said = text.rpartition(_THINK)
    if not mark:
        return "", text.strip()
    return before.strip().removeprefix("<think>").strip(), said.strip()


def joined_reasoning(*parts: str) -> str:
    """Return reasoning that came in several places, as one text."""
    return "\n".join(filter(None, (part.strip() for part in parts)))


def json_text(text: str) -> str:
    """Return the JSON that a text is, without a code fence around it; the text where it is none."""
    value = _json_value(text)
    return text if value is None else value


def _json_value(text: str) -> str | None:
    said = text.strip()
    if said.startswith("```") and said.endswith("```") and "\n" in said:
        said = said[3:-3].partition("\n")[2].strip()
    try:
        wellformed.loads(said)
    except (ValueError, RecursionError):
        return None
    return said


def well_formed(reply: ChatReply) -> ChatReply:
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


def _written(texts: Sequence[str]) -> str:
    return texts[0] if texts else "{}"


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments as they are written on the wire: JSON text, encoded once."""
    return json.dumps(arguments, ensure_ascii=False)

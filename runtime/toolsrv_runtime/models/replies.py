"""Replies of models that are not run here: what came, as a checked ``ChatReply``.

Structured tool calls of a server or an MCP client, and text that may hold calls in one of the
syntaxes of ``templates.dialects``. All of it is data of unknown shape; a reply that cannot be used
has a ``problem`` and keeps every character in ``raw``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, Finish, ToolCall
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.templates.dialects import read_dialects
from toolsrv_runtime.templates.markers import split_reasoning, without_ends
from toolsrv_runtime.templates.normalise import call_id, ids, normalise_call

NATIVE = "native"
"""The dialect of calls that came as structured data."""

NO_CALL = "The reply calls no function"
EMPTY = "The reply is empty"
CUT = "The reply broke off at its limit of tokens"

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


def native(
    request: ChatRequest,
    text: str,
    calls: Sequence[RawCall],
    *,
    reasoning: str = "",
    finish: Finish = "complete",
) -> ChatReply:
    """Return a reply of text and structured calls.

    Without structured calls, calls are read from the text. Beside them only marked calls are,
    since some servers parse the first and leave the rest. The presence of calls decides, never
    the reason for stopping. What does not become a call stays in the text.
    """
    raw = "\n".join((*filter(None, (text,)), *(one.source for one in calls)))
    reply = replace(plain(text, reasoning=reasoning, finish=finish), raw=raw)
    if not calls:
        if request.expected.schema is not None:
            return judged(request, replace(reply, text=json_text(reply.text)))
        return judged(request, with_calls_of_text(request, reply) or reply)
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
    leftover = with_calls_of_text(request, reply)
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
    return judged(request, reply)


def plain(text: str, *, reasoning: str = "", finish: Finish = "complete") -> ChatReply:
    """Return a reply of text alone: reasoning split off, markers that end a turn removed."""
    thought, said = split_reasoning(text)
    thoughts = "\n".join(filter(None, (part.strip() for part in (reasoning, thought))))
    said = without_ends(said).strip()
    return ChatReply(text=said, reasoning=thoughts, raw=text, finish=finish)


def with_calls_of_text(request: ChatRequest, reply: ChatReply) -> ChatReply | None:
    """Return a reply with the calls that its text holds, or its reasoning where it has no text.

    None where neither holds any.
    """
    text = reply.text or f"<think>\n{reply.reasoning}\n</think>"
    found = read_dialects(text, request, finish=reply.finish)
    if found is None:
        return None
    reasoning = reply.reasoning if reply.text else found.reasoning
    return replace(found, raw=reply.raw, reasoning=reasoning)


def judged(request: ChatRequest, reply: ChatReply) -> ChatReply:
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
        problem = CUT
    return well_formed(replace(reply, calls=tuple(calls), problem=problem))


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


def arguments_json(arguments: dict[str, Any]) -> str:
    """Return arguments as they are written on the wire: JSON text, encoded once."""
    return json.dumps(arguments, ensure_ascii=False)

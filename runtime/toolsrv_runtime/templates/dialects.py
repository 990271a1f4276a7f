"""Parse a model's reply into reasoning, text and calls: in its learnt syntax, else in a known dialect.

Dialects are tried by the certainty of their markers: reasoning is split off, then markers that only
a call has, ``<tool_call>``, markers that prose may have too, code fences, the whole reply as JSON
or as Python calls, and last the end of the reasoning. The first that fits counts. Replies are data:
nothing in them is evaluated, sizes and depths are capped, and what does not become a call stays in
the text.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    ToolCall,
)
from toolsrv_runtime.templates import markers
from toolsrv_runtime.templates.call_syntax import FoundCall
from toolsrv_runtime.templates.learning import Learnt, Reasoning
from toolsrv_runtime.templates.markers import CallGroup, MarkedReply
from toolsrv_runtime.templates.normalise import (
    call_id,
    ids,
    normalise_call,
    offered_tool,
    resolve_tool,
    typed_text,
)
from toolsrv_runtime.templates.written_calls import ReadCalls, ReaderOptions, Written, whole

MOST_TEXT: Final = 1_000_000
"""Characters of a reply that is read; a longer one is text."""

_FENCE = re.compile(
    r"^[ ]{0,3}```[ \t]*(?P<language>[\w+-]*)[ \t]*\n(?P<body>.*?)(?:^[ ]{0,3}```[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LANGUAGES = frozenset(
    ("", "json", "json5", "jsonc", "tool_call", "tool_calls", "tool_code", "python", "py", "xml")
)
_SENTENCE_END = re.compile(r"[.!?:。！？](?=\s|\Z)")
_MOST_SENTENCE = 300


def read_dialects(
    raw: str, request: ChatRequest, *, finish: FinishReason = "complete"
) -> ChatReply | None:
    """Return the reply with its calls in the first dialect that fits, None where none does.

    A call that cannot be read, or that names no callable tool, is the reply's ``problem`` and
    stays in its text. A reply that broke off (``finish`` "length") is not completed. ``dialect``
    also lists repairs. ``raw`` begins with what the prompt already holds of the reply
    (``<think>``).
    """
    if len(raw) > MOST_TEXT or request.expected.schema is not None:
        return None
    reading = ReaderOptions(
        finish == "complete", lambda name: offered_tool(name, request) is not None
    )
    found = markers.read_harmony(raw, reading)
    if found is not None:
        return _reply(found, raw, request, finish)
    reasoning, text = markers.split_reasoning(raw)
    text = markers.without_ends(text)
    found = markers.read_marked(text, reading)
    if found is None and request.tools:
        found = _fences(text, request, reading) or _bare(text, request, reading)
    if found is None and not text.strip() and reasoning and finish == "complete":
        found = _tail(reasoning, request, reading)
    if found is None:
        return None
    return _reply(replace(found, reasoning=found.reasoning or reasoning), raw, request, finish)


def _reply(found: MarkedReply, raw: str, request: ChatRequest, finish: FinishReason) -> ChatReply:
    """Return the reply with calls normalised; what does not become a call stays in the text."""
    taken = ids(request)
    calls: list[ToolCall] = []
    texts: list[str] = []
    problems: list[str] = [_unreadable(found.error, finish)] if found.error else []
    for piece in found.pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        before = len(calls)
        for written in piece.calls:
            call, problem = _normal(written, request)
            if call is None:
                problems.append(problem)
                continue
            made = call_id(written.id, taken, f"{len(calls)} {raw[:4096]}")
            taken.add(made)
            calls.append(replace(call, id=made))
        if len(calls) == before and piece.calls:
            texts.append(piece.source)
    notes = dict.fromkeys(found.repairs)
    if any(_same(one, two) for one, two in itertools.pairwise(calls)):
        notes["the same call twice"] = None
    return ChatReply(
        text="\n".join(part for part in (text.strip() for text in texts) if part),
        calls=tuple(calls),
        reasoning=found.reasoning.strip(),
        problem="; ".join(dict.fromkeys(problems)),
        raw=raw,
        dialect="; ".join((found.dialect, *notes)),
        finish=finish,
    )


def _unreadable(error: str, finish: FinishReason) -> str:
    if finish == "length":
        return "The call broke off at the limit of tokens and was not made"
    return f"A call could not be read ({error}) and was not made"


def _normal(written: Written, request: ChatRequest) -> tuple[ToolCall | None, str]:
    """Return a written call normalised, or the problem as one line for the model."""
    arguments = written.arguments
    if not isinstance(arguments, dict) or not (written.tagged or written.positional):
        return normalise_call(written.name, arguments, request)
    tool, problem = resolve_tool(written.name, request)
    if tool is None:
        return None, problem
    values: dict[str, Any] = arguments
    if written.tagged:
        values = {key: typed_text(str(value), tool, key) for key, value in arguments.items()}
    if written.positional:
        properties = tool.parameters.get("properties")
        names = list(properties)[: len(written.positional)] if isinstance(properties, dict) else []
        if len(names) < len(written.positional) or any(name in values for name in names):
            return None, f"Name the arguments of {tool.name}: their order is not clear"
        values = dict(zip(names, written.positional, strict=True)) | values
    return normalise_call(tool.name, values, request)


def _same(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and one.arguments == other.arguments


def _known(body: ReadCalls, request: ChatRequest) -> bool:
    return all(offered_tool(call.name, request) is not None for call in body.calls)


def _is_attempt(body: ReadCalls) -> bool:
    """Whether calls of unknown tools are still nothing but calls: name and arguments, no more."""
    return all(isinstance(call.arguments, dict) and call.explicit for call in body.calls)


def _fences(text: str, request: ChatRequest, reading: ReaderOptions) -> MarkedReply | None:
    """Read code fences: the whole body is a call, and the fence ends the reply or nearly is it."""
    pieces: list[str | CallGroup] = []
    repairs: list[str] = []
    last = 0
    for fence in _FENCE.finditer(text):
        body = _fence_body(fence, reading)
        if body is None or not _known(body, request):
            continue
        pieces += [text[last : fence.start()], CallGroup(body.calls, fence[0])]
        repairs += body.repairs
        last = fence.end()
    if not pieces:
        return None
    rest = text[last:]
    pieces.append(rest)
    if rest.strip() and not _one_sentence(one for one in pieces if isinstance(one, str)):
        return None
    return MarkedReply(pieces, "code fence", tuple(repairs))


def _fence_body(fence: re.Match[str], reading: ReaderOptions) -> ReadCalls | None:
    if fence["language"].lower() not in _LANGUAGES:
        return None
    inner = fence["body"].strip()
    found = markers.read_marked(inner, reading)
    if found is None:
        return whole(inner, reading)
    groups = [piece for piece in found.pieces if isinstance(piece, CallGroup)]
    alone = not any(piece.strip() for piece in found.pieces if isinstance(piece, str))
    calls = tuple(call for group in groups for call in group.calls)
    return (
        ReadCalls(calls, len(inner), found.repairs) if alone and calls and not found.error else None
    )


def _one_sentence(texts: Iterable[str]) -> bool:
    """Whether texts are one sentence at most, by their punctuation and line breaks."""
    text = " ".join(texts).strip()
    ends = len(_SENTENCE_END.findall(text))
    return len(text) <= _MOST_SENTENCE and "\n" not in text and ends <= 1


def _bare(text: str, request: ChatRequest, reading: ReaderOptions) -> MarkedReply | None:
    """Read a reply that is nothing but calls, as JSON or as Python."""
    fence = _FENCE.fullmatch(text.strip())
    body = _fence_body(fence, reading) if fence else whole(text.strip(), reading)
    if body is None or not (_known(body, request) or _is_attempt(body)):
        return None
    return MarkedReply(
        [CallGroup(body.calls, text)], "code fence" if fence else "bare call", body.repairs
    )


def _tail(reasoning: str, request: ChatRequest, reading: ReaderOptions) -> MarkedReply | None:
    """Read complete calls of callable tools at the very end of the reasoning."""
    found = markers.read_marked(reasoning, replace(reading, closing=False))
    if found is None or found.error:
        return None
    groups: list[CallGroup] = []
    before = ""
    for piece in reversed(found.pieces):
        if isinstance(piece, CallGroup):
            groups.insert(0, piece)
        elif piece.strip():
            before = piece
            break
    fine = bool(groups) and all(
        group.closed and resolve_tool(call.name, request)[0] is not None
        for group in groups
        for call in group.calls
    )
    if not fine or (before and not before.rstrip(" \t").endswith("\n")):
        return None
    pieces: Sequence[str | CallGroup] = groups
    return MarkedReply(
        list(pieces), f"{found.dialect} in the reasoning", found.repairs, reasoning=reasoning
    )


_LAST_MARKER = re.compile(r"(?:<[^<>\s]*>|\[[^\[\]\s]*\])\s*\Z")
_THINK = Reasoning("<think>", "</think>")


def split_reasoning(raw: str, tags: Reasoning | None, *, opened: bool) -> tuple[str, str]:
    """Return the reasoning and the rest of a reply.

    ``opened``: the prompt began the reasoning. A lone closing tag closes from the start; reasoning
    that is not closed takes the whole reply.
    """
    tags = tags or _THINK
    head, closed, rest = raw.partition(tags.close.strip())
    before, begun, thought = head.partition(tags.open.strip())
    if begun:
        return thought.strip(), f"{before}{rest}" if before.strip() else rest
    if closed or opened:
        return head.strip(), rest
    return "", raw


def without_end(text: str, ends: frozenset[str], kept: str) -> str:
    """Return a reply without the control tokens that end a turn; those in ``kept`` stay."""
    while (found := _LAST_MARKER.search(text)) is not None:
        marker = found[0].strip()
        if marker not in ends or marker in kept:
            break
        text = text[: found.start()]
    return text


def read_learnt(raw: str, learnt: Learnt, request: ChatRequest, ends: frozenset[str]) -> ChatReply:
    """Return the reply in the learnt syntax; without calls where it holds none.

    A call of a tool that is not available, or whose arguments are no object, is the reply's
    problem, and the reply stays in the text.
    """
    syntax = learnt.syntax
    body = without_end(raw, ends, syntax.markers)
    opened = learnt.opened and request.expected.reasoning > 0
    reasoning, body = split_reasoning(body, learnt.reasoning, opened=opened)
    marker = learnt.text_open.strip()
    found = None
    if request.tools and request.expected.schema is None:
        schemas = {tool.name: tool.parameters for tool in request.tools}
        found = syntax.read(body, schemas)
    text = body if found is None else found[1]
    if marker and marker in text:
        before, _, after = text.partition(marker)
        text = f"{before.strip()}\n{after}" if before.strip() else after
    calls, problem = named_calls(() if found is None else found[0], request)
    if found is not None and len(calls) < len(found[0]):
        text = body
    return ChatReply(
        text=text.strip(),
        calls=calls,
        reasoning=reasoning,
        problem=problem,
        raw=raw,
        dialect=syntax.describe() if found is not None else "",
    )


def new_id(request: ChatRequest, index: int) -> str:
    """Return the id of a reply's call, the ``index``-th: unique within its conversation."""
    used = {
        call.id
        for one in request.messages
        if isinstance(one, AssistantMessage)
        for call in one.calls
    }
    for attempt in count():
        key = f"{len(request.messages)}:{index}:{attempt}".encode()
        found = hashlib.sha256(key).hexdigest()[:9]
        if found not in used:
            return found
    raise AssertionError


def named_calls(
    found: Sequence[FoundCall], request: ChatRequest
) -> tuple[tuple[ToolCall, ...], str]:
    """Return the calls of available tools with new ids, and what is wrong with the others."""
    calls: list[ToolCall] = []
    problems: list[str] = []
    for one in found:
        call, problem = normalise_call(one.name, one.arguments, request)
        if call is None:
            problems.append(problem)
        else:
            calls.append(replace(call, id=new_id(request, len(calls))))
    return tuple(calls), "; ".join(dict.fromkeys(problems))

"""Replies read in a learnt syntax: reasoning, text and calls."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from toolsrv_runtime.contract.chat import AssistantMessage, ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.templates.call_syntax import FoundCall
from toolsrv_runtime.templates.learning import Learnt, Reasoning
from toolsrv_runtime.templates.normalise import normalise_call

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

    A call of a tool that is not offered, or whose arguments are no object, is the reply's problem,
    and the reply stays in the text.
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
    """Return the calls of offered tools with ids of their own, and what is wrong with the others."""
    calls: list[ToolCall] = []
    problems: list[str] = []
    for one in found:
        call, problem = normalise_call(one.name, one.arguments, request)
        if call is None:
            problems.append(problem)
        else:
            calls.append(replace(call, id=new_id(request, len(calls))))
    return tuple(calls), "; ".join(dict.fromkeys(problems))

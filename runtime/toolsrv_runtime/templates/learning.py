"""The call syntax of a chat template, learnt from differences between its renderings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from toolsrv_runtime.templates.call_syntax import CallSyntax
from toolsrv_runtime.templates.conversation import Shape
from toolsrv_runtime.templates.rendering import Renderer


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a template can do, and how calls are written.

    ``switch``: whether it reads ``enable_thinking``.
    """

    syntax: CallSyntax = CallSyntax()
    shape: Shape = Shape()
    switch: bool = False


def learn(renderer: Renderer) -> Learnt:
    """Return what can be learnt; the generic syntax where renderings do not carry calls."""
    shape = Shape()
    user: dict[str, Any] = {"role": "user", "content": "uquorx"}
    if not _keeps(renderer, [{"role": "system", "content": "squorx"}, user], "squorx"):
        shape = replace(shape, system=False)
    tool = {"type": "function", "function": {"name": "nquorx", "description": "d",
            "parameters": {"type": "object", "properties": {}, "required": []}}}  # fmt: skip
    call = {"name": "nquorx", "arguments": {"aquorx": 1}}
    asked = {"role": "assistant", "content": "",
             "tool_calls": [{"id": "abcdefghi", "type": "function", "function": call}]}  # fmt: skip
    turn = renderer.attempt([user, asked], tools=[tool], generate=False)
    syntax = CallSyntax(learnt=True)
    if (
        turn is not None
        and '<tool_call>\n{"name": "nquorx", "arguments": {"aquorx": 1}}\n</tool_call>' in turn
    ):
        return Learnt(syntax, replace(shape, native=True))
    return Learnt(CallSyntax(), shape)


def _keeps(renderer: Renderer, messages: list[dict[str, Any]], text: str) -> bool:
    found = renderer.attempt(messages)
    return found is not None and text in found

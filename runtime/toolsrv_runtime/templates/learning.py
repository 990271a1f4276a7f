"""Abilities of a chat template, learnt from differences between its renderings.

Nothing is taken from a model's name or a template's source: a system turn that is missing from a
rendering is not supported, calls that cannot be read back are not learnt.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from toolsrv_runtime.contract.models import ToolCall
from toolsrv_runtime.templates.call_learning import (
    PROBE_NAMES,
    RenderCalls,
    common_prefix,
    common_suffix,
    learn_calls,
    same_begin,
)
from toolsrv_runtime.templates.call_syntax import GENERIC, CallSyntax
from toolsrv_runtime.templates.marking import to_json
from toolsrv_runtime.templates.rendering import PLAIN_ABILITIES, Renderer, TemplateAbilities
from toolsrv_runtime.templates.sandbox import LimitError

CLOCK = datetime(2026, 3, 14, 12, tzinfo=UTC)
"""The clock of all probes, so that a template teaches the same on every day."""

LEARNING_S = 10.0
"""Seconds of processor time of all probes of one template, which take a fiftieth of that."""

_USER, _SYSTEM, _TEXT, _RESULT, _THOUGHT = "uquorxe", "squorxe", "tquorxe", "rquorxe", "oquorxe"
_DESCRIPTION = "dquorxe"
_MARKER = re.compile(r"[<\[][^<>\[\]\s]+[>\]]")
_TAGS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Where a model reasons: between ``open`` and ``close``."""

    open: str
    close: str


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a template can do, and how calls are written.

    ``switch``: whether it reads ``enable_thinking``. ``opened``: the generation prompt begins the
    reasoning (where it is not switched off). ``text_open``: a marker before every text.
    ``no_tools``: what it gets where there are none.
    """

    syntax: CallSyntax = GENERIC
    shape: TemplateAbilities = PLAIN_ABILITIES
    reasoning: Reasoning | None = None
    switch: bool = False
    opened: bool = False
    text_open: str = ""
    no_tools: list[Any] | None = None


def learn_template(renderer: Renderer) -> Learnt:
    """Return what can be learnt; the generic syntax where renderings do not carry calls.

    Raises ModelError where the template does not render a user's turn.
    """
    prober = _Prober(renderer)
    shape = prober.shape()
    switch = prober.switch()
    text_open = prober.text_open(switch)
    reasoning, opened = prober.reasoning(switch, text_open)
    base = Learnt(GENERIC, shape, reasoning, switch, opened, text_open, renderer.no_tools)
    if not prober.lists_tools():
        return base
    for arguments in ("object", "text"):
        syntax = learn_calls(prober.turn(arguments, switch, reasoning))
        if syntax is None:
            continue
        native = replace(shape, native=True, arguments=arguments, several=syntax.several)
        if prober.takes_results(native, arguments):
            if shape.system and not prober.takes_results(native, arguments, system=True):
                native = replace(native, system=False)
            return replace(base, syntax=syntax, shape=native)
    return base


class _Prober:
    """Renders probe conversations."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._parts = False
        self._end = time.thread_time() + LEARNING_S

    def render(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str | None:
        if time.thread_time() > self._end:
            raise self._renderer.refusal(LimitError(f"more than {LEARNING_S:g} seconds in all"))
        if self._parts:
            messages = [_in_parts(one) for one in messages]
        return self._renderer.attempt(messages, now=CLOCK, **options)

    def has(self, messages: Sequence[Mapping[str, Any]], *texts: str, **options: Any) -> bool:
        found = self.render(messages, **options)
        return found is not None and all(text in found for text in texts)

    def shape(self) -> TemplateAbilities:
        user, reply = _turn("user", _USER), _turn("assistant", _TEXT)
        system = _turn("system", _SYSTEM)
        self._renderer.takes_no_list([user])
        if not self.has([user], _USER):
            self._parts = self.has([_in_parts(user)], _USER)
        supported = self.has([system, user], _SYSTEM, _USER)
        if not supported and not self.has([user], _USER):
            try:
                self._renderer.render([user], now=CLOCK)
            except Exception as error:  # noqa: BLE001 - source of others: it may raise anything
                raise self._renderer.refusal(error) from None
            raise self._renderer.refusal(ValueError("it leaves out the user's turn"))
        kept = self.has([system, user, reply, user, reply, user] if supported else
                        [user, reply, user, reply, user], _TEXT)  # fmt: skip
        if not kept:
            raise self._renderer.refusal(ValueError("it leaves out the assistant's turns"))
        doubled = [user, _turn("user", _RESULT), reply, _turn("assistant", _THOUGHT), user]
        return TemplateAbilities(
            parts=self._parts,
            system=supported,
            alternate=not self.has(doubled, _USER, _RESULT, _TEXT, _THOUGHT),
        )

    def switch(self) -> bool:
        user = [_turn("user", _USER)]
        plain = self.render(user)
        return plain is not None and (
            self.render(user, thinking=False) != self.render(user, thinking=True)
        )

    def text_open(self, switch: bool) -> str:
        """Return the marker that a template puts before an assistant's text, "" for none."""
        user = _turn("user", _USER)
        prompt = self.render([user], thinking=False if switch else None) or ""
        text = self.render([user, _turn("assistant", _TEXT)], generate=False) or ""
        lead = text.partition(_TEXT)[0]
        shown = lead[len(prompt) :] if lead.startswith(prompt) else ""
        return shown if _MARKER.search(shown) and not any(x[0] in shown for x in _TAGS) else ""

    def reasoning(self, switch: bool, text_open: str) -> tuple[Reasoning | None, bool]:
        """Return the tags of reasoning, and whether the generation prompt opens it."""
        user = _turn("user", _USER)
        prompt = self.render([user], thinking=True if switch else None) or ""
        for tags in _TAGS:
            if prompt.rstrip().endswith(tags[0]):
                return Reasoning(*tags), True
        fields = dict.fromkeys(
            ("reasoning_content", "thinking", "reasoning", "tool_plan"), _THOUGHT
        )
        turns = ({**_turn("assistant", _TEXT), **fields},
                 {**_with_calls([ToolCall(PROBE_NAMES[0])], "object"), **fields})  # fmt: skip
        for turn in turns:
            tools = _tools() if "tool_calls" in turn else ()
            asked = self.render([user], thinking=True if switch else None, tools=tools) or ""
            shown = self.render([user, turn], generate=False, tools=tools)
            before, found, rest = (shown or "").partition(_THOUGHT)
            start = before[len(same_begin(before, asked)) :].strip()
            start = start or next((x for x, _ in _TAGS if before.rstrip().endswith(x)), "")
            after = rest.partition(_TEXT)[0] if _TEXT in rest else _tag(rest)
            after = after.removesuffix(text_open).strip()
            if found and after and _MARKER.search(start) and _MARKER.search(after):
                return Reasoning(start, after), False
        for tags in _TAGS:
            if all(one in self._renderer.source for one in tags):
                return Reasoning(*tags), False
        return None, False

    def lists_tools(self) -> bool:
        return self.has([_turn("user", _USER)], _USER, *PROBE_NAMES, _DESCRIPTION, tools=_tools()) or (
            self.has([_turn("system", _SYSTEM), _turn("user", _USER)],
                     _USER, *PROBE_NAMES, _DESCRIPTION, tools=_tools())
        )  # fmt: skip

    def turn(self, arguments: str, switch: bool, reasoning: Reasoning | None) -> RenderCalls:
        """Return how the template writes an assistant's calls after the generation prompt."""
        user = _turn("user", _USER)
        options: dict[str, Any] = {"tools": _tools(), "thinking": False if switch else None}
        text = self.render([user, _turn("assistant", _TEXT)], generate=False, **options) or ""
        lead, _, tail = text.partition(_TEXT)
        prompt = self.render([user], generate=True, **options) or ""

        def write(calls: Sequence[ToolCall]) -> str | None:
            shown = self.render([user, _with_calls(calls, arguments)], generate=False, **options)
            if shown is None or _USER not in shown:
                return None
            begin = prompt if shown.startswith(prompt) else common_prefix(lead, shown)
            if _USER not in begin:
                return None
            end = common_suffix(tail, shown[len(begin) :])
            body = shown[len(begin) : len(shown) - len(end)]
            return _without_empty(body, reasoning)

        return write

    def takes_results(
        self, shape: TemplateAbilities, arguments: str, *, system: bool = False
    ) -> bool:
        calls = [
            ToolCall(PROBE_NAMES[0], {"a": "x"}, "Qx7Zw2Kp9"),
            ToolCall(PROBE_NAMES[1], {"a": "y"}, "Vy4Nt8Rm3"),
        ]
        results = [
            {"role": "tool", "name": one.name, "tool_call_id": one.id, "content": f"{_RESULT}{at}"}
            for at, one in enumerate(calls)
        ]
        if shape.several:
            middle = [_with_calls(calls, arguments), *results]
        else:
            middle = [
                _with_calls(calls[:1], arguments), results[0],
                _with_calls(calls[1:], arguments), results[1],
            ]  # fmt: skip
        first = [_turn("system", _SYSTEM)] if system else []
        talk = [*first, _turn("user", _USER), *middle]
        seen = (
            *((_SYSTEM,) if system else ()),
            _USER,
            f"{_RESULT}0",
            f"{_RESULT}1",
            PROBE_NAMES[0],
            PROBE_NAMES[1],
        )
        more = [*talk, _turn("assistant", _TEXT), _turn("user", _THOUGHT)]
        return self.has(talk, *seen, tools=_tools()) and self.has(
            more, *seen, _TEXT, _THOUGHT, tools=_tools()
        )


def _tag(text: str) -> str:
    found = _MARKER.match(text.strip())
    return found[0] if found else ""


def _without_empty(body: str, reasoning: Reasoning | None) -> str:
    """Return what a turn says without an empty block of reasoning before it."""
    if reasoning is None:
        return body
    block = rf"\s*{re.escape(reasoning.open)}\s*{re.escape(reasoning.close)}\s*"
    return re.sub(rf"\A{block}", "", body)


def _in_parts(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {**turn, "content": [{"type": "text", "text": turn["content"]}]}


def _turn(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _with_calls(calls: Sequence[ToolCall], arguments: str) -> dict[str, Any]:
    if not calls:
        return _turn("assistant", "")
    written = [
        {
            "id": one.id,
            "type": "function",
            "function": {
                "name": one.name,
                "arguments": to_json(one.arguments) if arguments == "text" else one.arguments,
            },
        }
        for one in calls
    ]
    return {**_turn("assistant", ""), "tool_calls": written}


def _tools() -> list[dict[str, Any]]:
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string", "description": _DESCRIPTION}},
        "required": ["a"],
    }
    return [
        {
            "type": "function",
            "function": {"name": name, "description": _DESCRIPTION, "parameters": parameters},
        }
        for name in PROBE_NAMES
    ]

"""A path of the search as a conversation: messages, tools, and what the next reply may be. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from toolsrv_runtime.agent import plan, prompts
from toolsrv_runtime.agent.tools import forms, no_function_fits
from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.formats.base import FINISH, Step, View
from toolsrv_runtime.formats.fit import Shape


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked at a node of the search.

    ``note`` is said by the
    user at the end, after ``rejected``, the reply that it sends back ("" for none).
    """

    view: View
    expected: Expected
    now: datetime
    note: str = ""
    rejected: str = ""
    max_tokens: int = 512

    def documents(self) -> list[list[str]]:
        """Return the view's functions as JSON, each in all its forms."""
        return [[_dumped(one) for one in forms(each)] for each in self.view.functions]

    def observations(self) -> list[str]:
        """Return the results that stand in the request, oldest first."""
        return [step.observation for step in self.view.path]

    def request(self, shape: Shape) -> ChatRequest:
        """Return the conversation with what ``shape`` leaves of functions and results."""
        seen = [
            replace(step, observation=text)
            for step, text in zip(self.view.path, shape.observations, strict=True)
        ]
        tools = (*(_loaded(one) for one in shape.documents if one), no_function_fits())
        names = {one.name for one in tools}
        expected = replace(
            self.expected, names=tuple(one for one in self.expected.names if one in names)
        )
        return ChatRequest(
            tuple(self._messages(seen)), tools, expected, max_tokens=self.max_tokens, now=self.now
        )

    def _messages(self, path: Sequence[Step]) -> list[Message]:
        told: list[Message] = [
            SystemMessage(prompts.SYSTEM.format(today=prompts.today(self.now))),
            UserMessage(plan.asked(self.view)),
        ]
        for question, answer in self.view.answers:
            told += [AssistantMessage(question), UserMessage(answer)]
        for number, step in enumerate(path):
            if step.move.function == FINISH:
                continue
            call = call_of(step, number)
            told.append(AssistantMessage(step.move.thought or "", (call,)))
            told.append(ToolMessage(call, step.observation))
        if self.rejected:
            told.append(AssistantMessage(self.rejected))
        if self.note:
            told.append(UserMessage(self.note))
        return told


def call_of(step: Step, number: int) -> ToolCall:
    """Return a step's call, with an id that its place on the path determines."""
    try:
        arguments = json.loads(step.move.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = {}
    return ToolCall(
        step.move.function, arguments if isinstance(arguments, dict) else {}, call_id(number)
    )


def call_id(number: int) -> str:
    """Return nine alphanumerics, one id for each number."""
    return f"call{number:05d}"


def _dumped(tool: Tool) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False)


def _loaded(document: str) -> Tool:
    name, description, parameters = json.loads(document)
    return Tool(name, description, parameters)

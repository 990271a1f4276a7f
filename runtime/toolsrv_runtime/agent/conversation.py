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
from toolsrv_runtime.formats.base import FINISH, Move, Step, View
from toolsrv_runtime.formats.fit import Shape


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked at a node of the search.

    ``note`` is said by the
    user at the end, after ``rejected``, the reply that it sends back ("" for none). ``several``: the
    model may make several calls in one reply.
    """

    view: View
    expected: Expected
    now: datetime
    note: str = ""
    rejected: str = ""
    max_tokens: int = 512
    several: bool = False

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
        system = prompts.SYSTEM_SEVERAL if self.several else prompts.SYSTEM
        told: list[Message] = [
            SystemMessage(system.format(today=prompts.calendar(self.now))),
            UserMessage(plan.asked(self.view)),
        ]
        for question, answer in self.view.answers:
            told += [AssistantMessage(question), UserMessage(answer)]
        for turn in _turns(path):
            results = [
                ToolMessage(call_of(step, number), step.observation) for number, step in turn
            ]
            calls = tuple(one.call for one in results)
            told += [AssistantMessage(turn[0][1].move.thought or "", calls), *results]
        if self.rejected:
            told.append(AssistantMessage(self.rejected))
        if self.note:
            told.append(UserMessage(self.note))
        return told


def _turns(path: Sequence[Step]) -> list[list[tuple[int, Step]]]:
    """Return the calls of a path with their places, those that came in one reply together."""
    turns: list[list[tuple[int, Step]]] = []
    for number, step in enumerate(path):
        if step.move.function == FINISH:
            continue
        if number and turns and path[number - 1].move.is_followed_by(step.move):
            turns[-1].append((number, step))
        else:
            turns.append([(number, step)])
    return turns


def call_of(step: Step, number: int) -> ToolCall:
    """Return a step's call, with an id that its place on the path determines."""
    return call_of_move(step.move, number)


def call_of_move(move: Move, number: int) -> ToolCall:
    """Return a move's call, with an id that ``number`` determines."""
    return ToolCall(move.function, move.parsed, call_id(number))


def call_id(number: int) -> str:
    """Return nine alphanumerics, one id for each number."""
    return f"call{number:05d}"


def _dumped(tool: Tool) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False)


def _loaded(document: str) -> Tool:
    name, description, parameters = json.loads(document)
    return Tool(name, description, parameters)

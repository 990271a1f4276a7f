"""The ChatModel port: a conversation with tools in, tool calls or text out.

One shape for every chat model: a local GGUF, an OpenAI-compatible server, an MCP client's model, a
script. A chat model knows nothing of search trees, APIs or budgets: the agent writes the request
and judges the reply. Replies are data; nothing in them is carried out here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from toolsrv_runtime.stop import Stop

Finish = Literal["complete", "length"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call; ``parameters`` is a closed JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the tool in OpenAI's nested form, as servers and chat templates take it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. ``arguments`` is an object in the order in which it was written.

    ``id`` is nine characters of ``[A-Za-z0-9]`` (Mistral's templates take no other), unique within
    a conversation.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions; at most one, at the beginning."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the person, or the agent in the person's place, says."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A reply of the model: text, calls, or both. Each call's ``ToolMessage`` follows, in order."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one call, as the model reads it."""

    call: ToolCall
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class Expected:
    """What a reply may be; a model that can be held in shape is held to it.

    ``names``: which of the request's tools may be called (the others are only shown); empty for
    none. ``required_only``: those of them whose optional arguments are left out. At most ``calls``
    calls. ``text``: plain text is allowed instead of calls. ``excluded`` are calls that must not be
    made again. ``schema``: the text is JSON that satisfies it (no calls). ``copied``: numbers and
    capitalised words of the text stand in one of these texts (a sentence may begin with any).
    ``one_of``: the text holds one of these values as it is written here; ``copied`` is left out
    then. ``reasoning`` is how many tokens a model that reasons may spend on it; 0 asks a model that
    can do without to do without.
    """

    names: tuple[str, ...] = ()
    calls: int = 1
    text: bool = True
    excluded: tuple[ToolCall, ...] = ()
    schema: dict[str, Any] | None = None
    copied: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    reasoning: int = 0
    required_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is to reply to. ``now`` is the clock that chat templates read."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    expected: Expected = Expected()
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply. ``problem`` says what is wrong with it ("" for nothing); ``raw`` is what came.

    A call of a tool that is not offered, or with arguments that are no JSON object, is a problem,
    never dropped. ``dialect`` names the syntax in which calls were written, for the record.
    ``cached`` of ``prompt_tokens`` were not evaluated again; ``forced`` of ``generated`` were left
    no choice by a grammar. ``finish`` "length": it broke off at ``max_tokens``.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    problem: str = ""
    raw: str = ""
    dialect: str = ""
    finish: Finish = "complete"
    prompt_tokens: int = 0
    cached: int = 0
    generated: int = 0
    forced: int = 0

    @property
    def parsed(self) -> Any:
        """The text as JSON, None where it is none: of a reply that a schema was asked for."""
        return _parsed(self.text)

    @property
    def parsed_object(self) -> dict[str, Any]:
        """The text as a JSON object, empty where it is none."""
        return self.parsed if isinstance(self.parsed, dict) else {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@runtime_checkable
class ChatModel(Protocol):
    """Something that replies to conversations; may be asked from any thread."""

    @property
    def name(self) -> str:
        """The model and where it is, for records."""

    @property
    def syntax(self) -> str:
        """How its calls are written or held in shape, as far as that is known; for records."""

    @property
    def context(self) -> int | None:
        """Tokens that prompt and reply may have together; None where only a refusal tells."""

    def count(self, request: ChatRequest) -> int | None:
        """Return the tokens of a request's prompt; None where only the server can count."""

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the reply, or None when ``stop`` was set before it was complete. Blocks.

        Raises:
            ModelError: nobody gave a usable reply.
            ContextError: the conversation is longer than the model takes
                (``RefusedLengthError`` where a server said so).
        """

    def close(self) -> None:
        """Let go of what is open."""


@runtime_checkable
class LocalModel(ChatModel, Protocol):
    """A chat model in this process: it can measure texts and say how likely given replies are."""

    @property
    def several(self) -> bool:
        """Whether its call syntax can hold several calls in one reply."""

    def tokens(self, text: str) -> int:
        """Return the tokens of a text that stands in a prompt as data."""

    def begins_call(self, raw: str) -> bool:
        """Whether the beginning of a reply is that of a call in the model's syntax."""

    def log_probabilities(self, request: ChatRequest, replies: Sequence[str]) -> Sequence[float]:
        """Return the natural-log probability of each of ``replies`` as the whole reply."""

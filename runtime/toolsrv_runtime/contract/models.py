"""Ports to language models: ``Engine`` and ``ChatModel``.

An ``Engine`` continues a prompt inside a grammar. It knows tokens, logits and grammars, and no
conversations, functions or trees. A ``ChatModel`` replies to a conversation with tools by tool
calls or text: a local GGUF, an OpenAI-compatible server, an MCP client's model or a script. It
knows no search trees, APIs or budgets; the agent writes the request and judges the reply. Replies
are data: nothing in them is executed. All methods block, and may be called from several threads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from toolsrv_runtime.stop import Stop

FinishReason = Literal["complete", "length"]


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
class ReplyConstraints:
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
    expected: ReplyConstraints = ReplyConstraints()
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply. ``problem`` says what is wrong with it ("" for nothing); ``raw`` is what came.

    A call of a tool that is not available, or with arguments that are no JSON object, is a problem,
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
    finish: FinishReason = "complete"
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt.

    ``special`` text comes from a format and may spell control tokens; other text is data (task,
    observation, catalog) whose control tokens stay plain characters. (Words that a vocabulary
    defines for a format, like `` use #1``, are read as such everywhere; they control nothing.)
    ``tokens`` are known for text that the engine wrote itself, so that the next prompt repeats them
    exactly. ``shared``: the prompt up to the end of this piece repeats from task to task.
    """

    text: str
    special: bool = False
    tokens: tuple[int, ...] | None = None
    shared: bool = False


Prompt = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; ``temperature`` 0 is greedy and needs no seed."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """One continuation.

    ``finish``: ``grammar`` (complete, or a stop text of the model's profile was written),
    ``length`` (``max_tokens`` reached), ``stopped`` (Stop was set). Token counts are per call;
    ``evaluated`` leaves out the prefix that was already cached.
    """

    text: str
    tokens: tuple[int, ...]
    finish: Literal["grammar", "length", "stopped"]
    prompt_tokens: int
    evaluated: int
    forced: int


@dataclass(frozen=True, slots=True)
class OptionScores:
    """Natural-log probabilities of alternative continuations, and what computing them cost."""

    values: tuple[float, ...]
    prompt_tokens: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens of a vocabulary that are more than their text, by text.

    ``control`` tokens print nothing and only template text may spell them; ``user_defined`` ones
    are visible words that the tokenizer never splits (Qwen's ``<tool_call>``). ``bos`` and ``eos``
    are the texts that chat templates read under ``bos_token`` and ``eos_token``, "" for none.
    """

    bos: str = ""
    eos: str = ""
    control: Mapping[str, int] = field(default_factory=dict)
    user_defined: Mapping[str, int] = field(default_factory=dict)


class Engine(Protocol):
    """Something that continues prompts. Calls may come from several threads at once."""

    @property
    def name(self) -> str:
        """The model's name, for records."""

    @property
    def context(self) -> int:
        """How many tokens prompt and reply may have together."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """The vocabulary's special tokens, as chat templates and grammars name them."""

    def count(self, prompt: Prompt) -> int:
        """Return the prompt's length in tokens."""

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,
        max_tokens: int,
        sampling: Sampling = Sampling(),
        stop: Stop | None = None,
        excluded: Sequence[str] = (),
    ) -> Completion:
        """Continue ``prompt`` inside ``grammar`` (llguidance's Lark dialect).

        ``excluded`` are complete texts that the reply must not be: where it would be one, another
        value, name or outcome is chosen, the likeliest (see ``engine.sampling``). ``<[id]>`` in the
        grammar stands for a token; control tokens are shown in the reply's text, and every token
        that ends a reply in the model's vocabulary ends it and is no part of it.

        Raises:
            ContextError: the prompt leaves no room for a reply.
            GrammarError: the grammar does not compile, no text fulfils it, or only excluded ones.
        """

    def score(self, prompt: Prompt, options: Sequence[str]) -> OptionScores:
        """Return log P(option | prompt) of each option's tokens."""

    def close(self) -> None:
        """Free the model."""

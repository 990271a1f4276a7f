"""The ChatModel port: a conversation with functions in, a function call out.

Beside ``engine.base``: an engine knows tokens and grammars, a chat model is somebody else's
server (or client) that is asked in messages. It does not know trees, paths or budgets; a format
writes the request and judges the call. Replies are data: nothing in them is carried out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from toolsrv_runtime.stop import Stop

Mode = Literal["tools", "json_schema", "grammar", "none"]
"""How a call is held in shape: the server's own tool calls, ``response_format`` with a JSON
schema, a GBNF grammar, or nothing but the instructions."""


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier call of this conversation and what came of it; ``arguments`` is a JSON object."""

    thought: str
    function: str
    arguments: str
    observation: str


@dataclass(frozen=True, slots=True)
class Request:
    """What the model is to reply to.

    ``functions`` are function objects (``name``, ``description`` and ``parameters`` as a JSON
    schema), of which one is to be called; without any the reply is text. ``note`` is said by the
    user at the end; ``rejected`` is the reply that the note corrects ("" for none).
    """

    instructions: str
    task: str
    functions: tuple[dict[str, Any], ...]
    steps: tuple[Past, ...] = ()
    note: str = ""
    rejected: str = ""
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply. ``function`` is "" where it holds no call, and ``problem`` says why.

    ``arguments`` is the text as it came, unchecked. ``text`` is the reply as the model would read
    it again. Tokens are the server's count; ``cached`` were not evaluated again.
    """

    thought: str
    function: str
    arguments: str
    text: str
    problem: str = ""
    prompt_tokens: int = 0
    cached: int = 0
    generated: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """Something that replies to conversations; may be asked from any thread."""

    @property
    def name(self) -> str:
        """The model and where it is, for records."""

    @property
    def modes(self) -> str:
        """Which ``Mode`` holds its calls in shape, as far as that is known; for records."""

    def reply(self, request: Request, *, stop: Stop) -> Answer | None:
        """Return the reply, or None when ``stop`` was set before it was complete. Blocks.

        Raises:
            ServerError: nobody gave a usable reply.
            RefusedLengthError: the conversation is longer than the model takes.
        """

    def close(self) -> None:
        """Let go of what is open."""

"""The MCP client's own model, by ``sampling/createMessage``: for ``toolsrv serve --model sampling``.

Sampling is deprecated in the protocol since 2026-07-28, and few clients have it; a local model or
a server is the way to prefer. A solve runs in a thread and asks a question; whichever request
follows its run puts it to the client (``questions``).
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.engine import textual
from toolsrv_runtime.engine.chat import Answer, Request
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]

_POLL_S = 0.05
_REPLY_CHARACTERS = 100_000


@dataclass(slots=True)
class ModelQuestion:
    """What the client's model is asked (``Question``). ``error`` says why there is no ``text``."""

    params: CreateMessageRequestParams
    text: str = ""
    error: str = ""
    answered: threading.Event = field(default_factory=threading.Event)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    held: bool = False
    key: str = "model"
    saying: str = "asking your model"

    @property
    def open(self) -> bool:
        """Whether there is no reply yet."""
        return not self.answered.is_set()

    def request(self) -> CreateMessageRequest:
        """Return the request for the client."""
        return CreateMessageRequest(params=self.params)

    async def put(self, ctx: Ctx) -> None:
        """Ask the client in a request of its own."""
        try:
            response = await ctx.session.send_request(
                self.request(),
                CreateMessageResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except MCPError as error:
            self.error = str(error)
            self.answered.set()
        else:
            self.answer(response)

    def answer(self, response: object) -> None:
        """Take the client's response; only text is read."""
        content = getattr(response, "content", None)
        blocks = content if isinstance(content, list) else [content]
        texts = [block.text for block in blocks if isinstance(block, TextContent)]
        self.text = "\n".join(texts)[:_REPLY_CHARACTERS]
        self.error = "" if texts else "it answered without text"
        self.answered.set()


class ClientModel:
    """A ``ChatModel`` that waits for the client; ``question`` is what it is asked now."""

    name = "sampling (the MCP client's model)"
    modes = "none"

    def __init__(self) -> None:
        self.question: ModelQuestion | None = None

    def reply(self, request: Request, *, stop: Stop) -> Answer | None:
        """Return the client's reply; see ``ChatModel.reply``. Tokens are guessed at four characters.

        Raises:
            ServerError: the client refused.
        """
        question = ModelQuestion(_params(request))
        self.question = question
        try:
            while not question.answered.wait(_POLL_S):
                if stop.is_set():
                    return None
        finally:
            self.question = None
        if question.error:
            raise ServerError(
                f"the client's model did not reply: {clean(question.error, 300)}",
                hint="allow it in the client, or give toolsrv a model of its own: --model",
                again=False,
            )
        answer = textual.read(question.text)
        return replace(answer, generated=max(1, len(question.text) // 4))

    def close(self) -> None:
        """Do nothing."""


class Sampling:
    """The client models of all runs, found by the run's ``Stop``."""

    def __init__(self) -> None:
        self._models: WeakKeyDictionary[Stop, ClientModel] = WeakKeyDictionary()

    def model(self, stop: Stop) -> ClientModel:
        """Return the model of the run that ``stop`` belongs to."""
        return self._models.setdefault(stop, ClientModel())


def require(ctx: Ctx) -> None:
    """Raise a UsageError unless the client offers its model."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise UsageError(
            "this server is set to use the client's model, and this client offers none (sampling)",
            hint="set another model: toolsrv config set model '' takes the one that ships",
        )


def _params(request: Request) -> CreateMessageRequestParams:
    system, *turns = textual.messages(request)
    return CreateMessageRequestParams(
        messages=[
            SamplingMessage(
                role=turn["role"],
                content=TextContent(type="text", text=wellformed.text(turn["content"])),
            )
            for turn in turns
        ],
        system_prompt=wellformed.text(system["content"]),
        max_tokens=request.max_tokens,
        temperature=request.temperature,
    )

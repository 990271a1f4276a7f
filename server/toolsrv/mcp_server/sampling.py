"""The MCP client's own model, by ``sampling/createMessage``: for ``toolsrv serve --model sampling``.

Sampling is deprecated in the protocol since 2026-07-28, and few clients have it; a local model or
a server is the way to prefer. A solve runs in a thread and asks a question; whichever request
follows its run puts it to the client. Up to 2025-11-25 that is a request of its own, since then
the tool returns what it needs and is called again with the answer.
"""

from __future__ import annotations

import asyncio
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
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.engine import textual
from toolsrv_runtime.engine.chat import Answer, Request
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]

MODERN = "2026-07-28"
"""From this revision on a server asks by returning."""

MOST_ROUNDS = 8
"""Questions in one request; clients end at ten, and the run goes on with ``get_run``."""

_KEY = "model"
_POLL_S = 0.05
_REPLY_CHARACTERS = 100_000


@dataclass(slots=True)
class Question:
    """What the client's model is asked. ``error`` says why there is no ``text``."""

    params: CreateMessageRequestParams
    text: str = ""
    error: str = ""
    answered: threading.Event = field(default_factory=threading.Event)

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
        self.question: Question | None = None

    def reply(self, request: Request, *, stop: Stop) -> Answer | None:
        """Return the client's reply; see ``ChatModel.reply``. Tokens are guessed at four characters.

        Raises:
            ServerError: the client refused.
        """
        question = Question(_params(request))
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

    async def asked(self, stop: Stop) -> Question:
        """Wait for the run's next question."""
        # set from the thread of the solve, for whichever loop and request happen to look
        while (question := self.model(stop).question) is None or question.answered.is_set():  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        return question


def require(ctx: Ctx) -> None:
    """Raise a UsageError unless the client offers its model."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise UsageError(
            "this server is set to use the client's model, and this client offers none (sampling)",
            hint="set another model: toolsrv config set model '' takes the one that ships",
        )


def by_returning(ctx: Ctx) -> bool:
    """Whether the client is asked by returning from the request."""
    return (ctx.protocol_version or "") >= MODERN


async def put(ctx: Ctx, question: Question) -> None:
    """Ask the client in a request of its own."""
    try:
        response = await ctx.session.send_request(
            CreateMessageRequest(params=question.params),
            CreateMessageResult,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except MCPError as error:
        question.error = str(error)
        question.answered.set()
    else:
        question.answer(response)


def returned(run_id: str, rounds: int, question: Question) -> InputRequiredResult:
    """Return what makes the client ask its model and call again."""
    return InputRequiredResult(
        input_requests={_KEY: CreateMessageRequest(params=question.params)},
        request_state=f"{run_id} {rounds + 1}",
    )


def resumed(ctx: Ctx) -> tuple[str, int]:
    """Return the run that a repeated call goes on with, and its rounds so far; "" for none."""
    run_id, _, rounds = (ctx.request_state or "").partition(" ")
    return run_id, int(rounds or 0)


def response(ctx: Ctx) -> object | None:
    """Return the client's answer that a repeated call brings."""
    return (ctx.input_responses or {}).get(_KEY)


def _params(request: Request) -> CreateMessageRequestParams:
    system, *turns = textual.messages(request)
    return CreateMessageRequestParams(
        messages=[
            SamplingMessage(
                role=turn["role"], content=TextContent(type="text", text=turn["content"])
            )
            for turn in turns
        ],
        system_prompt=system["content"],
        max_tokens=request.max_tokens,
        temperature=request.temperature,
    )

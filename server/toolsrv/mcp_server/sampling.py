"""The MCP client's model through ``sampling/createMessage`` (``--model sampling``).

Tools go as tools where the client declares ``sampling.tools`` (2025-11-25 and later), else in plain
messages (``models.textual``). Sampling is deprecated in the protocol since 2026-07-28, and few
clients have it; a local model or a server is the way to prefer. A solve runs in a thread and asks
a question; whichever request follows its run puts it to the client (``elicitation``).
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    SamplingMessage,
    SamplingMessageContentBlock,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models import textual
from toolsrv_runtime.models.conversation import (
    RawCall,
    allowed_tools,
    normalize_conversation,
    parse_native_reply,
)
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]

_POLL_S = 0.05
_REPLY_CHARACTERS = 100_000


@dataclass(slots=True)
class ModelQuestion:
    """A request to the client's model (``ClientQuestion``).

    ``tools``: the client takes tools; set by whoever puts the question. ``error`` says why there
    is no ``reply``.
    """

    chat: ChatRequest
    tools: bool = False
    reply: ChatReply | None = None
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
        write = _with_tools if self.tools else _plain
        return CreateMessageRequest(params=write(self.chat))

    async def put(self, ctx: Ctx) -> None:
        """Ask the client in a request of its own."""
        kind: type[CreateMessageResult | CreateMessageResultWithTools]
        kind = CreateMessageResultWithTools if self.tools else CreateMessageResult
        try:
            response = await ctx.session.send_request(
                self.request(),
                kind,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except MCPError as error:
            self.error = str(error)
            self.answered.set()
        else:
            self.answer(response)

    def answer(self, response: object) -> None:
        """Take the client's response; text and tool calls are read, and nothing else."""
        content = getattr(response, "content", None)
        blocks = content if isinstance(content, list) else [content]
        texts = [one.text for one in blocks if isinstance(one, TextContent)]
        calls = [
            RawCall(one.name, (json.dumps(one.input),), one.id)
            for one in blocks
            if isinstance(one, ToolUseContent)
        ]
        if texts or calls:
            text = "\n".join(texts)[:_REPLY_CHARACTERS]
            stopped = getattr(response, "stop_reason", None)
            finish: FinishReason = "length" if stopped == "maxTokens" else "complete"
            if self.tools:
                self.reply = parse_native_reply(self.chat, text, calls, finish=finish)
            else:
                self.reply = textual.parse_reply(self.chat, text, finish=finish)
        else:
            self.error = "it answered without text"
        self.answered.set()


class ClientModel:
    """A ``ChatModel`` that waits for the client; ``question`` is what it is asked now."""

    name = "sampling (the MCP client's model)"
    syntax = "sampling"
    context = None

    def __init__(self) -> None:
        self.question: ModelQuestion | None = None

    def count(self, request: ChatRequest) -> int | None:
        """Return None: only the client can count."""
        del request
        return None

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the client's reply; see ``ChatModel.reply``.

        Tokens are estimated at four characters each.

        Raises:
            ServerError: the client refused.
        """
        question = ModelQuestion(request)
        self.question = question
        try:
            while not question.answered.wait(_POLL_S):
                if stop.is_set():
                    return None
        finally:
            self.question = None
        if question.reply is None:
            raise ServerError(
                f"the client's model did not reply: {clean(question.error, 300)}",
                hint="allow it in the client, or give toolsrv a model of its own: --model",
                again=False,
            )
        return replace(question.reply, generated=max(1, len(question.reply.raw) // 4))

    def close(self) -> None:
        """Do nothing."""


class Sampling:
    """The client models of all runs, found by the run's ``Stop``."""

    def __init__(self) -> None:
        self._models: WeakKeyDictionary[Stop, ClientModel] = WeakKeyDictionary()

    def model(self, stop: Stop) -> ClientModel:
        """Return the model of the run that ``stop`` belongs to."""
        return self._models.setdefault(stop, ClientModel())

    def question(self, stop: Stop, ctx: Ctx) -> ModelQuestion | None:
        """Return what a run asks its model now, written as the client of ``ctx`` takes it."""
        question = self.model(stop).question
        if question is not None and not question.held:
            question.tools = takes_tools(ctx)
        return question


def takes_tools(ctx: Ctx) -> bool:
    """Whether the client's model can be given tools."""
    capabilities = ctx.client_capabilities
    offered = None if capabilities is None else capabilities.sampling
    return offered is not None and offered.tools is not None


def require(ctx: Ctx) -> None:
    """Raise a UsageError unless the client offers its model."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise UsageError(
            "this server is set to use the client's model, and this client offers none (sampling)",
            hint="set another model: toolsrv config set model '' takes the one that ships",
        )


def _plain(request: ChatRequest) -> CreateMessageRequestParams:
    """Write a request in plain messages, the tools in the system prompt."""
    turns = textual.render_messages(request)
    system = next((one["content"] for one in turns if one["role"] == "system"), None)
    messages = [
        SamplingMessage(role=one["role"], content=_text(one["content"]))
        for one in turns
        if one["role"] != "system"
    ]
    return _params(request, system, messages)


def _with_tools(request: ChatRequest) -> CreateMessageRequestParams:
    """Write a request with tools, calls and results as the protocol has them.

    The results of one turn stand in one user message, which by the protocol holds nothing else. A
    choice among some of the tools is kept to by sending those alone: no mode names them.
    """
    expected = request.expected
    turns: list[Message] = list(request.messages)
    if note := textual.final_instruction(request, functions=False):
        turns.append(UserMessage(note))
    system, messages = None, list[SamplingMessage]()
    results: list[SamplingMessageContentBlock] = []
    for turn in (*normalize_conversation(turns), None):
        if isinstance(turn, ToolMessage):
            results.append(ToolResultContent(tool_use_id=turn.call.id, content=[_text(turn.text)]))
            continue
        if results:
            messages.append(SamplingMessage(role="user", content=results))
            results = []
        if isinstance(turn, SystemMessage):
            system = turn.text
        elif isinstance(turn, UserMessage):
            messages.append(SamplingMessage(role="user", content=_text(turn.text)))
        elif turn is not None:
            messages.append(SamplingMessage(role="assistant", content=_assistant(turn)))
    listed = allowed_tools(request) or request.tools
    mode: Literal["auto", "required", "none"] = "auto" if expected.text else "required"
    if not expected.names:
        mode = "none"
    params = _params(request, system, messages)
    if not listed:
        return params
    tools = [
        Tool(name=one.name, description=one.description, input_schema=one.parameters)
        for one in listed
    ]
    return params.model_copy(update={"tools": tools, "tool_choice": ToolChoice(mode=mode)})


def _assistant(turn: AssistantMessage) -> list[SamplingMessageContentBlock]:
    blocks: list[SamplingMessageContentBlock] = []
    if turn.text or not turn.calls:
        blocks.append(_text(turn.text))
    blocks += [
        ToolUseContent(name=one.name, id=one.id, input=wellformed.value(one.arguments))
        for one in turn.calls
    ]
    return blocks


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=wellformed.text(text))


def _params(
    request: ChatRequest, system: str | None, messages: Sequence[SamplingMessage]
) -> CreateMessageRequestParams:
    return CreateMessageRequestParams(
        messages=list(messages),
        system_prompt=None if system is None else wellformed.text(system),
        max_tokens=request.max_tokens + request.expected.reasoning,
        temperature=request.temperature,
    )

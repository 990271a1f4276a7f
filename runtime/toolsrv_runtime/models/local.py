"""A GGUF model as a chat model: its template renders, a grammar holds, its syntax is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.engine.base import Engine, Sampling
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.tool_template import ToolTemplate

ATTEMPTS = 3
"""Replies asked for until one is none of the excluded calls."""


class LocalChatModel:
    """An engine with the call syntax of its chat template; thread-safe as the engine is."""

    def __init__(self, engine: Engine, template: ToolTemplate) -> None:
        self._engine = engine
        self._template = template

    @property
    def name(self) -> str:
        """The file's stem."""
        return self._engine.name

    @property
    def syntax(self) -> str:
        """How calls are written: learnt from the template, or generic."""
        return self._template.syntax

    @property
    def context(self) -> int | None:
        """Tokens of prompt and reply together."""
        return self._engine.context

    def count(self, request: ChatRequest) -> int | None:
        """Return the tokens of the rendered prompt."""
        return self._engine.count(self._template.render(request))

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the reply inside the request's grammar; see ``ChatModel.reply``."""
        prompt, grammar = self._template.render(request), self._template.grammar(request)
        told: ChatReply | None = None
        for attempt in range(ATTEMPTS):
            reply = self._engine.generate(
                prompt,
                grammar=grammar,
                max_tokens=request.max_tokens,
                sampling=Sampling(request.temperature, request.top_p, seed=request.seed + attempt),
                stop=stop,
            )
            if reply.finish == "stopped":
                return None
            parsed = self._template.parse(reply.text, request)
            told = replace(
                parsed,
                finish="length" if reply.finish == "length" else "complete",
                prompt_tokens=reply.prompt_tokens,
                cached=max(0, reply.prompt_tokens - reply.evaluated),
                generated=len(reply.tokens),
                forced=reply.forced,
            )
            if not any(
                _same(call, one) for call in told.calls for one in request.expected.excluded
            ):
                return told
            break
        return told

    def log_probabilities(self, request: ChatRequest, replies: Sequence[str]) -> Sequence[float]:
        """Return the log-probability of each reply behind the request's prompt."""
        return self._engine.score(self._template.render(request), replies).values

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()


def _same(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and one.arguments == other.arguments

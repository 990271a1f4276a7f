"""GGUF model as a chat model: rendered by its template, constrained by a grammar, parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolsrv_runtime.contract.models import ChatReply, ChatRequest, Engine, Piece, Sampling
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.tool_template import ToolTemplate


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
    def several(self) -> bool:
        """Whether a reply may hold several calls."""
        return self._template.call_syntax.several

    @property
    def context(self) -> int | None:
        """Tokens of prompt and reply together."""
        return self._engine.context

    def count(self, request: ChatRequest) -> int | None:
        """Return the tokens of the rendered prompt."""
        return self._engine.count(self._template.render(request))

    def tokens(self, text: str) -> int:
        """Return the tokens of a text that stands in a prompt as data."""
        return self._engine.count((Piece(text),))

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the reply inside the request's grammar; see ``ChatModel.reply``."""
        reply = self._engine.generate(
            self._template.render(request),
            grammar=self._template.grammar(request),
            max_tokens=request.max_tokens,
            sampling=Sampling(request.temperature, request.top_p, seed=request.seed),
            stop=stop,
            excluded=self._template.excluded(request),
        )
        if reply.finish == "stopped":
            return None
        return replace(
            self._template.parse(
                reply.text, request, finish="length" if reply.finish == "length" else "complete"
            ),
            prompt_tokens=reply.prompt_tokens,
            cached=max(0, reply.prompt_tokens - reply.evaluated),
            generated=len(reply.tokens),
            forced=reply.forced,
        )

    def begins_call(self, raw: str) -> bool:
        """Whether the beginning of a reply is that of a call in the model's syntax."""
        return self._template.begins_call(raw)

    def log_probabilities(self, request: ChatRequest, replies: Sequence[str]) -> Sequence[float]:
        """Return the log-probability of each reply behind the request's prompt."""
        return self._engine.score(self._template.render(request), replies).values

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

"""A chat template with the call syntax learnt from it: render, grammar, parse."""

from __future__ import annotations

import hashlib
from typing import Any

from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.engine.base import Prompt, SpecialTokens
from toolsrv_runtime.templates.call_syntax import CallSyntax, FoundCall
from toolsrv_runtime.templates.conversation import template_messages, tool_list
from toolsrv_runtime.templates.learning import Learnt, learn
from toolsrv_runtime.templates.marking import Pieces
from toolsrv_runtime.templates.rendering import Renderer
from toolsrv_runtime.templates.reply_grammar import reply_grammar

__all__ = ["CallSyntax", "ToolTemplate"]


class ToolTemplate:
    """A chat template with the call syntax learnt from it.

    ``source`` is Jinja source, None for a file without a template. ``place``: the profile's file
    that holds the source, "" for the model's own. ``tokens``: the vocabulary's special tokens.
    Learns once. Raises ModelError where the template is unusable.
    """

    def __init__(
        self, source: str | None, *, place: str = "", tokens: SpecialTokens = SpecialTokens()
    ) -> None:
        self._tokens = tokens
        self._renderer = None if source is None else Renderer(source, place, tokens)
        self._learnt = Learnt() if self._renderer is None else learn(self._renderer)
        self._pieces = Pieces(tokens, f"{source or ''}\n{self._learnt.syntax.markers}")

    @property
    def syntax(self) -> str:
        """The call syntax in one line, for records; ``generic`` where none could be learnt."""
        return self._learnt.syntax.describe()

    @property
    def call_syntax(self) -> CallSyntax:
        """How calls are written."""
        return self._learnt.syntax

    def render(self, request: ChatRequest) -> Prompt:
        """Return the prompt: the template's text with the request's texts as data in it."""
        learnt = self._learnt
        messages = template_messages(request.messages, request.tools, learnt.shape, learnt.syntax)
        if self._renderer is None:
            return self._pieces.cut(_plain(messages))
        rendered = self._renderer.render(
            messages,
            tools=tool_list(request.tools) if learnt.shape.native else (),
            now=request.now,
            thinking=False if request.expected.reasoning == 0 and learnt.switch else None,
        )
        return self._pieces.cut(rendered)

    def grammar(self, request: ChatRequest) -> str:
        """Return the grammar (llguidance Lark) of the replies that the request expects."""
        return reply_grammar(self._learnt.syntax, self._tokens, request.tools, request.expected)

    def parse(self, raw: str, request: ChatRequest) -> ChatReply:
        """Return a reply read in the learnt syntax; token counts are left 0."""
        schemas = {tool.name: tool.parameters for tool in request.tools}
        found = self._learnt.syntax.read(raw, schemas) if request.tools else None
        if found is None:
            return ChatReply(text=raw.strip(), raw=raw)
        calls, text = found
        return _reply(calls, text.strip(), raw, request, self.syntax)


def _plain(messages: list[dict[str, Any]]) -> str:
    """Return the turns of a conversation for a model without a template."""
    turns = [f"{one['role'].capitalize()}: {one['content']}\n" for one in messages]
    return "".join([*turns, "Assistant:\n"])


def _reply(
    found: list[FoundCall], text: str, raw: str, request: ChatRequest, dialect: str
) -> ChatReply:
    offered = [tool.name for tool in request.tools]
    calls, problems = [], []
    for index, one in enumerate(found):
        if one.name not in offered:
            problems.append(f"{one.name} is not an available tool ({', '.join(offered)})")
        if isinstance(one.arguments, dict):
            key = f"{len(request.messages)}:{index}:{one.name}:{raw}".encode(errors="replace")
            identity = hashlib.sha256(key).hexdigest()[:9]
            calls.append(ToolCall(one.name, one.arguments, identity))
        else:
            problems.append(f"the arguments of {one.name} are not a JSON object")
    return ChatReply(
        text=text, calls=tuple(calls), problem="; ".join(problems), raw=raw, dialect=dialect
    )

"""A chat template with the call syntax learnt from it: render, grammar, parse."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Finish,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.engine.base import Prompt, SpecialTokens
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates.call_syntax import GENERIC, CallSyntax
from toolsrv_runtime.templates.chat_template import NO_TOKENS
from toolsrv_runtime.templates.conversation import PLAIN, Shape, template_messages, tool_list
from toolsrv_runtime.templates.dialects import read_dialects
from toolsrv_runtime.templates.learning import Learnt, learn
from toolsrv_runtime.templates.marking import Pieces, mark, to_json
from toolsrv_runtime.templates.rendering import Renderer
from toolsrv_runtime.templates.reply_grammar import reply_grammar
from toolsrv_runtime.templates.reply_parser import new_id, read_learnt

__all__ = ["CallSyntax", "ToolTemplate"]

_KEPT = 32
_learnt: OrderedDict[str, Learnt] = OrderedDict()
_turn = threading.Lock()

_CORRECTIONS = (
    # Qwen2.5-Coder files of 2024: an example that no call looks like.
    (
        '{{"name": <function-name>, "arguments": <args-json-object>}}',
        '{"name": <function-name>, "arguments": <args-json-object>}',
    ),
)
"""Wrong texts of known templates, recognised in what they render, and the right ones."""


class ToolTemplate:
    """A chat template with the call syntax learnt from it. Safe for threads.

    ``source`` is Jinja source, None for a file without a template. ``place``: the profile's file
    that holds the source, "" for the model's own. ``tokens``: the vocabulary's special tokens.
    Learns once for each source. Raises ModelError where the template is unusable.
    """

    def __init__(
        self, source: str | None, *, place: str = "", tokens: SpecialTokens = NO_TOKENS
    ) -> None:
        self._tokens = tokens
        self._renderer = None if source is None else Renderer(source, place, tokens)
        self._learnt = Learnt() if self._renderer is None else _learn(self._renderer, tokens)
        self._pieces = Pieces(tokens)
        self._ends = frozenset(tokens.control) | frozenset(filter(None, (tokens.eos,)))

    @property
    def syntax(self) -> str:
        """The call syntax in one line, for records; ``generic`` where none could be learnt."""
        return self._learnt.syntax.describe()

    @property
    def call_syntax(self) -> CallSyntax:
        """How calls are written."""
        return self._learnt.syntax

    def render(self, request: ChatRequest) -> Prompt:
        """Return the prompt: the template's text with the request's texts as data in it.

        Raises ModelError where the template refuses the conversation in every form.
        """
        rendered = self._rendered(request)
        for wrong, right in _CORRECTIONS:
            rendered = rendered.replace(wrong, right)
        tags = self._learnt.reasoning
        if tags is not None and not request.expected.reasoning:
            tail = rendered.rstrip()
            if tail.endswith(tags.open):
                rendered = f"{tail}\n\n{tags.close}\n\n"
        return self._pieces.cut(rendered, _first_user(rendered, request))

    def grammar(self, request: ChatRequest) -> str:
        """Return the grammar (llguidance Lark) of the replies that the request expects."""
        return reply_grammar(self._learnt, self._tokens, request)

    def excluded(self, request: ChatRequest) -> tuple[str, ...]:
        """Return the replies that would make an excluded call alone, as the grammar spells them.

        For ``Engine.generate``: a grammar cannot exclude them without forcing values close by.
        """
        identity = new_id(request, 0)
        return tuple(
            self.call_syntax.write([replace(one, id=identity)]) for one in request.expected.excluded
        )

    def parse(self, raw: str, request: ChatRequest, *, finish: Finish = "complete") -> ChatReply:
        """Return a reply read in the learnt syntax, else in another; counts are left 0.

        A reply that broke off (``finish`` "length") is not completed.
        """
        reply = read_learnt(raw, self._learnt, request, self._ends)
        if not reply.calls and not reply.problem and request.tools:
            tags = self._learnt.reasoning
            opened = self._learnt.opened and request.expected.reasoning > 0
            begun = f"{tags.open}{raw}" if tags is not None and opened else raw
            other = read_dialects(begun, request, finish=finish)
            reply = reply if other is None else replace(other, raw=raw)
        return replace(reply, finish=finish)

    def begins_call(self, raw: str) -> bool:
        """Whether the beginning of a reply, as far as it goes, is that of a call."""
        opener, begun = self.call_syntax.opener.strip(), raw.strip()
        return bool(begun) and (begun.startswith(opener) or opener.startswith(begun))

    def _rendered(self, request: ChatRequest) -> str:
        """Return the first rendering that holds every message and tool."""
        if self._renderer is None:
            messages = template_messages(request.messages, request.tools, PLAIN, self.call_syntax)
            turns = [f"{one['role'].capitalize()}: {one['content']}\n" for one in messages]
            return "".join([*turns, "Assistant:\n"])
        fault: Exception = ValueError("it leaves out a turn")
        for shape in _shapes(self._learnt.shape):
            try:
                rendered = self._render(self._renderer, request, shape)
            except ModelError:
                raise
            except Exception as error:  # noqa: BLE001 - it may like another shape
                fault = error
                continue
            if _holds_all(rendered, request):
                return rendered
        raise self._renderer.refusal(fault) from None

    def _render(self, renderer: Renderer, request: ChatRequest, shape: Shape) -> str:
        learnt = self._learnt
        syntax = learnt.syntax if shape.native == learnt.shape.native else GENERIC
        switch = bool(request.expected.reasoning) if learnt.switch else None
        return renderer.render(
            template_messages(request.messages, request.tools, shape, syntax),
            tools=tool_list(request.tools) if shape.native else (),
            now=request.now,
            thinking=switch,
        )


def _learn(renderer: Renderer, tokens: SpecialTokens) -> Learnt:
    """Return what a template teaches, from the cache if it is known."""
    text = f"{tokens.bos}\0{tokens.eos}\0{renderer.source}"
    key = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    with _turn:
        known = _learnt.get(key)
    if known is not None:
        renderer.no_tools = known.no_tools
        return known
    found = learn(renderer)
    with _turn:
        _learnt[key] = found
        while len(_learnt) > _KEPT:
            _learnt.popitem(last=False)
    return found


def _shapes(shape: Shape) -> Iterator[Shape]:
    """Yield the learnt shape, then others for conversations that it does not take."""
    seen = set()
    for system in (shape.system, False):
        for alternate in (shape.alternate, True):
            for native in (shape.native, False):
                tried = replace(shape, native=native, system=system, alternate=alternate)
                if tried not in seen:
                    seen.add(tried)
                    yield tried


def _holds_all(rendered: str, request: ChatRequest) -> bool:
    """Whether a rendering holds the text of every message, every call and every tool.

    Text beside calls may be missing: some templates render only the calls.
    """
    texts = [tool.name for tool in request.tools]
    for message in request.messages:
        match message:
            case SystemMessage(text) | UserMessage(text) | ToolMessage(_, text):
                texts.append(text)
            case AssistantMessage(text, ()):
                texts.append(text)
            case AssistantMessage(_, calls):
                texts += [call.name for call in calls]
    return all(_holds(rendered, text) for text in texts)


def _holds(rendered: str, text: str) -> bool:
    moved = mark(text).strip()
    return moved in rendered or to_json(moved)[1:-1] in rendered


def _first_user(rendered: str, request: ChatRequest) -> int | None:
    """Return where the first user turn's text begins: what is before it is the same for others."""
    for message in request.messages:
        if isinstance(message, UserMessage) and message.text.strip():
            at = rendered.find(mark(message.text).strip())
            while at > 0 and rendered[at - 1] == " ":
                at -= 1
            return at if at > 0 else None
    return None

"""Chat template with its learnt call syntax: render a prompt, build its reply grammar, parse a reply.

A grammar, in llguidance's Lark dialect, holds a reply to optional reasoning, then calls or text.
``ToolTemplate`` is thread-safe and caches what a template teaches.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    Prompt,
    ReplyConstraints,
    SpecialTokens,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates.call_syntax import GENERIC, CallSyntax, JsonArguments, Slot
from toolsrv_runtime.templates.dialects import new_id, read_dialects, read_learnt
from toolsrv_runtime.templates.grammar_rules import (
    PairRules,
    escaped,
    grammar_schema,
    json_rule,
    lark_literal,
)
from toolsrv_runtime.templates.learning import Learnt, learn_template
from toolsrv_runtime.templates.marking import Pieces, mark, to_json
from toolsrv_runtime.templates.rendering import (
    NO_TOKENS,
    PLAIN_ABILITIES,
    Renderer,
    TemplateAbilities,
    template_messages,
    tool_list,
)

_CHARACTERS = 4
"""Characters of reasoning for each token of its budget."""
_BRACKETS = "{([<`"
"""No answer begins so: small models begin a call in another syntax with them."""
_LONGEST_REASONING = 16_000
_CHUNK = re.compile(r"[^\s\"{}\[\]()]+")
_CARRIES = re.compile(r"[^\W_a-z]|[A-Z]")
_EDGES = ",;:.!?'"
_BEFORE = 120
"""Characters after which a text has stated a value that it must hold: one that wanders states none."""
_COPIED_LIMIT = 16_000
"""Characters of the texts that words are copied from."""


def reply_grammar(learnt: Learnt, tokens: SpecialTokens, request: ChatRequest) -> str:
    """Return the grammar of what the request expects, after its prompt."""
    writer = _Writer(tokens)
    expected = request.expected
    rules: list[str] = []
    if expected.schema is not None:
        branches = ["json"]
        rules.append(f"json: {json_rule(grammar_schema(expected.schema))}")
    else:
        calls = _calls(writer, learnt.syntax, request)
        branches = ["calls"] if calls else []
        rules += calls
        if expected.text or not branches:
            copied = bool(expected.copied) and not expected.one_of
            text = "copied" if copied else "TEXT"
            branches.append(f"{writer.write(learnt.text_open)} {text}".strip())
            if copied:
                rules += _copied(expected.copied)
            else:
                held = _holding(expected.one_of)
                rules.append(_text(writer, learnt.syntax, offered=bool(request.tools)) + held)
    start = f"({' | '.join(branches)})"
    if learnt.reasoning is not None and expected.reasoning > 0:
        begin, think = _reasoning(writer, learnt, expected.reasoning)
        start = f"{begin} /\\s{{0,2}}/ {start}"
        rules.append(think)
    # A catalog or a response may hold a half of a character, which llguidance refuses.
    return wellformed.text("\n".join([f"start: {start}", *rules]) + "\n")


def _reasoning(writer: _Writer, learnt: Learnt, budget: int) -> tuple[str, str]:
    """Return the expression of the reasoning and its rule."""
    tags = learnt.reasoning
    if tags is None:
        raise ValueError("no reasoning in this template")
    most = min(budget * _CHARACTERS, _LONGEST_REASONING)
    if writer.holds(tags.close):
        rule = f"think: /(?s:.{{0,{most}}})/ {writer.write(tags.close)}"
    else:
        rule = f"think[lazy]: /(?s:.{{0,{most}}}){escaped(tags.close)}/"
    return ("think" if learnt.opened else f"({writer.write(tags.open)} think)?"), rule


def _calls(writer: _Writer, syntax: CallSyntax, request: ChatRequest) -> list[str]:
    """Return the rules of calls, the first named ``calls``; none where no call is expected."""
    expected = request.expected
    rules: list[str] = []
    indices = []
    most = expected.calls if syntax.several else 1
    kinds = ["call"]
    if most > 1 and Slot.ID in syntax.parts:
        # Only the first call has the id that excluded calls are written with.
        kinds.append("further")
    for index, tool in enumerate(request.tools):
        if tool.name not in expected.names or expected.calls < 1:
            continue
        arguments = _arguments(writer, syntax, f"arguments_{index}", tool, expected)
        if not arguments:
            continue
        rules += arguments
        for kind, call_id in zip(kinds, (new_id(request, 0), ""), strict=False):
            parts = (_part(writer, part, tool, index, call_id) for part in syntax.parts)
            rules.append(f"{kind}_{index}: {' '.join(parts)}")
        indices.append(index)
    if not indices:
        return []
    more = f"({writer.write(syntax.separator)} {kinds[-1]}){{0,{most - 1}}}" if most > 1 else ""
    calls = f"{writer.write(syntax.begin)} call {more} {writer.write(syntax.end)}"
    options = [f"{kind}: {' | '.join(f'{kind}_{one}' for one in indices)}" for kind in kinds]
    return [f"calls: {calls}", *options, *rules]


def _part(writer: _Writer, part: str | Slot, tool: Tool, index: int, call_id: str) -> str:
    match part:
        case Slot.NAME:
            return lark_literal(tool.name)
        case Slot.ARGUMENTS:
            return f"arguments_{index}"
        case Slot.ID:
            return lark_literal(call_id) if call_id else "/[A-Za-z0-9]{9}/"
        case Slot.INDEX:
            return "/[0-9]{1,2}/"
        case text:
            return writer.write(text)


def _arguments(
    writer: _Writer, syntax: CallSyntax, name: str, tool: Tool, expected: ReplyConstraints
) -> list[str]:
    schema = grammar_schema(tool.parameters)
    if tool.name in expected.required_only:
        required = schema.get("required", ())
        kept = {key: one for key, one in schema["properties"].items() if key in required}
        schema = {**schema, "properties": kept}
    style = syntax.arguments
    if not schema["properties"] and ToolCall(tool.name) in [
        replace(one, id="") for one in expected.excluded
    ]:
        return []
    if isinstance(style, JsonArguments):
        held = _ordered(schema) if style.ordered else schema
        return [f"{name}: {json_rule(held, _spacing(style))}"]
    return PairRules(style, writer.write, writer.holds).rules(name, schema)


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": dict(sorted(schema["properties"].items()))}


def _spacing(style: JsonArguments) -> Mapping[str, Any]:
    return {
        "whitespace_flexible": False,
        "item_separator": style.item_separator,
        "key_separator": style.key_separator,
    }


def _text(writer: _Writer, syntax: CallSyntax, *, offered: bool) -> str:
    """Return the rule of an answer: it does not begin like a call and contains no call's opener."""
    if not offered:
        return "TEXT: /(?s:\\S.*)/"
    opener = syntax.opener.strip()
    first = "".join(escaped(one) for one in sorted({*_BRACKETS, *opener[:1]}) if not one.isalnum())
    tag = re.match(r"[<\[][^<>\[\]\s]*[>\]]", opener)
    barred = ""
    if tag is not None and not writer.holds(tag[0]):
        barred = f" & ~/(?s:.*{escaped(tag[0])}.*)/"
    return f"TEXT: /(?s:[^\\s{first}].*)/{barred}"


def _holding(values: Sequence[str]) -> str:
    """Return what is added to the rule of a text that holds one of the values, "" where there are none.

    A value is whole there: "36" is not held by "2036".
    """
    if not values:
        return ""
    listed = "|".join(escaped(one) for one in values)
    return rf" & /(?s:(.{{0,{_BEFORE}}}[^\w])?({listed})([^\w].*)?)/"


def _copied(texts: Sequence[str]) -> list[str]:
    """Return the rules of a text whose numbers and capitalised words stand in other texts.

    Plain runs have neither digits nor capitals, copied words begin with one of them (of "#8c5d1f"
    all behind the sign is copied) and end where they do ("Fridays" is not copied from "Friday"), so
    that no text can be read in two ways: an ambiguous grammar of short lexemes is too much for the
    parser.
    """
    found = (one.strip(_EDGES) for one in _CHUNK.findall("\n".join(texts)[:_COPIED_LIMIT]))
    carrying = ((one, _CARRIES.search(one)) for one in found)
    words = dict.fromkeys(one[carries.start() :] for one, carries in carrying if carries)
    rules = [
        f"copied: BEGIN? plain*{' (COPY behind)* COPY?' if words else ''}",
        "plain: PLAIN | STOP | SENTENCE",
        r"BEGIN: /\p{Lu}[^\p{N}\p{Lu}.!?]+/",
        r"PLAIN: /[^\p{N}\p{Lu}.!?]+/",
        r"STOP: /[.!?]+/",
        r"SENTENCE: /[.!?] \p{Lu}[^\p{N}\p{Lu}.!?]+/",
    ]
    if words:
        rules += [
            f"COPY: /{'|'.join(escaped(one) for one in words)}/",
            "behind: (BEHIND | STOP | SENTENCE) plain*",
            r"BEHIND: /[^\p{N}\p{L}.!?][^\p{N}\p{Lu}.!?]*/",
        ]
    return rules


class _Writer:
    """Spells literals: control tokens by id, all else quoted."""

    def __init__(self, tokens: SpecialTokens) -> None:
        self._control = tokens.control
        names = sorted(filter(None, tokens.control), key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, names))) if names else None

    def holds(self, text: str) -> bool:
        """Whether a text begins with a control token, so that no text can spell it."""
        return self._names is not None and self._names.match(text) is not None

    def write(self, text: str) -> str:
        """Return the expression of a literal, "" for none."""
        parts, at = [], 0
        for found in self._names.finditer(text) if self._names else ():
            if found.start() > at:
                parts.append(lark_literal(text[at : found.start()]))
            parts.append(f"<[{self._control[found[0]]}]>")
            at = found.end()
        if at < len(text):
            parts.append(lark_literal(text[at:]))
        return " ".join(parts)


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

    def parse(
        self, raw: str, request: ChatRequest, *, finish: FinishReason = "complete"
    ) -> ChatReply:
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
            messages = template_messages(
                request.messages, request.tools, PLAIN_ABILITIES, self.call_syntax
            )
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

    def _render(self, renderer: Renderer, request: ChatRequest, shape: TemplateAbilities) -> str:
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
    found = learn_template(renderer)
    with _turn:
        _learnt[key] = found
        while len(_learnt) > _KEPT:
            _learnt.popitem(last=False)
    return found


def _shapes(shape: TemplateAbilities) -> Iterator[TemplateAbilities]:
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


__all__ = ["CallSyntax", "ToolTemplate"]

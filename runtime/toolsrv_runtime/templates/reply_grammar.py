"""Grammars of replies in llguidance's Lark dialect: reasoning, then calls or text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_runtime.contract.chat import ChatRequest, Expected, Tool, ToolCall
from toolsrv_runtime.engine.base import SpecialTokens
from toolsrv_runtime.formats.lark import literal
from toolsrv_runtime.templates.call_syntax import CallSyntax, JsonArguments, Slot
from toolsrv_runtime.templates.json_schema import grammar_schema
from toolsrv_runtime.templates.learning import Learnt
from toolsrv_runtime.templates.pair_grammar import PairRules, escaped, json_rule
from toolsrv_runtime.templates.reply_parser import new_id

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
            return literal(tool.name)
        case Slot.ARGUMENTS:
            return f"arguments_{index}"
        case Slot.ID:
            return literal(call_id) if call_id else "/[A-Za-z0-9]{9}/"
        case Slot.INDEX:
            return "/[0-9]{1,2}/"
        case text:
            return writer.write(text)


def _arguments(
    writer: _Writer, syntax: CallSyntax, name: str, tool: Tool, expected: Expected
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

    Plain runs have neither digits nor capitals, copied words begin with one of them (of "#8c5d1f" all
    behind the sign is copied) and end where they do ("Fridays" is not copied from "Friday"), so that
    no text can be read in two ways: an ambiguous grammar of short lexemes is too much for the parser.
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
                parts.append(literal(text[at : found.start()]))
            parts.append(f"<[{self._control[found[0]]}]>")
            at = found.end()
        if at < len(text):
            parts.append(literal(text[at:]))
        return " ".join(parts)

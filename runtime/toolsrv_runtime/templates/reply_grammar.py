"""Grammars of replies in llguidance's Lark dialect: calls in a learnt syntax, or text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_runtime.contract.chat import Expected, Tool
from toolsrv_runtime.engine.base import SpecialTokens
from toolsrv_runtime.formats.lark import literal
from toolsrv_runtime.templates.call_syntax import CallSyntax, Slot
from toolsrv_runtime.templates.json_schema import grammar_schema


def reply_grammar(
    syntax: CallSyntax, tokens: SpecialTokens, tools: Sequence[Tool], expected: Expected
) -> str:
    """Return the grammar of what ``expected`` allows."""
    if expected.schema is not None:
        return f"start: {_json(expected.schema, syntax)}\n"
    writer = _Writer(tokens)
    offered = [tool for tool in tools if tool.name in expected.names]
    rules: list[str] = []
    if offered and expected.calls > 0:
        rules.append(_calls(writer, syntax, offered, expected.calls))
    branches = ["calls"] if rules else []
    if expected.text or not branches:
        branches.append("TEXT")
        rules.append(_text(syntax))
    return "\n".join([f"start: {' | '.join(branches)}", *rules]) + "\n"


def _calls(writer: _Writer, syntax: CallSyntax, tools: Sequence[Tool], most: int) -> str:
    most = most if syntax.several else 1
    more = f" ({writer.write(syntax.separator)} call){{0,{most - 1}}}" if most > 1 else ""
    rules = [f"calls: {writer.write(syntax.begin)} call{more} {writer.write(syntax.end)}"]
    rules.append("call: " + " | ".join(f"call_{index}" for index in range(len(tools))))
    for index, tool in enumerate(tools):
        parts = []
        for part in syntax.parts:
            match part:
                case Slot.NAME:
                    parts.append(literal(tool.name))
                case Slot.ARGUMENTS:
                    parts.append(f"arguments_{index}")
                case Slot.ID:
                    parts.append("/[A-Za-z0-9]{9}/")
                case Slot.INDEX:
                    parts.append("/[0-9]/")
                case text:
                    parts.append(writer.write(text))
        rules.append(f"call_{index}: {' '.join(parts)}")
        rules.append(f"arguments_{index}: {_json(tool.parameters, syntax)}")
    return "\n".join(rules)


def _json(schema: Mapping[str, Any], syntax: CallSyntax) -> str:
    spelled = {
        **grammar_schema(schema),
        "x-guidance": {
            "whitespace_flexible": False,
            "item_separator": syntax.arguments.item_separator,
            "key_separator": syntax.arguments.key_separator,
        },
    }
    return f"%json {json.dumps(spelled, ensure_ascii=False)}"


def _text(syntax: CallSyntax) -> str:
    """Return the rule of an answer: it does not begin like a call and quotes no call's opener."""
    opener = syntax.opener.strip()
    first = "".join(sorted({*"{", opener[:1]}))
    barred = "".join(f"\\{one}" if one in "[]{}^-\\" else one for one in first)
    return f"TEXT: /[^\\s{barred}](?s:.*)/"


class _Writer:
    """Spells literals: control tokens by id, all else quoted."""

    def __init__(self, tokens: SpecialTokens) -> None:
        self._control = tokens.control
        names = sorted(tokens.control, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, names))) if names else None

    def write(self, text: str) -> str:
        if not text:
            return ""
        if self._names is None:
            return literal(text)
        parts, at = [], 0
        for found in self._names.finditer(text):
            if found.start() > at:
                parts.append(literal(text[at : found.start()]))
            parts.append(f"<[{self._control[found[0]]}]>")
            at = found.end()
        if at < len(text):
            parts.append(literal(text[at:]))
        return " ".join(parts)

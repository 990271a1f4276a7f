"""Grammar rules of arguments that are no JSON object (see ``pair_arguments``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolsrv_runtime.formats.lark import literal
from toolsrv_runtime.templates.json_schema import LONGEST_TEXT
from toolsrv_runtime.templates.pair_arguments import PairArguments

_SPACED = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def json_rule(schema: Mapping[str, Any], spacing: Mapping[str, Any] = _SPACED) -> str:
    """Return the Lark expression of JSON text that satisfies a schema of ``grammar_schema``."""
    return f"%json {json.dumps({**schema, 'x-guidance': dict(spacing)}, ensure_ascii=False)}"


class PairRules:
    """Rules of pairs; ``write`` spells a literal, ``held`` says whether a text is a control token."""

    def __init__(
        self, style: PairArguments, write: Callable[[str], str], held: Callable[[str], bool]
    ) -> None:
        self._style = style
        self._write = write
        self._held = held

    def rules(self, name: str, schema: Mapping[str, Any]) -> list[str]:
        """Return the rules of an object's pairs, the first named ``name``."""
        return self._pairs(name, schema, self._style.open, self._style.close, self._style.separator)

    def _pairs(
        self, name: str, schema: Mapping[str, Any], opened: str, closed: str, separator: str
    ) -> list[str]:
        """Return rules in which ``name_k`` follows no pair and ``name_more_k`` follows one."""
        properties = schema.get("properties", {})
        keys = sorted(properties) if self._style.ordered else list(properties)
        required = set(schema.get("required", ()))
        found = [f"{name}: {name}_0"]
        for index, key in enumerate(keys):
            pair = f"{name}_pair_{index}"
            value, rules = self._value(f"{name}_value_{index}", properties[key], closed)
            begin = self._write(f"{opened}{key}{self._style.middle}")
            found += [f"{pair}: {begin} {value}", *rules]
            parted = f"{self._write(separator)} {pair}"
            after = f"{name}_more_{index + 1}"
            skip = key not in required
            found.append(
                f"{name}_{index}: {pair} {after}" + (f" | {name}_{index + 1}" if skip else "")
            )
            found.append(f"{name}_more_{index}: {f'({parted})?' if skip else parted} {after}")
        return [*found, f'{name}_{len(keys)}: ""', f'{name}_more_{len(keys)}: ""']

    def _value(self, name: str, schema: Mapping[str, Any], closed: str) -> tuple[str, list[str]]:
        """Return the expression of a value and what closes it, and the rules that it needs."""
        style, close = self._style, self._write(closed)
        if "anyOf" in schema:
            rules: list[str] = []
            options = []
            for index, one in enumerate(schema["anyOf"]):
                expression, more = self._value(f"{name}_{index}", one, closed)
                options.append(expression)
                rules += more
            return f"({' | '.join(options)})", rules
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if choices is not None:
            written = (style.write_value(one) for one in choices)
            return f"({' | '.join(self._write(one) or literal('') for one in written)}) {close}", []
        match schema.get("type"):
            case "string":
                return self._text(name, int(schema.get("maxLength", LONGEST_TEXT)), closed)
            case "boolean":
                return f"({literal(style.words[0])} | {literal(style.words[1])}) {close}", []
            case "null":
                return f"{literal(style.words[2])} {close}", []
            case "object" if style.nested == "same":
                rules = self._pairs(f"{name}_object", schema, "", "", ",")
                return f'"{{" {name}_object "}}" {close}', rules
            case "array" if style.nested == "same":
                item, rules = self._value(f"{name}_item", schema.get("items", {}), "")
                most = max(0, int(schema.get("maxItems", 100)) - 1)
                return f'"[" ({item} ("," {item}){{0,{most}}})? "]" {close}', rules
        return f"{name} {close}", [f"{name}: {json_rule(schema)}"]

    def _text(self, name: str, most: int, closed: str) -> tuple[str, list[str]]:
        style = self._style
        if style.quote == '"' and style.escape == "json":
            rule = f"{name}: {json_rule({'type': 'string', 'maxLength': most})}"
            return f"{name} {self._write(closed)}", [rule]
        if style.quote in {'"', "'"} and style.escape != "none":
            text = f"/([^{style.quote}\\\\\\n]|\\\\.){{0,{most}}}/"
            return f"{literal(style.quote)} {text} {literal(style.quote)} {self._write(closed)}", []
        end = style.unquote or closed
        rest = self._write(closed) if style.unquote else ""
        begin = self._write(style.quote)
        if self._held(end):
            return f"{begin} /(?s:.{{0,{most}}})/ {self._write(end)} {rest}", []
        lazy = f"{name}[lazy]: /(?s:.{{0,{most}}}){_escaped(end)}/"
        return f"{begin} {name} {rest}", [lazy]


def _escaped(text: str) -> str:
    """Return a text as a regular expression in Lark's slashes."""
    return "".join(
        {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(
            one, f"\\{one}" if one in "/\\.^$*+?()[]{}|" else one
        )
        for one in text
    )


escaped = _escaped

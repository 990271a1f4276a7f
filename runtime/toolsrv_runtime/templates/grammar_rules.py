"""Grammar rules in llguidance's Lark dialect: literals, bounded JSON Schemas, pair and grounded arguments.

A tool's parameters are reduced to the schema keywords that a grammar can hold, every text bounded.
Arguments that are no JSON object get rules of their own (``call_syntax.PairArguments``).
Grounded text arguments are held to runs of words of a source: the task, a response, or a reading of
either (``values.kinds``). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolsrv_runtime.templates.call_syntax import PairArguments
from toolsrv_runtime.values import kinds

LONGEST_TEXT = 2000
"""Characters of a string for which a schema sets no limit, so that a loop ends."""
MOST_ITEMS = 100
"""Items of an array for which a schema sets no limit."""
LARGEST_INTEGER = 10**15
SMALLEST_STEP = 1e-9
"""Bounds the digits of a number, so that it ends."""
_DEEPEST = 16
_KEPT = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum",
         "exclusiveMinimum", "exclusiveMaximum")  # fmt: skip
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_FORMATS = frozenset({"date", "time", "date-time", "uuid", "ipv4", "ipv6"})


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON Schema that llguidance holds, bounded; no type is an object.

    Unknown keywords, patterns and references that lead nowhere are dropped: arguments are
    validated again when a call is made. Properties stay in their order; others are excluded.
    """
    root = _Root(schema)
    if schema.get("type", "object") != "object" or "anyOf" in schema or "$ref" in schema:
        return _cleaned(schema, root, 0)
    return _object(schema, root, 0)


class _Root:
    """Where ``$ref`` leads."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def find(self, reference: Any) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return {}
        found: Any = self._schema
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}


def _cleaned(schema: Any, root: _Root, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST_TEXT}
    if "$ref" in schema:
        return _cleaned(root.find(schema["$ref"]), root, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return {"enum": choices}
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return {"anyOf": [_cleaned(one, root, depth + 1) for one in options]}
    merged = schema.get("allOf")
    if isinstance(merged, list) and len(merged) == 1:
        return _cleaned(merged[0], root, depth + 1)
    kinds = schema.get("type")
    wanted = [one for one in (kinds if isinstance(kinds, list) else [kinds]) if one in _TYPES]
    if not wanted and "properties" in schema:
        wanted = ["object"]
    if len(wanted) > 1:
        return {"anyOf": [_typed(one, schema, root, depth) for one in wanted]}
    return _typed(wanted[0] if wanted else "", schema, root, depth)


def _typed(kind: str, schema: Mapping[str, Any], root: _Root, depth: int) -> dict[str, Any]:
    kept = {key: schema[key] for key in _KEPT if _is_number(schema.get(key))}
    match kind:
        case "string":
            if schema.get("format") in _FORMATS:
                return {"type": "string", "format": schema["format"]}
            return {"type": "string", **_limits(kept, "minLength", "maxLength", LONGEST_TEXT)}
        case "integer" | "number":
            digits = {"multipleOf": SMALLEST_STEP} if kind == "number" else {}
            return {"type": kind, **_range(kept), **digits}
        case "array":
            items = _cleaned(schema.get("items", {}), root, depth + 1)
            return {
                "type": "array",
                "items": items,
                **_limits(kept, "minItems", "maxItems", MOST_ITEMS),
            }
        case "object":
            return _object(schema, root, depth)
        case "boolean" | "null":
            return {"type": kind}
    return _cleaned(None, root, depth)


def _object(schema: Mapping[str, Any], root: _Root, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    given = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    open_ended = not given and depth > 0 and schema.get("additionalProperties", True) is not False
    return {
        "type": "object",
        "properties": {str(name): _cleaned(one, root, depth + 1) for name, one in given.items()},
        "required": [one for one in required if one in given] if isinstance(required, list) else [],
        "additionalProperties": _cleaned(None, root, depth) if open_ended else False,
    }


def _limits(kept: Mapping[str, Any], least: str, most: str, limit: int) -> dict[str, int]:
    low = max(0, int(kept.get(least, 0)))
    high = int(kept.get(most, max(limit, low)))
    return {least: low, most: max(high, low)} if low else {most: max(high, 0)}


def _range(kept: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {
        key: kept[key]
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        if key in kept
    }
    if not {"minimum", "exclusiveMinimum"} & set(bounds):
        bounds["minimum"] = -LARGEST_INTEGER
    if not {"maximum", "exclusiveMaximum"} & set(bounds):
        bounds["maximum"] = LARGEST_INTEGER
    low = bounds.get("minimum", bounds.get("exclusiveMinimum", 0))
    high = bounds.get("maximum", bounds.get("exclusiveMaximum", 0))
    return bounds if low <= high else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


MOST_CHUNKS = 2_000

# Numbers and names are whole; the owner is free of his "'s".
_CHUNK = re.compile(
    r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*|\s+|.", re.DOTALL | re.IGNORECASE
)


def lark_literal(text: str) -> str:
    """Return ``text`` as a Lark string."""
    return json.dumps(text, ensure_ascii=False)


def lark_choice(options: Iterable[str]) -> str:
    """Return the Lark expression that allows exactly ``options``."""
    return " | ".join(lark_literal(option) for option in options)


def text_chunks(text: str) -> list[str]:
    """Return the text in pieces that a copy takes whole: words, digits, blanks, single signs."""
    return _CHUNK.findall(text)[:MOST_CHUNKS]


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
            return (
                f"({' | '.join(self._write(one) or lark_literal('') for one in written)}) {close}",
                [],
            )
        match schema.get("type"):
            case "string":
                return self._text(name, int(schema.get("maxLength", LONGEST_TEXT)), closed)
            case "boolean":
                return (
                    f"({lark_literal(style.words[0])} | {lark_literal(style.words[1])}) {close}",
                    [],
                )
            case "null":
                return f"{lark_literal(style.words[2])} {close}", []
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
            return (
                f"{lark_literal(style.quote)} {text} {lark_literal(style.quote)} {self._write(closed)}",
                [],
            )
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


_READ = ("date", "number", "time", "length", "weight")


def grounding_texts(task: str, observations: Sequence[str]) -> list[str]:
    """Return the texts that arguments may be copied from: task, responses, and what they mean."""
    texts = [task, *observations]
    meant = [
        kinds.normalise_value(kind, found)
        for text in texts
        for kind in _READ
        for found in kinds.find_values(kind, text)
    ]
    known = "\n".join(texts)
    return [*texts, *(one for one in dict.fromkeys(meant) if one not in known)]


def words_rule(name: str, texts: Sequence[str]) -> str:
    """Return the rule of a JSON string that is a run of words of one of the texts."""
    rules = []
    for at, text in enumerate(texts):
        escaped = [json.dumps(one, ensure_ascii=False)[1:-1] for one in text_chunks(text)]
        regex = json.dumps({"substring_chunks": escaped}, ensure_ascii=False)
        rules.append(f"{name}{at}: %regex {regex}")
    joined = " | ".join(f"{name}{at}" for at in range(len(texts)))
    return f'{name}: "\\"" ({joined}) "\\""\n' + "\n".join(rules) + "\n"


def object_rules(name: str, schema: Mapping[str, Any], words: str) -> str:
    """Return the rules of the arguments of one function, texts held to the rule ``words``.

    Required properties come first, in their order, then the optional ones that are given.
    """
    properties, required = schema["properties"], schema["required"]
    order = [*required, *(key for key in properties if key not in required)]
    rules, pairs = [], []
    for at, key in enumerate(order):
        rules.append(f"{name}v{at}: {_grounded_value(properties[key], words)}")
        pairs.append(f"{lark_literal(json.dumps(key, ensure_ascii=False) + ': ')} {name}v{at}")
    given = pairs[: len(required)]
    optional = pairs[len(required) :]
    comma = lark_literal(", ")
    if given:
        body = f" {comma} ".join(given) + "".join(f" ({comma} {pair})?" for pair in optional)
    else:
        starts = [
            pair + "".join(f" ({comma} {later})?" for later in optional[at + 1 :])
            for at, pair in enumerate(optional)
        ]
        body = f"({' | '.join(starts)})?" if starts else ""
    return f'{name}: "{{" {body} "}}"\n' + "\n".join(rules) + ("\n" if rules else "")


def _grounded_value(schema: Mapping[str, Any], words: str) -> str:
    if schema.get("type") != "string" or "enum" in schema:
        return f"%json {json.dumps(schema, ensure_ascii=False)}"
    default = schema.get("default")
    if not isinstance(default, str):
        return words
    return f"{words} | {lark_literal(json.dumps(default, ensure_ascii=False))}"

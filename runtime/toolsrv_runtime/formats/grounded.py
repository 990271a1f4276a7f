"""The grammar of a call whose text arguments were said: in the task, in an answer, or read there.

For every model that writes whole JSON (``chat``). A text is a run of words of a source, a listed
value or the parameter's default; what has another type keeps its schema. Dates and number words
may also be written as an API takes them (``readings``). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_runtime.formats.lark import chunks, literal
from toolsrv_runtime.values import patterns, readings

_READ = ("date", "number", "time", "length", "weight")


def sources(task: str, observations: Sequence[str]) -> list[str]:
    """Return the texts that arguments may be copied from: task, responses, and what they mean."""
    texts = [task, *observations]
    meant = [
        readings.read(kind, found)
        for text in texts
        for kind in _READ
        for found in patterns.find(kind, text)
    ]
    known = "\n".join(texts)
    return [*texts, *(one for one in dict.fromkeys(meant) if one not in known)]


def words_rule(name: str, texts: Sequence[str]) -> str:
    """Return the rule of a JSON string that is a run of words of one of the texts."""
    rules = []
    for at, text in enumerate(texts):
        escaped = [json.dumps(one, ensure_ascii=False)[1:-1] for one in chunks(text)]
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
        rules.append(f"{name}v{at}: {_value(properties[key], words)}")
        pairs.append(f"{literal(json.dumps(key, ensure_ascii=False) + ': ')} {name}v{at}")
    given = pairs[: len(required)]
    optional = pairs[len(required) :]
    comma = literal(", ")
    if given:
        body = f" {comma} ".join(given) + "".join(f" ({comma} {pair})?" for pair in optional)
    else:
        starts = [
            pair + "".join(f" ({comma} {later})?" for later in optional[at + 1 :])
            for at, pair in enumerate(optional)
        ]
        body = f"({' | '.join(starts)})?" if starts else ""
    return f'{name}: "{{" {body} "}}"\n' + "\n".join(rules) + ("\n" if rules else "")


def _value(schema: Mapping[str, Any], words: str) -> str:
    if schema.get("type") != "string" or "enum" in schema:
        return f"%json {json.dumps(schema, ensure_ascii=False)}"
    default = schema.get("default")
    if not isinstance(default, str):
        return words
    return f"{words} | {literal(json.dumps(default, ensure_ascii=False))}"

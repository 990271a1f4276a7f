"""Functions under other names, and values in the types of their parameters."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_lab.conversations.episode import Offered
from toolsrv_lab.conversations.needs_episodes.tables import (
    VERBS,
    sections,
    split_words,
    synonyms,
    topic,
)
from toolsrv_registry.api import Api

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


def typed(text: str, schema: Mapping[str, Any]) -> Any:
    """Return a value as its parameter wants it; None where it cannot be."""
    kind, enum = schema.get("type"), schema.get("enum")
    if enum:
        return next((one for one in enum if str(one).lower() == text.strip().lower()), None)
    if isinstance(kind, list):
        return (
            _number(text)
            if _NUMBER.fullmatch(text)
            else (text if re.fullmatch(r"[+0-9][0-9 ,.:%+-]*", text) else None)
        )
    if kind == "number":
        return _number(text) if _NUMBER.fullmatch(text) else None
    if kind == "integer":
        return int(text) if re.fullmatch(r"-?\d+", text) else None
    if kind == "boolean":
        low = text.lower()
        return (
            True
            if low in {"true", "yes", "1", "on"}
            else False
            if low in {"false", "no", "0", "off"}
            else None
        )
    if kind in {"array", "object"}:
        try:
            told = json.loads(text)
        except ValueError:
            if kind == "object":
                return None
            items = [
                typed(one.strip(), schema.get("items") or {"type": "string"})
                for one in text.split(",")
            ]
            return None if None in items else items
        return told if isinstance(told, list if kind == "array" else dict) else None
    return text


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


@dataclass(frozen=True)
class View:
    """A function as it is offered, and the provider's parameter -> the key under which it shows."""

    offered: Offered
    keys: Mapping[str, str]


def _styled(words: Sequence[str], style: str) -> str:
    words = [word for word in words if word]
    if style == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if style == "pascal":
        return "".join(word.capitalize() for word in words)
    if style == "kebab":
        return "-".join(words)
    if style == "flat":
        return "".join(words)
    return "_".join(words)


def renamed(view: View, api: Api, style: str, rng: random.Random, taken: set[str]) -> View:
    """Return the function under other names and words."""
    table = synonyms("needs_function_words.txt")
    words = [w for w in split_words(api.name) if not re.fullmatch(r"[0-9a-f]{6,}|v\d", w)][:6] or [
        "call"
    ]
    new: list[str] = []
    for word in words:
        if word in table and rng.random() < 0.5:
            new += rng.choice(table[word]).split("_")
        elif word not in {"api", "endpoint", "deprecated"} or rng.random() < 0.3:
            new.append(word)
    new = new or ["call"]
    if new[0] not in VERBS | {"show", "pull", "load"} and rng.random() < 0.3:
        new.insert(0, rng.choice(("get", "fetch", "find", "show", "lookup", "query", "do", "read")))
    tool = [w for w in split_words(api.tool) if w not in VERBS][:2]
    way = rng.random()
    if way < 0.2 and tool:
        new = [*tool, *new]
    elif way < 0.3 and tool:
        new = [*new, rng.choice(("for", "from", "via", "in")), *tool]
    elif way < 0.38:
        new = [rng.choice(("v1", "v2", "api", "svc", "my", "x", "tool")), *new]
    elif way < 0.44:
        new = [*new, rng.choice(("v2", "v3", "api", "tool", "call", "endpoint"))]
    dotted = rng.random() < 0.06 and bool(tool)
    name = _styled(new, style)[:60]
    if dotted:
        name = f"{_styled(tool, 'snake')}.{name}"[:60]
    while name in taken:
        name += str(rng.randrange(2, 9))
    properties = view.offered.parameters["properties"]
    parameter_table = synonyms("needs_parameter_names.txt")
    moved: dict[str, str] = {}
    keep_text = rng.random() < 0.6
    for key in properties:
        flat = key.lower().replace("_", "")
        options = parameter_table.get(key.lower()) or parameter_table.get(flat) or ()
        words = (
            rng.choice(options).split("_") if options and rng.random() < 0.65 else split_words(key)
        )
        fresh = _styled(words, style if style in {"camel", "snake"} else "snake") if words else key
        if not fresh or fresh in moved.values() or (fresh in properties and fresh != key):
            fresh = key
        if fresh in moved.values():
            fresh = f"{fresh}_{len(moved)}"
        moved[key] = fresh
    schema = dict(view.offered.parameters)
    schema["properties"] = {
        moved[key]: one if keep_text else {k: v for k, v in one.items() if k != "description"}
        for key, one in properties.items()
    }
    schema["required"] = [moved[key] for key in view.offered.parameters["required"]]
    description = _reworded(view.offered.description, api, rng)
    return View(
        Offered(name, description, schema), {name_: moved[key] for name_, key in view.keys.items()}
    )


def _reworded(text: str, api: Api, rng: random.Random) -> str:
    frame = rng.choice(sections("needs_frames.txt")["description"])
    text = " ".join(text.split())
    first = re.split(r"(?<=[.!?])\s", text)[0][:160]
    low = first[:1].lower() + first[1:] if first[1:2].islower() else first
    cut = " ".join(text.split()[: rng.randrange(4, 12)])
    words = topic(api)
    return re.sub(
        r"\{(\w+)\}",
        lambda m: {
            "d": text,
            "first": first,
            "low": low,
            "cut": cut,
            "words": words,
            "tool": api.tool,
        }[m[1]],
        frame,
    ).strip()

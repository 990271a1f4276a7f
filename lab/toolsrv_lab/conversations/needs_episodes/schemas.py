"""Response schemas: invented responses, their fields and lists, and values as sentences show them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from toolsrv_lab.conversations.needs_episodes.tables import (
    asked_words,
    class_of_word,
    label_of,
    split_words,
    stem,
)
from toolsrv_lab.conversations.needs_episodes.values import KIND_PATTERNS, Inventor
from toolsrv_lab.conversations.wording import word_set


def shown(value: Any) -> str:
    """Return a value as it stands in a response, for a sentence."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False)


def leaves_of(body: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Return (path, value) for the fields of a response."""
    if isinstance(body, Mapping):
        return [leaf for key, one in body.items() for leaf in leaves_of(one, (*path, key))]
    if isinstance(body, list):
        if body and all(isinstance(one, (str, int, float)) for one in body):
            return [(path, ", ".join(shown(one) for one in body[:5]))]
        return []
    return [(path, body)]


def lists_of(body: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], list[Any]]]:
    """Return (path, items) for the lists of a response."""
    if isinstance(body, list):
        if len(body) == 1 and isinstance(body[0], Mapping) and not path:
            return [(path, body), *lists_of(body[0], path)]
        return [(path, body)]
    if isinstance(body, Mapping):
        return [found for key, one in body.items() for found in lists_of(one, (*path, key))]
    return []


_MAIN = ("name", "title", "fullname", "displayname", "username", "headline", "question", "word", "text", "joke", "quote",
         "label", "shortname", "symbol", "ticker", "make", "model", "address", "city", "country", "date", "type", "market")  # fmt: skip


def main_leaf(
    leaves: Sequence[tuple[tuple[str, ...], Any]], main: Sequence[str]
) -> tuple[tuple[str, ...], Any] | None:
    """Return the field that names an item. ``main``: field names to try first."""
    usable = [
        leaf for leaf in leaves if leaf[1] not in (None, "") and not isinstance(leaf[1], bool)
    ]
    for name in main:
        for path, value in usable:
            if (
                path == (name,)
                and name not in {"id", "rank", "position", "code"}
                and not isinstance(value, float)
            ):
                return path, value
    for wanted in _MAIN:
        for path, value in usable:
            if "".join(split_words(path[-1])) in {
                wanted,
                *({f"{p}{wanted}" for p in split_words(path[-2])} if len(path) > 1 else ()),
            } and isinstance(value, (str, int)):
                return path, value
    strings = [
        one
        for one in usable
        if isinstance(one[1], str)
        and not re.search(
            r"(?i)id$|url|uri|link|image|logo|stamp|code$", one[0][-1] if one[0] else ""
        )
    ]
    found = strings or usable
    return found[0] if found else None


_SMALL = word_set(
    "a an and any are as at be by can could do does for from get give has have how i if "
    "in is it its let like list me my need of on or please show so some tell that the "
    "their there these they this to up us want was we were what when where which who "
    "whose will with would you your all"
)

META = word_set(
    "message messages status statuscode code success error errors detail errorclass "
    "casenumber errorcode notice requestid request_id msg faultstring stack ok "
    "http_status info x-go-name x-go-package"
)

_LEAF = {
    "str": "str", "string": "str", "int": "int", "integer": "int", "float": "float", "number": "float", "bool": "bool",
    "boolean": "bool", "double": "float", "date-time": "str",
}  # fmt: skip


def plain_schema(schema: Any, depth: int = 0) -> Any:
    """Return a response schema as dicts, lists of one, and type names; None where it has no fields."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("properties"), Mapping) and "type" in schema:
            return plain_schema(schema["properties"], depth)
        if schema.get("type") == "array" and "items" in schema:
            inner = plain_schema(schema["items"], depth)
            return [inner] if inner else None
        kind = schema.get("type")
        if isinstance(kind, str) and kind in _LEAF and set(schema) <= {
            "type", "description", "format", "minimum", "maximum", "default", "example", "minLength", "maxLength",
            "exclusiveMinimum", "exclusiveMaximum", "pattern", "enum", "x-go-name",
        }:  # fmt: skip
            return _LEAF[kind]
        if depth > 4:
            return None
        out = {}
        for key, one in schema.items():
            if key.startswith(("x-", "_list", "$", "@")) or key == "additionalProperties":
                continue
            if inner := plain_schema(one, depth + 1):
                out[key] = inner
        return out or None
    if isinstance(schema, list):
        for one in schema:
            if isinstance(one, Mapping) and "_list_length" in one:
                continue
            if isinstance(one, str) and one.startswith("list of"):
                continue
            inner = plain_schema(one, depth + 1)
            return [inner] if inner else None
        return None
    if schema is True or schema is False:
        return "bool"
    text = str(schema)
    return _LEAF.get(text, "str" if text in {"", "NoneType", "null"} else None)


def leaf_names(schema: Any) -> list[str]:
    """Return the field names of a plain schema."""
    if isinstance(schema, Mapping):
        return [
            name
            for key, one in schema.items()
            for name in ([key] if isinstance(one, str) else leaf_names(one))
        ]
    if isinstance(schema, list):
        return leaf_names(schema[0]) if not isinstance(schema[0], str) else ["item"]
    return []


def is_telling(schema: Any) -> bool:
    """Whether a plain schema has fields that can answer a need."""
    told = [name for name in leaf_names(schema) if name.lower() not in META]
    return len(told) >= 2 and all(len(name) < 40 for name in told[:20])


@lru_cache(maxsize=4096)
def need_tokens(text: str) -> frozenset[str]:
    """Return the stems of a need's words, and the fields that they ask for."""
    words = {w for w in re.findall(r"[a-z]+", text.lower()) if w not in _SMALL}
    asked: set[str] = set()
    lowered = set(re.findall(r"[a-z]+", text.lower()))
    for word in lowered:
        asked |= asked_words().get(word, frozenset())
    return frozenset({stem(w) for w in words} | asked)


def overlap(path: Sequence[str], tokens: frozenset[str]) -> int:
    """Score how well a field answers a need with these tokens."""
    words = split_words(path[-1])
    label = label_of(path)[0].split()
    score = 2 if "_".join(words) in tokens else 0
    return score + sum(1 for word in {*words, *label} if len(word) > 2 and stem(word) in tokens)


class Response(NamedTuple):
    """A made-up response, the noun of its list, its main fields."""

    body: Any
    noun: str = ""
    main: tuple[str, ...] = ()
    shape: str = ""


@dataclass
class Maker:
    """Makes responses. ``echo``: values that the call was made with."""

    inventor: Inventor
    tokens: frozenset[str]
    echo: Mapping[str, Any]
    context: tuple[str, ...]
    most: int = 7

    def is_known(self, key: str, schema: Any) -> bool:
        """Whether values for a field follow from its name."""
        if not isinstance(schema, str) or schema == "bool":
            return True
        low = "_".join(split_words(key))
        if low in class_of_word() or "".join(split_words(key)) in self.echo or low in META:
            return True
        return any(pattern.search(low) for pattern, _ in KIND_PATTERNS)

    def tree(self, schema: Any, path: tuple[str, ...] = ()) -> Any:
        """Return a value of a plain schema."""
        rng = self.inventor.rng
        if isinstance(schema, str):
            key = "".join(split_words(path[-1])) if path else ""
            if key in self.echo:
                return self.echo[key]
            return self.inventor.field(path or ("value",), schema, self.context)
        if isinstance(schema, list):
            outer, self.echo = self.echo, kept_echo(self.echo, rng)
            try:
                return self._list(schema, path)
            finally:
                self.echo = outer
        keys = [key for key in schema if self.is_known(key, schema[key])]
        return self._object(schema, keys, path)

    def _list(self, schema: list[Any], path: tuple[str, ...]) -> Any:
        rng = self.inventor.rng
        if schema:
            if isinstance(schema[0], str):
                if path and path[-1].lower() in META:
                    return []
                return [self.tree(schema[0], path) for _ in range(rng.randrange(1, 5))]
            wide = len(leaf_names(schema[0]))
            count = rng.choice((1, 2, 3, 3, 4, 5) if wide > 4 else (1, 2, 3, 4, 5, 6, 7, 8))
            return [
                self.tree(schema[0], path) for _ in range(count if len(path) < 3 else min(count, 2))
            ]
        return []

    def _object(self, schema: Mapping[str, Any], keys: list[str], path: tuple[str, ...]) -> Any:
        if len(keys) > self.most:

            def worth(key: str) -> float:
                score = 3.0 * overlap((key,), self.tokens) if isinstance(schema[key], str) else 1.5
                score += 2.0 * bool(
                    re.fullmatch(
                        r"(?i)(?:full_?)?(?:name|title|symbol|id)|data|results?|items", key
                    )
                )
                return score - 2.0 * (key.lower() in META) - 0.01 * keys.index(key)

            kept = set(sorted(keys, key=worth, reverse=True)[: self.most])
            keys = [key for key in keys if key in kept]
        out: dict[str, Any] = {}
        for key in keys:
            inner = schema[key]
            if len(path) >= 4 and not isinstance(inner, str):
                continue
            low = key.lower()
            if (
                isinstance(inner, str)
                and low
                in {
                    "status",
                    "success",
                    "ok",
                    "code",
                    "statuscode",
                    "message",
                    "msg",
                    "error",
                    "errors",
                }
                and not path
            ):
                out[key] = _fine(low, inner)
                continue
            if low in {"error", "errors"}:
                continue
            out[key] = self.tree(inner, (*path, key))
        return out

    def flat(self, fields: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return one object with these fields."""
        out: dict[str, Any] = {}
        place: tuple[str, str] | None = None
        for name, kind in fields:
            key = "".join(split_words(name))
            if key in self.echo and key != "url" and kind not in {"valid", "status"}:
                out[name] = self.echo[key]
                continue
            if name in {"valid", "flagged", "disposable", "proxy", "is_verified"}:
                out[name] = self.inventor.rng.random() < (0.75 if name == "valid" else 0.3)
                continue
            if kind in {"city", "country"}:
                place = place or self.inventor.city()
                out[name] = place[0] if kind == "city" else place[1]
                continue
            out[name] = self.inventor.kind(kind)
        pairs = (("min_temp", "max_temp"), ("low", "high"))
        for low, high in pairs:
            if (
                all(isinstance(out.get(k), (int, float)) for k in (low, high))
                and out[low] > out[high]
            ):
                out[low], out[high] = out[high], out[low]
        if {"open", "close", "high", "low"} <= out.keys():
            base = self.inventor.kind("price")
            ends = [round(base * self.inventor.rng.uniform(0.97, 1.03), 2) for _ in range(2)]
            out |= {"open": ends[0], "close": ends[1]}
            out |= {"high": round(max(ends) * 1.01, 2), "low": round(min(ends) * 0.99, 2)}
        return out


def kept_echo(echo: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the arguments that every item of a list may repeat."""
    return {
        key: value
        for key, value in echo.items()
        if not re.search(r"id$|name$|title|slug|query|keyword|text|username", key)
        and rng.random() < 0.4
    }


def _fine(key: str, kind: str) -> Any:
    if kind == "bool" or key in {"success", "ok"}:
        return True
    if key in {"error", "errors"}:
        return "" if kind == "str" else 0
    if kind in {"int", "float"}:
        return 200
    return "success" if key != "code" else "200"

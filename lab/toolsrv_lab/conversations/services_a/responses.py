"""Responses of calls out of templates, and sentences with their values."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolsrv_lab.conversations.services_a.catalog import Operation, parse_value
from toolsrv_lab.conversations.services_a.values import SLOT, UnfitError, draw, stamp

_LIMIT = re.compile(r"(?i)^(limit|top|max_?results|per_?page|page_?size|count|first)$")


@dataclass(slots=True)
class Scope:
    """The names of one call: arguments by path, their words, values of its response."""

    arguments: dict[str, Any] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """Return an argument or a value of the response. Raise Unfit when there is none."""
        for place in (self.arguments, self.values):
            if name in place:
                return place[name]
        raise UnfitError(name)


@dataclass(slots=True)
class Call:
    """A call in the making; ``segment`` numbers the words of the task that it serves."""

    op: Operation
    scope: Scope
    segment: int
    response: Any = None
    error: str = ""
    sentence: str = ""


def joined(items: Sequence[str], rng: random.Random | None = None) -> str:
    """Return "A", "A and B", "A, B and C"."""
    if len(items) < 2:
        return "".join(items)
    last = ", and " if rng is not None and len(items) > 2 and rng.random() < 0.2 else " and "
    return ", ".join(items[:-1]) + last + items[-1]


def _show(value: Any) -> str:
    if isinstance(value, list):
        return joined([_show(one) for one in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, dict):
        raise UnfitError("no plain value")
    return str(value)


_EXPR = re.compile(r"^(?:(\d)\.)?([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)(~)?(?:([*@<>])(.+))?$")


def evaluate(text: str, scopes: Sequence[Scope]) -> Any:
    """Return the value of an expression over the scopes; see ``data/services_a.md``."""
    found = _EXPR.match(text)
    if found is None:
        raise ValueError(text)
    step, name, tilde, mark, rest = found.groups()
    scope = scopes[int(step) - 1 if step else 0]
    if tilde:
        if name not in scope.said:
            raise UnfitError(name)
        return scope.said[name]
    value = scope.get(name)
    if mark is None:
        return value
    if not isinstance(value, list) or not value:
        raise UnfitError(name)
    if mark == "*":
        return [one[rest] for one in value]
    where, _, path = rest.partition(".")
    if mark == "@":
        index = int(where)
        if index >= len(value):
            raise UnfitError(name)
        return value[index][path]
    pick = max if mark == ">" else min
    return pick(value, key=lambda one: one[where])[path]


def fill(form: str, scopes: Sequence[Scope]) -> str:
    """Fill an answer form. Raise Unfit where a value is missing."""

    def one(found: re.Match[str]) -> str:
        text = found[1]
        if "?" in text:
            name, _, ways = text.partition("?")
            yes, _, no = ways.partition("|")
            return yes if evaluate(name, scopes) else no
        return _show(evaluate(text, scopes))

    out = SLOT.sub(one, form)
    return out if form.startswith("{") else out[:1].upper() + out[1:]


def with_blank(scope: Scope) -> Scope:
    """Return a copy in which ``_`` is empty: a form that starts with it keeps its first letter."""
    return replace(scope, values={**scope.values, "_": ""})


class Responder:
    """Makes the response of a call from its template."""

    def __init__(self, rng: random.Random, now: dt.date, scope: Scope, count: str) -> None:
        self.rng, self.now, self.scope, self.count = rng, now, scope, count
        self.item: dict[str, Any] | None = None
        self.taken: set[tuple[str, str]] = set()

    def make(self, template: Any) -> Any:
        """Return the response; the values of its names go to the scope."""
        return self._late(self._early(template))

    def _early(self, node: Any) -> Any:
        if isinstance(node, dict):
            out = {}
            for key, inner in node.items():
                try:
                    out[key] = self._early(inner)
                except UnfitError:
                    continue
            return out
        if isinstance(node, list):
            if node and isinstance(node[0], str) and node[0].startswith("*"):
                return self._repeat(node)
            return [self._early(one) for one in node]
        if not isinstance(node, str):
            return node
        if node.startswith("$") and not re.match(r"^\$\w+=[#+]", node):
            return self._drawn(node[1:])
        if "{" in node:
            return SLOT.sub(lambda found: _show(self._known(found[1])), node)
        return node

    def _known(self, name: str) -> Any:
        if "=" in name:
            return self._drawn(name)
        if self.item is not None and name in self.item:
            return self.item[name]
        return self.scope.get(name)

    def _drawn(self, text: str) -> Any:
        name, equal, pool = text.partition("=")
        if not equal:
            plain, bar, default = name.partition("|")
            try:
                return self._known(plain)
            except UnfitError:
                if bar:
                    value = parse_value(default)
                    self.scope.values.setdefault(plain, value)
                    return value
                raise
        value = self._pool(pool)
        if self.item is not None:
            free = pool == "bool" or (pool.startswith("of(") and pool.count("/") < 5)
            for _ in range(12):
                if (name, str(value)) not in self.taken or free:
                    break
                value = self._pool(pool)
            self.taken.add((name, str(value)))
            self.item[name] = value
        else:
            self.scope.values[name] = value
        return value

    def _pool(self, pool: str) -> Any:
        about = re.match(r"^(re|named)\(([\w.]+)\)$", pool)
        if about is not None:
            return self._about(about[1], about[2])
        found = re.match(r"^(between|days)\(([\w.]+),([\w.]+)\)$", pool)
        if found is None:
            return draw(pool, self.rng, self.now)[1]
        known = self.scope.arguments
        first, last = (str(known[one])[:10] if one in known else "" for one in found.groups()[1:])
        start = dt.date.fromisoformat(first) if first else self.now - dt.timedelta(30)
        end = dt.date.fromisoformat(last) if last else max(self.now, start)
        day = start + dt.timedelta(self.rng.randint(0, max(0, (end - start).days)))
        if found[1] == "days":
            return day.isoformat()
        return stamp(self.rng, day, 0, 0)

    def _about(self, kind: str, path: str) -> str:
        """A heading, or the name of a file, that has the words of an argument in it."""
        rng = self.rng
        words = str(self.scope.arguments.get(path, ""))
        if kind == "named":
            plain = draw("filename", rng, self.now)[0]
            stem = re.sub(r"[^\w]+", "_", words.lower())
            return f"{stem}_{plain.partition('_')[2]}" if stem else plain
        other = draw("subject", rng, self.now)[0]
        if not words:
            return other
        forms = (
            f"{words} - {other}",
            f"{other} ({words})",
            f"Re: {words}, {other}",
            f"{words}: {other}",
        )
        form = rng.choice(forms)
        return form[0].upper() + form[1:]

    def _repeat(self, node: list[Any]) -> list[Any]:
        name, span = node[0][1:].split()
        low, _, high = (self.count or span).partition("-")
        size = self.rng.randint(int(low), int(high or low))
        for path, value in self.scope.arguments.items():
            if isinstance(value, int) and _LIMIT.search(path):
                size = min(size, value)
        rows, out = [], []
        outer, seen = self.item, self.taken
        self.taken = set()
        for _ in range(size):
            self.item = {}
            out.append(self._early(node[1]))
            rows.append(self.item)
        self.item, self.taken = outer, seen
        if outer is not None:
            outer[name] = rows
        else:
            self.scope.values[name] = rows
        return out

    def _late(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {key: self._late(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [self._late(one) for one in node]
        found = (
            re.match(r"^\$(\w+)=([#+])(\w+)(?:\.(\w+))?$", node) if isinstance(node, str) else None
        )
        if found is None:
            return node
        rows = self.scope.values[found[3]]
        value: Any = len(rows) if found[2] == "#" else round(sum(one[found[4]] for one in rows), 2)
        self.scope.values[found[1]] = value
        return value

"""Functions as the model sees them: names, schemas, distractors."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_lab.conversations.episode import Offered
from toolsrv_lab.conversations.services_a.catalog import Operation
from toolsrv_lab.conversations.services_a.responses import Call

_NAME = re.compile(r"[^A-Za-z0-9_]")

_READ = frozenset({"list", "get", "search", "count", "read"})


def _camel(name: str) -> str:
    parts = [one for one in re.split(r"[_\-.]", name) if one]
    head = parts[0].lower() if parts and parts[0].isupper() else "".join(parts[:1])
    return (
        head[:1].lower() + head[1:] + "".join(one[:1].upper() + one[1:] for one in parts[1:])
        if parts
        else name
    )


def _snake(name: str) -> str:
    out = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[-.]", "_", out).lower()


class Style:
    """How one service writes its names in one episode."""

    def __init__(self, rng: random.Random) -> None:
        self.seed = rng.random()
        self.functions = rng.choices(
            ("as", "snake", "camel", "prefix", "version"), (60, 12, 12, 10, 6)
        )[0]
        self.fields = rng.choices(("as", "snake", "camel"), (66, 17, 17))[0]
        self.bare = rng.random() < 0.15
        self.brief = rng.random() < 0.2
        self.lean = rng.random() < 0.3

    def function(self, op: Operation) -> str:
        """Return the name of an operation as the model sees it."""
        name = _NAME.sub("_", op.name)
        if self.functions == "snake":
            name = _snake(name)
        elif self.functions == "camel":
            name = _camel(name)
        elif self.functions == "prefix":
            name = f"{_NAME.sub('_', op.service.lower())}_{name}"
        elif self.functions == "version":
            name = f"v{int(self.seed * 3) + 1}_{name}"
        return name[:64]

    def key(self, name: str) -> str:
        """Return the name of a field."""
        if self.fields == "snake":
            return _snake(name)
        return _camel(name) if self.fields == "camel" else name

    def keys(self, node: Any) -> Any:
        """Return a JSON value with its keys renamed."""
        if isinstance(node, dict):
            return {self.key(key): self.keys(inner) for key, inner in node.items()}
        if isinstance(node, list):
            return [self.keys(one) for one in node]
        return node

    def schema(self, op: Operation, used: frozenset[str]) -> dict[str, Any]:
        """Return the parameters; a lean service drops some optional ones that no call uses."""
        out: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for number, param in enumerate(op.params.values()):
            if (
                self.lean
                and not param.required
                and param.path not in used
                and (number + int(self.seed * 10)) % 2
            ):
                continue
            here = out
            *outer, name = param.path.split(".")
            for one in outer:
                key = self.key(one)
                if param.required and key not in here["required"]:
                    here["required"].append(key)
                here = here["properties"].setdefault(
                    key, {"type": "object", "properties": {}, "required": []}
                )
            inner = json.loads(json.dumps(param.schema))
            if self.bare:
                inner.pop("description", None)
            if param.items:
                rows = inner["items"]
                rows["properties"] = {
                    self.key(key): value for key, value in rows["properties"].items()
                }
                rows["required"] = [self.key(key) for key in rows["required"]]
            here["properties"][self.key(name)] = inner
            if param.required:
                here["required"].append(self.key(name))
        return _pruned(out)

    def offered(self, op: Operation, used: frozenset[str]) -> Offered:
        """Return the function as the model sees it."""
        about = op.description
        if self.brief and ". " in about:
            about = about.split(". ")[0] + "."
        return Offered(self.function(op), about, self.schema(op, used))

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call, nested."""
        out: dict[str, Any] = {}
        for path in call.op.params:
            if path not in call.scope.arguments:
                continue
            here = out
            *outer, name = path.split(".")
            for one in outer:
                here = here.setdefault(self.key(one), {})
            here[self.key(name)] = self.keys(call.scope.arguments[path])
        return out

    def path(self, path: str) -> str:
        """Return a path with its names rewritten."""
        return ".".join(self.key(one) for one in path.split("."))


def _pruned(schema: dict[str, Any]) -> dict[str, Any]:
    if "required" in schema and not schema["required"]:
        del schema["required"]
    for inner in schema.get("properties", {}).values():
        if isinstance(inner, dict) and "properties" in inner:
            _pruned(inner)
    return schema


def distractors(
    needed: Sequence[Operation],
    barred: Sequence[Operation],
    size: int,
    rng: random.Random,
    operations: Mapping[str, Operation],
) -> list[Operation]:
    """Operations near the needed ones which serve none of them, nor anything barred."""
    kinds = {(one.noun, one.verb) for one in needed}
    gone = {(one.noun, one.verb) for one in barred}
    reads = {one.noun for one in barred if one.verb in _READ}
    base = [*needed, *barred]
    services, domains = {one.service for one in base}, {one.domain for one in base}
    nouns = {one.noun for one in base}
    ranked = []
    for one in operations.values():
        if one in needed or (one.noun, one.verb) in kinds | gone:
            continue
        if one.noun in reads and one.verb in _READ:
            continue
        near = (
            3.0 * (one.service in services)
            + 2.0 * (one.domain in domains)
            + 1.5 * (one.noun in nouns)
        )
        near += 0.5 * any(one.verb == other.verb for other in base)
        ranked.append((near + rng.random() * 2.5, one.name, one))
    ranked.sort(reverse=True)
    return [one for _, _, one in ranked[:size]]

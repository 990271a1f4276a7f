"""Services read from the files ``data/services_b_s*.txt``."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from toolsrv_lab.conversations.episode import require
from toolsrv_lab.conversations.wording import DATA

_SLOT = re.compile(r"\{(\+?)([\w.]+)(?:=([^|}]*)\|([^}]*))?\}")


@dataclass(slots=True)
class Param:
    """A parameter under several names, with its pool of values."""

    names: list[str]
    schema: dict[str, Any]
    required: bool
    pool: str
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value in a phrase; ``many``: for several calls; ``value``: a constant."""

    param: str
    many: bool = False
    value: Any = None
    said: str = ""


Phrase = tuple["str | Slot", ...]


@dataclass(slots=True)
class Group:
    """Phrases for one request, and sentences that answer it."""

    phrases: list[Phrase] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One function of a service, under several names."""

    service: Service
    names: list[str]
    texts: list[str]
    label: str
    params: dict[str, Param] = field(default_factory=dict)
    responses: list[str] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)
    corrections: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name by which the files refer to it."""
        return self.names[0]


@dataclass(slots=True)
class Chain:
    """Operations in a row; arguments are expressions over the earlier calls."""

    ops: list[tuple[str, dict[str, str]]]
    phrases: list[Phrase] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    """A service: operations, requests that it does not serve, small talk."""

    name: str
    domain: str
    text: str
    ops: list[Operation] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)


def _phrase(text: str) -> Phrase:
    out: list[str | Slot] = []
    at = 0
    for slot in _SLOT.finditer(text):
        out.append(text[at : slot.start()])
        value: Any = slot[3]
        if value is not None:
            with suppress(ValueError):
                value = json.loads(value)
        out.append(Slot(slot[2], bool(slot[1]), value, slot[4] or ""))
        at = slot.end()
    out.append(text[at:])
    return tuple(one for one in out if one != "")


_KINDS: dict[str, dict[str, Any]] = {
    "s": {"type": "string"},
    "d": {"type": "string", "format": "date"},
    "dt": {"type": "string", "format": "date-time"},
    "em": {"type": "string", "format": "email"},
    "uri": {"type": "string", "format": "uri"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "as": {"type": "array", "items": {"type": "string"}},
    "an": {"type": "array", "items": {"type": "number"}},
    "ai": {"type": "array", "items": {"type": "integer"}},
}


def _param(text: str) -> tuple[str, Param]:
    """Read ``names kind[!] [@pool] [=default] : description ;; description``."""
    head, _, told = text.partition(" : ")
    names, kind, *rest = re.split(r"\s+(?![^(\[]*[)\]])", head.strip())
    required = kind.endswith("!")
    kind = kind.rstrip("!")
    if kind.startswith("e("):
        schema: dict[str, Any] = {"type": "string", "enum": kind[2:-1].split(",")}
    elif kind.startswith("o("):
        fields = dict(one.split(":") for one in kind[2:-1].split(","))
        inner = {"properties": {name: dict(_KINDS[of]) for name, of in fields.items()}}
        schema = {"type": "array", "items": {"type": "object", **inner, "required": list(fields)}}
    else:
        schema = dict(_KINDS[kind])
    pool = ""
    for one in rest:
        if one.startswith("@"):
            pool = one[1:]
        elif one.startswith("="):
            try:
                schema["default"] = json.loads(one[1:])
            except ValueError:
                schema["default"] = one[1:]
    listed = names.split(";")
    return listed[0], Param(
        listed, schema, required, pool, [one.strip() for one in told.split(";;")]
    )


class _Reader:
    """Reads one file of services, line by line.

    ``@ name | domain | text`` a service, ``~`` a context, ``? need | what is missing``;
    ``# names | text ;; text | label`` an operation, ``p`` a parameter, ``r`` a response, ``[tag]`` a
    group, ``-`` a phrase, ``>`` a sentence, ``x error > sentence`` a failure, ``! parameter error`` a
    failure whose error has the right value; ``% op(arg=expr) op`` a chain with phrases and sentences
    of its own.
    """

    def __init__(self) -> None:
        self.services: list[Service] = []
        self._op: Operation | None = None
        self._chain: Chain | None = None
        self._tag = ""

    def read(self, mark: str, text: str) -> None:
        """Read a line. Raise ValueError where it is malformed or misplaced."""
        if mark == "@":
            name, domain, about = (one.strip() for one in text.split("|"))
            self.services.append(Service(name, domain, about))
            self._op = self._chain = None
            return
        require(self.services, "no service")
        service = self.services[-1]
        if mark == "~":
            service.contexts.append(text)
        elif mark == "?":
            need, _, what = text.rpartition(" | ")
            service.missing.append((need, what))
        elif mark == "#":
            names, about, *label = (one.strip() for one in text.split(" | "))
            texts = [one.strip() for one in about.split(";;")]
            self._op = Operation(service, names.split(";"), texts, label[0] if label else "")
            service.ops.append(self._op)
            self._chain, self._tag = None, ""
        elif mark == "%":
            calls = re.findall(r"(\w+)(?:\(((?:[^()]|\([^()]*\))*)\))?", text)
            bound = [
                (one, dict(part.split("=", 1) for part in args.split(", ") if part))
                for one, args in calls
            ]
            self._chain = Chain(bound)
            service.chains.append(self._chain)
        elif mark.startswith("["):
            self._tag = mark.strip("[]")
        elif mark == "-":
            self._group().phrases.append(_phrase(text))
        elif mark == ">":
            self._group().sentences.append(text)
        else:
            self._detail(mark, text)

    def _operation(self) -> Operation:
        if self._op is None:
            raise ValueError("no operation")
        return self._op

    def _group(self) -> Group | Chain:
        return self._chain or self._operation().groups.setdefault(self._tag, Group())

    def _detail(self, mark: str, text: str) -> None:
        op = self._operation()
        if mark == "p":
            name, param = _param(text)
            op.params[name] = param
        elif mark == "r":
            op.responses.append(text)
        elif mark == "x":
            error, _, sentence = text.partition(" > ")
            op.failures.append((error, sentence))
        elif mark == "!":
            name, _, error = text.partition(" ")
            op.corrections.append((name, error))
        else:
            raise ValueError(f"no mark {mark!r}")


def _read(file: Path) -> list[Service]:
    """Return the services of a file. Raise ValueError with the line that cannot be read."""
    reader = _Reader()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        mark, _, text = line.strip().partition(" ")
        if not mark or mark == "//":
            continue
        try:
            reader.read(mark, text.strip())
        except (ValueError, KeyError) as error:
            raise ValueError(f"{file.name}:{number}: {line!r}: {error!r}") from error
    return reader.services


@cache
def all_services() -> tuple[Service, ...]:
    """Return the services of all files, checked."""
    found = [one for file in sorted(DATA.glob("services_b_s*.txt")) for one in _read(file)]
    for service in found:
        for op in service.ops:
            _sound(op)
    return tuple(found)


def _sound(op: Operation) -> None:
    """Raise ValueError for an operation that is incomplete."""
    require(op.responses, f"{op.name}: no response")
    needed = {name for name, one in op.params.items() if one.required}
    for tag, group in op.groups.items():
        complete = group.phrases and group.sentences
        require(complete, f"{op.name}[{tag}]: phrases or sentences are missing")
        for phrase in group.phrases:
            slots = {one.param for one in phrase if isinstance(one, Slot)}
            require(slots <= set(op.params), f"{op.name}: {slots - set(op.params)} in {phrase}")
            require(needed <= slots, f"{op.name}: {needed - slots} missing in {phrase}")
    for name, param in op.params.items():
        drawn = (
            param.pool
            or "enum" in param.schema
            or param.schema["type"] == "boolean"
            or not param.required
        )
        require(drawn, f"{op.name}: no values for {name}")


@cache
def operations() -> dict[str, Operation]:
    """Return name -> operation."""
    out: dict[str, Operation] = {}
    for service in all_services():
        for op in service.ops:
            require(op.name not in out, f"two operations are {op.name}")
            out[op.name] = op
    return out

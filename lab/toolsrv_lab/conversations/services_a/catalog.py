"""Services read from the files ``data/services_a_*.txt``; ``data/services_a.md`` describes their form."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from toolsrv_lab.conversations.services_a.values import Drawn
from toolsrv_lab.conversations.wording import DATA


@dataclass(slots=True)
class Param:
    """One parameter; ``path`` has dots for a nested object, ``items`` the fields of listed objects."""

    path: str
    schema: dict[str, Any]
    required: bool
    pool: str = ""
    words: list[Drawn] = field(default_factory=list)
    items: list[tuple[str, str]] = field(default_factory=list)
    form: str = ""


@dataclass(slots=True)
class Group:
    """Phrases for one request, and forms of its answer."""

    phrases: list[str] = field(default_factory=list)
    multis: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    grouped: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One function of a service."""

    service: str
    domain: str
    name: str
    noun: str
    verb: str
    description: str
    gerund: str
    params: dict[str, Param] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=lambda: [Group()])
    responses: list[Any] = field(default_factory=list)
    fixes: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Chain:
    """Operations one after the other; ``maps``: (step, parameter, expression over earlier ones)."""

    operations: list[str]
    repeated: bool
    maps: list[tuple[int, str, str]] = field(default_factory=list)
    counts: dict[int, str] = field(default_factory=dict)
    phrases: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)


_PARAM = re.compile(
    r"^(\S+?)(\*?)\s+(enum\(.*?\)|\[enum\(.*?\)\]|\[[^\]]*\]|[^\s@=\"|]+)(?:\s+@(\w+(?:\([^)]*\))?))?"
    r"(?:\s+=(\S+))?(?:\s+\"(.*?)\")?\s*(?:\|\s*(.*))?$"
)


def _type(text: str, param: Param) -> dict[str, Any]:
    if text.startswith("[") and "@" in text:
        props: dict[str, Any] = {}
        for one in text[1:-1].split(";"):
            head, pool = one.split("@", 1)
            name, kind = head.split(":", 1)
            props[name] = _type(kind, param)
            param.items.append((name, pool))
        return {
            "type": "array",
            "items": {"type": "object", "properties": props, "required": list(props)},
        }
    if text.startswith("["):
        return {"type": "array", "items": _type(text[1:-1], param)}
    if text.startswith("enum("):
        values = []
        for one in text[5:-1].split(","):
            value, _, said = one.partition("=")
            values.append(value.strip())
            for word in said.split("/") if said else [value]:
                param.words.append((word.strip(), value.strip()))
        return {"type": "string", "enum": values}
    name, _, rest = text.partition("(")
    kind, _, form = name.partition(":")
    schema: dict[str, Any] = {
        "type": {"str": "string", "int": "integer", "num": "number", "bool": "boolean"}[kind]
    }
    if form:
        schema["format"] = form
    if rest:
        low, high = rest[:-1].split("..")
        schema["minimum"] = int(low)
        schema["maximum"] = int(high)
    return schema


def parse_value(text: str) -> Any:
    """Return JSON's value, or the text where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _param(line: str) -> Param:
    found = _PARAM.match(line)
    if found is None:
        raise ValueError(line)
    name, star, kind, pool, default, form, about = found.groups()
    param = Param(name, {}, bool(star), pool or "", form=form or "")
    param.schema = _type(kind, param)
    if default:
        param.schema["default"] = parse_value(default)
    if about:
        param.schema["description"] = about.strip()
    return param


@cache
def catalog() -> tuple[dict[str, Operation], list[Chain]]:
    """Read all services and chains. Raise ValueError with the line that cannot be read."""
    operations: dict[str, Operation] = {}
    chains: list[Chain] = []
    service = domain = ""
    op: Operation | None = None
    chain: Chain | None = None
    for file in sorted(DATA.glob("services_a_[0-9]*.txt")):
        for line in file.read_text("utf-8").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            head, _, rest = line.partition(" ")
            rest = rest.strip()
            if head == "=":
                service, domain = (one.strip() for one in rest.split("|"))
            elif head == ">":
                chain = None
                named, about, gerund = (one.strip() for one in rest.split("|"))
                name, kind = named.split("!")
                noun, verb = kind.strip().split(".")
                op = Operation(service, domain, name.strip(), noun, verb, about, gerund)
                if op.name in operations:
                    raise ValueError(f"twice: {op.name}")
                operations[op.name] = op
            elif head == "C":
                op = None
                names = rest.split()
                chain = Chain([one.rstrip("*") for one in names], names[-1].endswith("*"))
                chains.append(chain)
            elif chain is not None:
                if head == "w":
                    chain.phrases.append(rest)
                elif head == "a":
                    chain.answers.append(rest)
                elif head == "n":
                    step, count = rest.split()
                    chain.counts[int(step)] = count
                elif "=" in line:
                    left, right = line.split("=", 1)
                    step, _, path = left.partition(".")
                    chain.maps.append((int(step), path.strip(), right.strip()))
                else:
                    raise ValueError(line)
            elif op is not None:
                _line(op, head, rest, line)
            else:
                raise ValueError(line)
    for one in chains:
        for name in one.operations:
            if name not in operations:
                raise ValueError(f"chain: {name}")
    return operations, chains


def _line(op: Operation, head: str, rest: str, line: str) -> None:
    group = op.groups[-1]
    if head == "p":
        param = _param(rest)
        op.params[param.path] = param
    elif head == "g":
        op.groups.append(Group())
    elif head == "w":
        group.phrases.append(rest)
    elif head == "m":
        group.multis.append(rest)
    elif head == "a":
        group.answers.append(rest)
    elif head == "ma":
        group.grouped.append(rest)
    elif head == "z":
        group.empty.append(rest)
    elif head == "r":
        op.responses.append(json.loads(rest))
    elif head == "x":
        path, fix, text = rest.split(" ", 2)
        op.fixes.append((path, fix, text))
    elif head == "f":
        error, answer = rest.split("=>")
        op.failures.append((error.strip(), answer.strip()))
    else:
        raise ValueError(line)


@cache
def small_talk() -> dict[str, list[str]]:
    """Return the lists of small talk."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "services_a_talk.txt").read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
        elif line.strip() and not line.startswith("#"):
            found.setdefault(name, []).append(line.strip())
    return found

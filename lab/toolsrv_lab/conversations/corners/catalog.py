"""Families of functions, chains, values and phrases, read from ``data/corners_*``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolsrv_lab.conversations.wording import DATA


@dataclass(frozen=True, slots=True)
class Param:
    """An argument of a family: key words, kind of its values, description."""

    keys: tuple[str, ...]
    kind: str
    needed: bool
    about: str


@dataclass(frozen=True, slots=True)
class Out:
    """A field of a family's response."""

    keys: tuple[str, ...]
    gen: str
    labels: tuple[str, ...]
    unit: str
    plural: bool = False


@dataclass
class Family:
    """A purpose that functions of many names serve."""

    key: str
    group: str
    names: tuple[str, ...] = ()
    abouts: tuple[str, ...] = ()
    params: dict[str, Param] = field(default_factory=dict)
    says: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    outs: dict[str, Out] = field(default_factory=dict)
    asks: list[tuple[str, str]] = field(default_factory=list)
    does: list[str] = field(default_factory=list)
    told_does: list[tuple[str, bool, str, str]] = field(default_factory=list)
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    compare: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    above: list[tuple[str, str]] = field(default_factory=list)
    near: list[tuple[str, str, str]] = field(default_factory=list)
    lacks: str = ""

    @property
    def acts(self) -> bool:
        """Whether its functions change something, rather than return data."""
        return bool(self.does or self.told_does)


def split_list(text: str, mark: str) -> tuple[str, ...]:
    """Return the parts of a text between marks, without empty ones."""
    return tuple(one.strip() for one in text.split(mark) if one.strip())


def _lines(name: str) -> Iterator[str]:
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def _families() -> dict[str, Family]:
    found: dict[str, Family] = {}
    now: Family | None = None
    for line in _lines("corners_families.txt"):
        word, _, rest = line.partition(" ")
        if word == "@":
            key, group = split_list(rest, "|")
            now = found[key] = Family(key, group)
            continue
        if now is None:
            raise ValueError(line)
        if word == "fn":
            now.names = split_list(rest, "|")
        elif word == "is":
            now.abouts = split_list(rest, "|")
        elif word == "in":
            keys, kind, need, about = split_list(rest, "|")
            names = split_list(keys, ",")
            now.params[names[0]] = Param(names, kind, need == "!", about)
        elif word == "say":
            head, phrases = rest.split("|", 1)
            name, *signs = head.split()
            now.says.setdefault(name, []).extend(
                ((signs or [""])[0], one) for one in split_list(phrases, "/")
            )
        elif word == "sc":
            now.scopes = split_list(rest, " / ")
        elif word == "out":
            parts = [one.strip() for one in rest.split("|")] + ["", ""]
            keys_ = split_list(parts[0], ",")
            labels = parts[2]
            now.outs[keys_[0]] = Out(
                keys_, parts[1], split_list(labels.replace("+", ""), "/"), parts[3], "+" in labels
            )
        elif word == "q":
            text, _, name = rest.rpartition(" = ")
            now.asks.append((text.strip(), name.strip()))
        elif word == "do":
            now.does.append(rest)
        elif word == "do!":
            name, mark, text = rest.split(" ", 2)
            text, _, said = text.partition("~")
            now.told_does.append((name, mark == "+", text.strip(), said.strip()))
        elif word == "a":
            name, text = rest.split(":", 1)
            now.answers[name] = now.answers.get(name, ()) + split_list(text, " / ")
        elif word == "done":
            now.done += split_list(rest, " / ")
        elif word == "cmp":
            a, b, c, d, e = split_list(rest, "|")
            now.compare.append((a, b, c, d, e))
        elif word == "thr":
            a, b = split_list(rest, "|")
            now.above.append((a, b))
        elif word == "near":
            a, b, c = split_list(rest, "|")
            now.near.append((a, b, c))
        elif word == "no":
            now.lacks = rest
        else:
            raise ValueError(line)
    return found


@dataclass(frozen=True, slots=True)
class Follow:
    """A function that takes the result of a finder or a lookup."""

    acts: bool
    names: tuple[str, ...]
    abouts: tuple[str, ...]
    keys: tuple[str, ...]
    by_name: bool
    about: str
    out_keys: tuple[str, ...]
    gen: str
    label: str
    tail: str


@dataclass
class Chain:
    """A finder (list of items) or a lookup (one item), and what may follow."""

    listed: bool
    key: str
    names: tuple[str, ...]
    abouts: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    about: str
    noun: str
    items: str = ""
    code: str = ""
    id_keys: tuple[str, ...] = ()
    attributes: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=list
    )
    follows: list[Follow] = field(default_factory=list)


def _chains() -> list[Chain]:
    found: list[Chain] = []
    for line in _lines("corners_chains.txt"):
        parts = [one.strip() for one in line[1:].split("|")]
        if line[0] in "%$":
            chain = Chain(
                line[0] == "%",
                parts[0],
                split_list(parts[1], "/"),
                split_list(parts[2], "/"),
                split_list(parts[3], "/"),
                parts[4],
                parts[5],
                parts[6],
            )
            if chain.listed:
                chain.items, chain.code = parts[7], parts[8]
                chain.id_keys = ("id",)
                for one in split_list(parts[9], ";"):
                    name, gen, *words = one.split(":")
                    low, high = [*words, ""][:2]
                    chain.attributes.append(
                        (name, gen, split_list(low, "/"), split_list(high, "/"))
                    )
            else:
                chain.id_keys, chain.code = split_list(parts[7], "/"), parts[8]
            found.append(chain)
        else:
            parts = parts[1:] if not parts[0] else parts
            names, abouts, keys, by, about, out_keys, gen, label, *tail = [*parts, ""]
            found[-1].follows.append(
                Follow(
                    line[0] == "!",
                    split_list(names, "/"),
                    split_list(abouts, "/"),
                    split_list(keys, "/"),
                    by == "name",
                    about,
                    split_list(out_keys, "/"),
                    gen,
                    label,
                    tail[0] if tail else "",
                )
            )
    return found


def _values() -> dict[str, list[str]]:
    found = {}
    for line in _lines("corners_values.txt"):
        name, rest = line.split(":", 1)
        found[name] = [one.strip() for one in rest.split(";") if one.strip()]
    return found


def _codes() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in _lines("corners_codes.txt"):
        kind, *rest = line.split("\t")
        found.setdefault(kind, []).append([one.strip() for one in rest])
    return found


def _around() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _lines("corners_talk_around.txt"):
        kind, rest = line.split(":", 1)
        found.setdefault(kind, []).append(rest.strip())
    return found


FAMILIES = _families()

CHAINS = _chains()

VALUES = _values()

CODES = _codes()

AROUND = _around()

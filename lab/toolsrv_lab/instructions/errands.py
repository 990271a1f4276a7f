"""Hand-written needs and whole tasks: ``data/needs.tsv`` and ``data/errands.jsonl``.

A task comes with the calls that serve it.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

MARK = re.compile(r"\{([^{}=|]+)=([^{}|]*)(?:\|([^{}]*))?\}")


@cache
def written() -> Mapping[str, tuple[str, ...]]:
    """Return API id -> its needs, marked."""
    found: dict[str, list[str]] = defaultdict(list)
    text = (files("toolsrv_lab.instructions") / "data" / "needs.tsv").read_text("utf-8")
    for line in text.splitlines():
        api_id, _, need = line.partition("\t")
        found[api_id].append(need)
    return {api_id: tuple(needs) for api_id, needs in found.items()}


def spoken(need: str) -> str:
    """Return a need as the person says it, without marks."""
    return MARK.sub(lambda match: match[2] if match[3] is None else match[3], need)


def arguments(need: str) -> dict[str, str]:
    """Return parameter -> value as the API takes it, of the values that a need states."""
    return {match[1]: match[2] for match in MARK.finditer(need)}


@dataclass(frozen=True, slots=True)
class Value:
    """A value as the API takes it and as the task says it; or the ``key`` of an earlier answer."""

    value: str
    said: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ErrandStep:
    """One need of an errand. ``api`` is empty where nothing serves it."""

    words: str
    api: str
    arguments: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Errand:
    """A task and its steps."""

    task: str
    steps: tuple[ErrandStep, ...]

    @property
    def apis(self) -> list[str]:
        """The APIs that are called, once each, in their order."""
        return list(dict.fromkeys(step.api for step in self.steps if step.api))


Pools = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""(API id, parameter) -> pairs of a value and how it is said."""


@cache
def errands() -> tuple[Errand, ...]:
    """Return the errands that come with the laboratory."""
    text = (files("toolsrv_lab.instructions") / "data" / "errands.jsonl").read_text("utf-8")
    return tuple(read_errand(line) for line in text.splitlines())


def read_errand(line: str) -> Errand:
    """Return the errand in a line."""
    told = json.loads(line)
    steps = tuple(
        ErrandStep(words, api, {name: _value(str(text)) for name, text in arguments.items()})
        for words, api, arguments in told["steps"]
    )
    return Errand(str(told["task"]), steps)


def sources(arguments: Mapping[str, Value], names: Sequence[str]) -> dict[str, int]:
    """Return parameter -> which of earlier answers' facts, told by ``names``, last first, it takes.

    Without those that nothing answered.
    """
    found: dict[str, int] = {}
    for key in dict.fromkeys(one.key for one in arguments.values() if one.key):
        takers = [name for name, one in arguments.items() if one.key == key]
        places = [at for at, name in enumerate(names) if name == key][: len(takers)]
        if places:
            found |= dict(zip(takers, [*places[::-1], *places[:1] * len(takers)], strict=False))
    return found


def swapped(errand: Errand, pools: Pools, share: float, rng: random.Random) -> Errand:
    """Return the errand with this share of its values replaced by others of the same parameter.

    A value is left where the task says it more than once, or only with other letters around it.
    """
    for step in errand.steps:
        for name, value in step.arguments.items():
            pool = pools.get((step.api, name), ())
            if value.key or not pool or rng.random() > share or not _is_once(value, errand.task):
                continue
            errand = _replaced(errand, value, Value(*rng.choice(pool)))
    return errand


def _value(text: str) -> Value:
    if text.startswith("<"):
        return Value("", "", text[1:])
    value, _, said = text.partition("|")
    return Value(value, said or value)


def _is_once(value: Value, task: str) -> bool:
    return bool(value.said) and len(_places(value.said).findall(task)) == 1


def _replaced(errand: Errand, old: Value, new: Value) -> Errand:
    def other(text: str) -> str:
        return _places(old.said).sub(lambda _: new.said, text)

    steps = tuple(
        replace(
            step,
            words=other(step.words),
            arguments={
                name: new if value == old else value for name, value in step.arguments.items()
            },
        )
        for step in errand.steps
    )
    return Errand(other(errand.task), steps)


@cache
def _places(said: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(said)}(?!\w)")

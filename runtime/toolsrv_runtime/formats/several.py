"""One wish for several values: "the capitals of Peru, Chile and Bolivia" is three calls.

The matcher points at a parameter's value in the whole task. Where it finds several nearly as likely
and no more than "and", commas and the like between them, what was called for one is called for each.
Pure but for the matcher.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked, Match, Slot
from toolsrv_runtime.formats import layout, patterns, spelling
from toolsrv_runtime.formats.base import Move, Prior
from toolsrv_runtime.formats.scene import Scene
from toolsrv_runtime.formats.turn import Turn

BEHIND = 3.0
"""Nats behind the likeliest words within which others are a value of their own."""

MOST = 8
"""Values of one list that are looked at."""

_RUNS = 60
_EDGES = " ,;:.!?\"'“”‘’()"
_JOINED = re.compile(
    r"[\"'”’)]*\s*(?:[,;/&+]|\b(?:and|or|plus|as well as)\b|\s)+"
    r"(?:\b(?:also|both|then|in|of|for|at|on|to|into|from|the)\s+){0,3}[\"'“‘(]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Another:
    """A call as one before it with one value changed: the task's words for that, and arguments."""

    words: str
    function: Function
    arguments: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a value stands in the task, and how the API reads it."""

    begin: int
    end: int
    words: str
    read: str


class Several:
    """The calls of a scene that its task asks for again, with other values."""

    def __init__(self, scene: Scene, prior: Prior) -> None:
        self._scene = scene
        self._functions = {offer.function.name: offer.function for offer in scene.offers}
        apis = [one.api for one in self._functions.values()]
        found = prior.match(Asked(scene.task), apis) if any(one.ok for one in scene.path) else ()
        self._matches: dict[str, Match] = {
            api.id: match for api, match in zip(apis, found, strict=False)
        }

    def next(self) -> Another | None:
        """Return the first that was not tried."""
        return next((one for one in self._all() if not self._tried(one)), None)

    def failed(self) -> list[str]:
        """Return the words of those that were tried and gave no answer."""
        return [
            one.words for one in self._all() if self._tried(one) and not self._tried(one, ok=True)
        ]

    def _tried(self, one: Another, *, ok: bool = False) -> bool:
        return any(
            step.move.function == one.function.name
            and _texts(step.move.arguments) == one.arguments
            and (step.ok or not ok)
            for step in self._scene.attempts
        )

    def _all(self) -> Iterator[Another]:
        """Yield the calls, in the order of the path and of the task."""
        for step in self._scene.path:
            function = self._functions.get(step.move.function) if step.ok else None
            match = self._matches.get(function.api.id) if function else None
            if function is None or match is None:
                continue
            arguments = _texts(step.move.arguments)
            for key in arguments:
                for value in self._listed(function, match, key, arguments):
                    changed = {**arguments, key: value.read}
                    yield Another(value.words, function, changed)

    def _listed(
        self, function: Function, match: Match, key: str, arguments: Mapping[str, str]
    ) -> list[_Value]:
        """Return the list of values that one of a call's is in, without that; none where it is not."""
        parameter = function.parameters.get(key)
        slot = match.parameters.get(parameter.name) if parameter else None
        if parameter is None or slot is None:
            return []
        others = [value for name, value in arguments.items() if name != key]
        kind = patterns.kind(parameter, function.api)
        values = [
            one
            for one in (
                self._named(parameter.enum, slot) if parameter.enum else self._said(slot, kind)
            )
            if one.read not in others
        ]
        for group in self._groups(values, others):
            if any(one.read == arguments[key] for one in group):
                return [one for one in group if one.read != arguments[key]]
        return []

    def _said(self, slot: Slot, kind: str) -> list[_Value]:
        """Return the shortest words that are nearly as likely a value as any, in their order."""
        spans = [one for one in slot.best(_RUNS) if not one.source]
        least = max((one.score for one in spans), default=0.0) - BEHIND
        near = [one for one in spans if one.score >= least and one.score > slot.none]
        values = []
        for one in near:
            words = self._scene.task[one.begin : one.end].strip(_EDGES)
            holds = any(o != one and one.begin <= o.begin and o.end <= one.end for o in near)
            if words and not holds and spelling.looks(kind, words, self._scene.task):
                begin = self._scene.task.index(words, one.begin)
                read = spelling.read(kind, words, self._scene.task)
                values.append(_Value(begin, begin + len(words), words, read))
        return sorted(values, key=lambda one: one.begin)

    def _named(self, options: Sequence[str], slot: Slot) -> list[_Value]:
        """Return the allowed values that the task names, as far as they are likely, in their order."""
        told = slot.listed()
        likely = [options[at] for at, score in told if score >= told[0][1] - BEHIND]
        return sorted(
            (
                _Value(match.start(), match.end(), match[0], option)
                for option in likely
                for match in re.finditer(
                    rf"(?<!\w){re.escape(option)}(?!\w)", self._scene.task, re.IGNORECASE
                )
            ),
            key=lambda one: one.begin,
        )

    def _groups(self, values: Sequence[_Value], others: Sequence[str]) -> list[list[_Value]]:
        """Return runs of values with nothing but joints between them."""
        groups: list[list[_Value]] = []
        for one in values:
            if groups and self._joins(groups[-1][-1], one, others):
                groups[-1].append(one)
            else:
                groups.append([one])
        return [group[:MOST] for group in groups]

    def _joins(self, one: _Value, other: _Value, others: Sequence[str]) -> bool:
        """Whether two values stand in one list: "5 and 12 km", "5 km and 12 km"."""
        between, behind = self._scene.task[one.end : other.begin], self._scene.task[other.end :]
        for unit in sorted(others, key=len, reverse=True):
            told = re.compile(rf"\s*{re.escape(unit)}(?!\w)", re.IGNORECASE)
            if unit and (match := told.match(between)):
                return bool(told.match(behind) and _JOINED.fullmatch(between[match.end() :]))
        return bool(_JOINED.fullmatch(between))


def call(turn: Turn, another: Another, scene: Scene, missing: tuple[str, ...]) -> Move:
    """Return the call as the turn's move."""
    number = next(one.number for one in scene.offers if one.function == another.function)
    text = json.dumps(another.arguments, ensure_ascii=False)
    turn.force(layout.shown(another.words), data=True)
    turn.force(f"{layout.USE}{number}{layout.ACTION}{another.function.name}")
    thought = turn.text().partition(layout.ACTION)[0]
    turn.force(f"{layout.INPUT}{text}")
    return Move(thought, another.function.name, text, turn.pieces(), another.words, missing)


def _texts(arguments: str) -> dict[str, str]:
    found: dict[str, Any] = json.loads(arguments)
    return {name: str(value) for name, value in found.items()}

"""What a compact reply is written from: the task, the functions by number, the path, past tries.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.contract.models import Piece, Prompt
from toolsrv_runtime.planner import layout
from toolsrv_runtime.planner.reading.grounding import Sources
from toolsrv_runtime.values import facts

_ECHO = 12
"""Characters in which a response's value and an argument of its name agree if it is an echo."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A function with its number in the prompt; ``brief``: nothing says there what it does."""

    number: int
    function: Function
    brief: bool = False

    @property
    def line(self) -> str:
        """The function's line in the prompt."""
        return layout.line(self.number, self.function, brief=self.brief)


@dataclass(frozen=True, slots=True)
class Scene:
    """The cleaned task, the functions, the path, past attempts, and the facts seen, last first."""

    task: str
    offers: tuple[Offer, ...]
    path: tuple[Step, ...]
    attempts: tuple[Step, ...]
    seen: tuple[facts.Fact, ...]

    def sources(self, part: str) -> Sources:
        """Return what the arguments for a part of the task may be taken from.

        What leads up to a part begins behind the part that was served before it.
        """
        end = self.task.find(part) + len(part)
        before = [self.task.find(about(step)) + len(about(step)) for step in self.path if step.ok]
        begin = max((at for at in before if at <= end - len(part)), default=0)
        return Sources(part, self.task[begin : max(begin, end)] or part, self.task, self.seen)

    def spent(self, part: str, function: str) -> list[dict[str, Any]]:
        """Return the arguments that ``function`` was already called with for ``part``."""
        return [
            json.loads(step.move.arguments)
            for step in self.attempts
            if step.move.function == function and about(step) == part
        ]

    def number(self, step: Step | None) -> int:
        """Return the number of the function that a step called."""
        name = step.move.function if step else ""
        return next((one.number for one in self.offers if one.function.name == name), 1)

    def head(self) -> Prompt:
        """Return the prompt: functions, task, and the path so far."""
        listing = "".join(offer.line for offer in self.offers)
        head = [Piece(layout.SYSTEM, special=True), Piece(listing, shared=True)]
        head += [
            Piece(layout.USER, special=True),
            Piece(layout.shown(self.task)),
            Piece(layout.THOUGHT, special=True),
        ]
        for step in self.path:
            head += step.move.pieces
            head += [Piece(layout.OBSERVATION, special=True), Piece(step.observation)]
            head.append(Piece(layout.THOUGHT, special=True))
        return tuple(head)


def about(step: Step) -> str:
    """Return the part of the task that a step was about."""
    return step.move.about


def news(step: Step) -> list[facts.Fact]:
    """Return the facts of a response without those that echo the call's own arguments.

    All of them where nothing else is there.
    """
    given = {name: str(value) for name, value in json.loads(step.move.arguments).items()}
    every = list(facts.whole(step.response).items())
    fresh = [
        (name, value)
        for name, value in every
        if value not in given.values()
        and not (name in given and value[:_ECHO] == facts.plain(given[name])[:_ECHO])
    ]
    return fresh or every


def used(spent: Sequence[dict[str, Any]], key: str) -> set[str]:
    """Return the values that ``key`` had in past calls."""
    return {str(arguments[key]) for arguments in spent if key in arguments}

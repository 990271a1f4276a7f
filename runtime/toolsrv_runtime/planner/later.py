"""Needs that only an answer makes known: what a question asks for besides, or asks for at all.

"Where else could I pay with the money of Liechtenstein": which money that is comes first, and only
with its name does the question ask where it is used. Pure but for the matcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Match
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.planner import costs
from toolsrv_runtime.planner.calculating import calculator
from toolsrv_runtime.planner.inverse import is_shaped_for
from toolsrv_runtime.planner.matched import Matched, holds
from toolsrv_runtime.planner.need import Need
from toolsrv_runtime.planner.scene import Scene, about

HIDDEN_WHOLE, HIDDEN = 0.0, 4.0
"""The log-odds for the whole task, and for a clause once its answer is known, from which on the
clause asks for another function too."""

LATE_WHOLE, LATE = -5.5, -2.0
"""Those for the whole task, and for its clause once another call is answered, of a late need."""

_SO = re.compile(r"\bso(?: that)?\s+$", re.IGNORECASE)
_SOMEBODY = re.compile(r"(?:i|we|they|he|she|you|my \w+|our \w+)\b", re.IGNORECASE)

COVERED = 0.8
"""Share of a clause that calls were made for from which on it has had its answer."""


class Plan(Protocol):
    """What is known of the whole task (``planned.Planned``)."""

    @property
    def matches(self) -> Mapping[str, Match]:
        """API's id -> the matcher's view of it beside the whole task."""
        ...

    def clause(self, api: Api) -> str:
        """Return the likeliest words that ask for a function."""
        ...

    def waits(self, need: Need) -> bool:
        """Whether a value that it must have is neither stated nor answered."""
        ...


def later(plan: Plan, scene: Scene, prior: Reranker) -> Iterator[Need]:
    """Yield what clauses with an answer ask for besides, then what is a need only now."""
    yield from _likeliest(_hidden(plan, scene, prior))
    yield from _likeliest(_late(plan, scene, prior))


def _hidden(plan: Plan, scene: Scene, prior: Reranker) -> Iterator[Need]:
    """Yield functions that take what was answered, for the words that had their answer."""
    for words in dict.fromkeys(about(step) for step in scene.path if step.ok):
        if calculator(words, scene) or costs.calculator(words, scene):
            continue
        matched = Matched(scene, words, prior)
        for function in _uncalled(plan, scene, HIDDEN_WHOLE):
            serves = matched.serves(function.api)
            if serves >= HIDDEN and _takes_answer(function.api, matched):
                yield Need(words, scene.task.find(words), function, serves)


def _late(plan: Plan, scene: Scene, prior: Reranker) -> Iterator[Need]:
    """Yield functions that take what was answered, for words of their own.

    "How many kilometres lie between the capitals of Peru and Chile": as long as nobody knows these,
    little says that a function for two cities is meant. Words that were served already ask for no
    more, nor do sums.
    """
    for function in _uncalled(plan, scene, LATE_WHOLE) if scene.path else ():
        words = plan.clause(function.api)
        need = Need(words, scene.task.find(words), function, 0.0)
        if not words or _served_share(need, scene) >= COVERED or plan.waits(need):
            continue
        if calculator(words, scene) or costs.calculator(words, scene):
            continue
        if _is_purpose(need, scene.task):
            continue
        matched = Matched(scene, words, prior)
        serves = matched.serves(function.api)
        if any(is_shaped_for(function, one.function, matched) for one in scene.offers):
            continue
        if serves >= LATE and _takes_answer(function.api, matched, besides=scene.task):
            yield replace(need, serves=serves, late=True)


def _is_purpose(need: Need, task: str) -> bool:
    """Whether words only say what a wish is for: "take seed 21, so I get the same one again"."""
    return bool(_SO.search(task, 0, need.begin) and _SOMEBODY.match(need.words))


def _uncalled(plan: Plan, scene: Scene, least: float) -> Iterator[Function]:
    """Yield the functions without a call that the whole task needs with such log-odds."""
    called = {step.move.function for step in scene.attempts}
    for function in (one.function for one in scene.offers):
        match = plan.matches.get(function.api.id)
        if function.name not in called and match is not None and match.serves >= least:
            yield function


def _takes_answer(api: Api, matched: Matched, *, besides: str = "") -> bool:
    """Whether a function takes what was answered, and does not stand in the text ``besides``."""
    return any(
        matched.is_answered(api, one)
        and not holds(besides, next(iter(matched.values(api, one)), ""))
        for one in api.required
    )


def _served_share(need: Need, scene: Scene) -> float:
    """Return the share of a need's words that calls were made for."""
    taken: set[int] = set()
    for step in scene.path:
        begin = scene.task.find(about(step)) if step.ok else -1
        taken |= set(range(begin, begin + len(about(step)))) if begin >= 0 else set()
    return len(taken & set(range(need.begin, need.end))) / max(1, len(need.words))


def _likeliest(needs: Iterator[Need]) -> list[Need]:
    return sorted(needs, key=lambda one: -one.serves)

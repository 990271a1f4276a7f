"""Which words of a task, or of earlier results, are a call's arguments: the matcher's reading.

A trained model's view of the task, given to the language model as a hint: it may write the value
otherwise (a date as the function takes it).
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from toolsrv_registry.api import Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked, Fact, Match, Slot, Span
from toolsrv_runtime.agent.coverage import Need
from toolsrv_runtime.formats.base import FINISH, Prior, Step
from toolsrv_runtime.values import facts

GIVEN = 0.5
"""Probability from which on a value is taken to stand in the task or in a result."""

SEEN = 24
"""Facts of earlier results that the matcher sees, the latest first."""

SPANS = 6
"""Places in the task or a result that are looked at for one argument, the likeliest ones."""

MOST_SHARED = 4
"""Arguments for which the same words are likeliest that are told apart; others get no hint."""

WORDS_LIMIT = 80
"""Characters of words that are named; longer ones are a clause rather than a value."""


class Reading:
    """The matcher's reading of a task behind the results of a path."""

    def __init__(self, task: str, path: Sequence[Step], prior: Prior) -> None:
        self._task = task
        self._prior = prior
        self._facts = tuple(_seen(path))[:SEEN]

    def ready(self, need: Need, functions: Mapping[str, Function]) -> bool:
        """Whether all required arguments of a need's best function stand somewhere."""
        function = functions.get(need.functions[0])
        match = self._match(need, function) if function is not None else None
        if function is None or match is None:
            return False
        slots = (match.parameters.get(one.name) for one in function.api.required)
        return all(slot is None or _given(slot) for slot in slots)

    def follows(self, need: Need, functions: Mapping[str, Function]) -> bool:
        """Whether a required argument of a need's function stands in a result, and none nowhere."""
        function = functions.get(need.functions[0])
        match = self._match(need, function) if function is not None else None
        if function is None or match is None or not self.ready(need, functions):
            return False
        slots = (match.parameters.get(one.name) for one in function.api.required)
        best = (slot.best(1) for slot in slots if slot is not None and _given(slot))
        return any(spans and spans[0].source for spans in best)

    def values(self, need: Need, function: Function) -> dict[str, str]:
        """Return argument key -> the words, or the listed value, that the matcher takes for it."""
        match = self._match(need, function)
        if match is None:
            return {}
        slots = {
            key: (match.parameters[parameter.name], parameter)
            for key, parameter in function.parameters.items()
            if parameter.name in match.parameters and _given(match.parameters[parameter.name])
        }
        found = {
            key: _listed(slot, parameter)
            for key, (slot, parameter) in slots.items()
            if parameter.enum
        }
        found |= self._shared_out({key: slot for key, (slot, one) in slots.items() if not one.enum})
        return {key: found[key] for key in slots if found.get(key)}

    def hint(self, need: Need, functions: Sequence[Function]) -> str:
        """Return one line for each function of a need: its name and the words for its arguments."""
        lines = []
        for function in functions:
            if function.name in need.functions and (found := self.values(need, function)):
                pairs = (
                    f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in found.items()
                )
                lines.append(f"{function.name}: {', '.join(pairs)}")
        return "\n".join(lines)

    def _match(self, need: Need, function: Function) -> Match | None:
        asked = Asked(self._task, (need.begin, need.end), self._facts)
        return next(iter(self._prior.match(asked, [function.api])), None)

    def _shared_out(self, slots: Mapping[str, Slot]) -> dict[str, str]:
        """Return argument key -> its words, likeliest together; no two arguments have the same."""
        said = {key: self._likely(slot) for key, slot in slots.items()}
        found = {key: max(words, key=words.__getitem__) for key, words in said.items() if words}
        times = Counter(found.values())
        shared = [key for key, words in found.items() if times[words] > 1][:MOST_SHARED]
        taken = {words for key, words in found.items() if key not in shared}
        ways = (
            way
            for way in itertools.product(*(said[key] for key in shared))
            if len({*way, *taken}) == len(way) + len(taken)
        )

        def likelihood(way: Sequence[str]) -> float:
            return sum(said[key][words] for key, words in zip(shared, way, strict=True))

        best = max(ways, key=likelihood, default=())
        return {key: words for key, words in found.items() if key not in shared} | dict(
            zip(shared, best, strict=False)
        )

    def _likely(self, slot: Slot) -> dict[str, float]:
        """Return words -> the log-probability that they are the value, wherever they stand."""
        found: dict[str, float] = {}
        for span in slot.best(SPANS):
            words = self._words(span)
            found[words] = float(np.logaddexp(found.get(words, -np.inf), span.score))
        return found

    def _words(self, span: Span) -> str:
        source, begin, end, _ = span
        text = (self._task if source == 0 else self._facts[source - 1][1])[begin:end].strip()
        return text if len(text) <= WORDS_LIMIT else ""


def _listed(slot: Slot, parameter: Parameter) -> str:
    listed = slot.listed()
    if not listed or not parameter.enum or listed[0][1] <= slot.none:
        return ""
    return parameter.enum[listed[0][0]]


def _given(slot: Slot) -> bool:
    return math.exp(slot.none) <= 1 - GIVEN


def _seen(path: Sequence[Step]) -> list[Fact]:
    found: dict[Fact, None] = {}
    for step in reversed(path):
        if step.ok and step.move.function != FINISH:
            found.update(dict.fromkeys(facts.whole(step.response).items()))
    return list(found)

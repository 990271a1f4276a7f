"""Coverage of a task by calls, scored by the matcher: subtasks, candidates, arguments.

The matcher is a trained cross-encoder (``toolsrv_registry.matcher``). For each candidate it returns
the log-odds that the task asks for it, and the words of the task that do. A subtask is such a run
of words with the candidates that serve it. ``ArgumentReader`` finds the words of the task, or of
earlier results, that are a call's arguments; they are given to the model as a hint.
``MatcherHints`` reports the uncovered subtasks. Knows no words of any language, and calls no
language model.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Fact, Match, MatchRequest, Slot, Span
from toolsrv_runtime.contract.format import FINISH, Action, Reranker, Step
from toolsrv_runtime.contract.hints import MadeCall, NoHints
from toolsrv_runtime.values import facts

NEEDED_LOG_ODDS = 0.0
"""Log-odds of the matcher from which on a task is taken to ask for a candidate.

Of 269 calls that 156 tasks need, 248 are among those above it, and 59 that none needs; over a
catalog in other words 359 of 450 that 268 tasks need, and 158.
"""

EXCLUDED_LOG_ODDS = -3.0
"""Log-odds below which a candidate is not even shown, where it is also far behind the best."""

EXCLUDED_MARGIN = 6.0
"""Nats behind the best: of a catalog that the matcher does not know all candidates score low."""

UNSERVED_LOG_ODDS = -1.5
"""Log-odds of the best candidate below which nothing serves a task.

Of 268 tasks over a catalog in other words, which the matcher was not trained for, three lie below.
"""

MIN_CANDIDATES = 2
"""Candidates that are shown whatever the matcher says."""

ALTERNATIVE_MARGIN = 3.0
"""Nats by which a candidate may fall behind another for the same words and still serve them."""

SAME_SUBTASK_OVERLAP = 0.5
"""Share of the shorter run of words from which on two runs are one need."""

MOST_ATTEMPTS = 2
"""Failed calls for one need on a path after which it is left open there."""

MOST_DOUBTED = 3
"""Calls refused as made up, in the whole search, after which a path without a result is given up."""

MOST_FAILED = 3
"""Failed calls for one need on all paths after which it is left open."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """A run of the task's words that asks for a call, and the candidates for it, best first."""

    text: str
    begin: int
    end: int
    functions: tuple[str, ...]


class HasMatcher(Protocol):
    """Who has the matcher: a retriever, or the matcher alone."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """See ``Reranker.match``."""


def find_subtasks(
    task: str, functions: Sequence[Function], prior: HasMatcher
) -> tuple[tuple[Subtask, ...], tuple[Subtask, ...]]:
    """Return the needs of a task in the order of its words, and what may follow from them.

    What may follow is a candidate that falls behind another for the same words: of "which other
    countries have Peru's currency" the first call tells the currency. None where the matcher is
    silent.
    """
    matches = prior.match(MatchRequest(task), [one.api for one in functions])
    found: list[tuple[float, int, int, list[str]]] = []
    behind: list[Subtask] = []
    ranked = sorted(zip(functions, matches, strict=False), key=lambda pair: -pair[1].serves)
    for function, match in ranked:
        spans = match.clause.best(1) if match.serves >= NEEDED_LOG_ODDS else []
        if not spans or spans[0].source:
            continue
        begin, end = spans[0].begin, spans[0].end
        clash = [
            one for one in found if _overlap((begin, end), (one[1], one[2])) > SAME_SUBTASK_OVERLAP
        ]
        if not clash:
            found.append((match.serves, begin, end, [function.name]))
            continue
        if all(one[0] - match.serves <= ALTERNATIVE_MARGIN for one in clash):
            clash[0][3].append(function.name)
        behind.append(Subtask(task[begin:end].strip(), begin, end, (function.name,)))
    wanted = tuple(
        Subtask(task[begin:end].strip(), begin, end, tuple(names))
        for _, begin, end, names in sorted(found, key=lambda one: one[1])
    )
    return wanted, tuple(behind)


def shortlist(task: str, functions: Sequence[Function], prior: Reranker) -> tuple[Function, ...]:
    """Return the functions that the matcher does not rule out, best first, ``MIN_CANDIDATES`` at least.

    Of eight candidates three are left, and with them all calls that 92 % of 156 tasks need; the
    retriever's first five have those of 83 %.
    """
    matches = prior.match(MatchRequest(task), [one.api for one in functions])
    if len(matches) < len(functions):
        return tuple(functions)
    ranked = sorted(zip(functions, matches, strict=True), key=lambda pair: -pair[1].serves)
    least = min(EXCLUDED_LOG_ODDS, ranked[0][1].serves - EXCLUDED_MARGIN) if ranked else 0.0
    kept = [function for function, match in ranked if match.serves > least]
    return tuple(
        kept if len(kept) >= MIN_CANDIDATES else [one for one, _ in ranked[:MIN_CANDIDATES]]
    )


def is_unserved(task: str, functions: Sequence[Function], prior: Reranker, *, fits: bool) -> bool:
    """Whether no function serves any of the task, as the matcher sees it; never without one.

    ``fits``: the retriever finds something near the task. Where it does not, it is enough that the
    matcher needs nothing.
    """
    matches = prior.match(MatchRequest(task), [one.api for one in functions])
    least = UNSERVED_LOG_ODDS if fits else NEEDED_LOG_ODDS
    return bool(matches) and all(one.serves < least for one in matches)


def has_matcher(task: str, functions: Sequence[Function], prior: Reranker) -> bool:
    """Whether the matcher can be used."""
    return bool(prior.match(MatchRequest(task), [one.api for one in functions[:1]]))


def open_subtasks(
    wanted: Iterable[Subtask], path: Sequence[Step], failed: Sequence[Step] = ()
) -> tuple[Subtask, ...]:
    """Return the needs that no successful call on a path serves and that are worth trying still.

    ``failed`` are the steps that failed anywhere in the search. A repeated call brings nothing new:
    it serves no need, but counts as an attempt.
    """
    wanted = tuple(wanted)
    left = [step for step in path if step.move.function != FINISH]
    found = []
    for need in wanted:
        tried = [
            step
            for step in left
            if serves_subtask(step, need, wanted) and not (step.early or step.doubted)
        ]
        if any(step.unanswered for step in tried):
            continue
        served = next((step for step in tried if step.ok and not step.repeats), None)
        if served is not None:
            left.remove(served)
        elif len(tried) < MOST_ATTEMPTS and _count(failed, need) < MOST_FAILED:
            found.append(need)
    return tuple(_in_turn(found, path))


def serves_subtask(step: Step, need: Subtask, wanted: Collection[Subtask]) -> bool:
    """Whether a call is for a need of ``wanted``: the model was asked to serve it, else by its function."""
    asked = step.move.need
    if asked and any(one.text == asked for one in wanted):
        return asked == need.text
    return step.move.function in need.functions


def uncovered_texts(wanted: Iterable[Subtask], made: Iterable[Step]) -> tuple[str, ...]:
    """Return the words of the needs that none of ``made`` serves, the steps that succeeded."""
    wanted = tuple(wanted)
    left, found = list(made), []
    for need in wanted:
        served = next((step for step in left if serves_subtask(step, need, wanted)), None)
        if served is None:
            found.append(need.text)
        else:
            left.remove(served)
    return tuple(found)


def _count(steps: Iterable[Step], need: Subtask) -> int:
    return sum(step.move.function in need.functions for step in steps)


def last_postponed_function(path: Sequence[Step]) -> str:
    """Return the function whose call was refused last, as another one may tell its values, or ""."""
    return path[-1].move.function if path and path[-1].early else ""


def _in_turn(left: Sequence[Subtask], path: Sequence[Step]) -> Iterator[Subtask]:
    """Yield needs without the function whose call came too early, until another one was made."""
    waits = last_postponed_function(path)
    for need in left:
        functions = tuple(name for name in need.functions if name != waits)
        if functions:
            yield replace(need, functions=functions)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the common words of two runs as a share of the shorter one."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(0, common) / max(1, min(one[1] - one[0], other[1] - other[0]))


VALUE_PROBABILITY = 0.5
"""Probability from which on a value is taken to stand in the task or in a result."""

MOST_FACTS = 24
"""Facts of earlier results that the matcher sees, the latest first."""

MOST_SPANS = 6
"""Places in the task or a result that are looked at for one argument, the likeliest ones."""

MOST_SHARED_SPANS = 4
"""Arguments for which the same words are likeliest that are told apart; others get no hint."""

HINT_LIMIT = 80
"""Characters of words that are named; longer ones are a clause rather than a value."""


class ArgumentReader:
    """The matcher's reading of a task behind the results of a path."""

    def __init__(self, task: str, path: Sequence[Step], prior: Reranker) -> None:
        self._task = task
        self._prior = prior
        self._facts = tuple(_seen(path))[:MOST_FACTS]

    def ready(self, need: Subtask, functions: Mapping[str, Function]) -> bool:
        """Whether all required arguments of a need's best function stand somewhere."""
        function = functions.get(need.functions[0])
        match = self._match(need, function) if function is not None else None
        if function is None or match is None:
            return False
        slots = (match.parameters.get(one.name) for one in function.api.required)
        return all(slot is None or _given(slot) for slot in slots)

    def follows(self, need: Subtask, functions: Mapping[str, Function]) -> bool:
        """Whether a required argument of a need's function stands in a result, and none nowhere."""
        function = functions.get(need.functions[0])
        match = self._match(need, function) if function is not None else None
        if function is None or match is None or not self.ready(need, functions):
            return False
        slots = (match.parameters.get(one.name) for one in function.api.required)
        best = (slot.best(1) for slot in slots if slot is not None and _given(slot))
        return any(spans and spans[0].source for spans in best)

    def values(self, need: Subtask, function: Function) -> dict[str, str]:
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

    def hint(self, need: Subtask, functions: Sequence[Function]) -> str:
        """Return one line for each function of a need: its name and the words for its arguments."""
        lines = []
        for function in functions:
            if function.name in need.functions and (found := self.values(need, function)):
                pairs = (
                    f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in found.items()
                )
                lines.append(f"{function.name}: {', '.join(pairs)}")
        return "\n".join(lines)

    def _match(self, need: Subtask, function: Function) -> Match | None:
        asked = MatchRequest(self._task, (need.begin, need.end), self._facts)
        return next(iter(self._prior.match(asked, [function.api])), None)

    def _shared_out(self, slots: Mapping[str, Slot]) -> dict[str, str]:
        """Return argument key -> its words, likeliest together; no two arguments have the same."""
        said = {key: self._likely(slot) for key, slot in slots.items()}
        found = {key: max(words, key=words.__getitem__) for key, words in said.items() if words}
        times = Counter(found.values())
        shared = [key for key, words in found.items() if times[words] > 1][:MOST_SHARED_SPANS]
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
        for span in slot.best(MOST_SPANS):
            words = self._words(span)
            found[words] = float(np.logaddexp(found.get(words, -np.inf), span.score))
        return found

    def _words(self, span: Span) -> str:
        source, begin, end, _ = span
        text = (self._task if source == 0 else self._facts[source - 1][1])[begin:end].strip()
        return text if len(text) <= HINT_LIMIT else ""


def _listed(slot: Slot, parameter: Parameter) -> str:
    listed = slot.listed()
    if not listed or not parameter.enum or listed[0][1] <= slot.none:
        return ""
    return parameter.enum[listed[0][0]]


def _given(slot: Slot) -> bool:
    return math.exp(slot.none) <= 1 - VALUE_PROBABILITY


def _seen(path: Sequence[Step]) -> list[Fact]:
    found: dict[Fact, None] = {}
    for step in reversed(path):
        if step.ok and step.move.function != FINISH:
            found.update(dict.fromkeys(facts.whole(step.response).items()))
    return list(found)


class MatcherHints(NoHints):
    """Searches for the task as it is written; open parts are the matcher's needs."""

    def __init__(self, prior: Reranker) -> None:
        self._prior = prior

    def uncovered(
        self, task: str, functions: Sequence[Function], results: Iterable[MadeCall]
    ) -> tuple[str, ...]:
        """Return the needs that no successful call of ``results`` served, in the task's words."""
        by_id = {function.api.id: function.name for function in functions}
        distinct = {
            (one.api_id, json.dumps(dict(one.arguments), sort_keys=True, default=str)): one.api_id
            for one in results
            if one.ok and one.api_id in by_id
        }
        made = [
            Step(Action(None, by_id[api_id], "{}"), "", ok=True) for api_id in distinct.values()
        ]
        wanted, _ = find_subtasks(task, functions, self._prior)
        return uncovered_texts(wanted, made)

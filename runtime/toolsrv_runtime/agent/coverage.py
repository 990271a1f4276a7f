"""Which parts of a task still need a call: the matcher, asked about the whole task.

The matcher is a trained cross-encoder (``toolsrv_registry.matcher``): of each candidate it says how
likely the task asks for it, and which words of the task do. A need is such a run of words with the
candidates that serve it. No words of any language are known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked, Match
from toolsrv_runtime.formats.base import FINISH, Prior, Step

NEEDED = 0.0
"""Log-odds of the matcher from which on a task is taken to ask for a candidate.

Of 269 calls that 156 tasks need, 248 are among those above it, and 59 that none needs; over a
catalog in other words 359 of 450 that 268 tasks need, and 158.
"""

RULED_OUT = -3.0
"""Log-odds below which a candidate is not even shown, where it is also far behind the best."""

FAR_BEHIND = 6.0
"""Nats behind the best: of a catalog that the matcher does not know all candidates score low."""

NOTHING = -1.5
"""Log-odds of the best candidate below which nothing serves a task.

Of 268 tasks over a catalog in other words, which the matcher was not trained for, three lie below.
"""

LEAST = 2
"""Candidates that are shown whatever the matcher says."""

MARGIN = 3.0
"""Nats by which a candidate may fall behind another for the same words and still serve them."""

OVERLAP = 0.5
"""Share of the shorter run of words from which on two runs are one need."""

ATTEMPTS = 2
"""Failed calls for one need on a path after which it is left open there."""

MOST_DOUBTED = 3
"""Calls refused as made up, in the whole search, after which a path without a result is given up."""

MOST_FAILED = 3
"""Failed calls for one need on all paths after which it is left open."""


@dataclass(frozen=True, slots=True)
class Need:
    """A run of the task's words that asks for a call, and the candidates for it, best first."""

    text: str
    begin: int
    end: int
    functions: tuple[str, ...]


class Matches(Protocol):
    """Who has the matcher: a retriever, or the matcher alone."""

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """See ``Prior.match``."""


def needs(
    task: str, functions: Sequence[Function], prior: Matches
) -> tuple[tuple[Need, ...], tuple[Need, ...]]:
    """Return the needs of a task in the order of its words, and what may follow from them.

    What may follow is a candidate that falls behind another for the same words: of "which other
    countries have Peru's currency" the first call tells the currency. None where the matcher is
    silent.
    """
    matches = prior.match(Asked(task), [one.api for one in functions])
    found: list[tuple[float, int, int, list[str]]] = []
    behind: list[Need] = []
    ranked = sorted(zip(functions, matches, strict=False), key=lambda pair: -pair[1].serves)
    for function, match in ranked:
        spans = match.clause.best(1) if match.serves >= NEEDED else []
        if not spans or spans[0].source:
            continue
        begin, end = spans[0].begin, spans[0].end
        clash = [one for one in found if _overlap((begin, end), (one[1], one[2])) > OVERLAP]
        if not clash:
            found.append((match.serves, begin, end, [function.name]))
            continue
        if all(one[0] - match.serves <= MARGIN for one in clash):
            clash[0][3].append(function.name)
        behind.append(Need(task[begin:end].strip(), begin, end, (function.name,)))
    wanted = tuple(
        Need(task[begin:end].strip(), begin, end, tuple(names))
        for _, begin, end, names in sorted(found, key=lambda one: one[1])
    )
    return wanted, tuple(behind)


def shortlist(task: str, functions: Sequence[Function], prior: Prior) -> tuple[Function, ...]:
    """Return the functions that the matcher does not rule out, best first, ``LEAST`` at least.

    Of eight candidates three are left, and with them all calls that 92 % of 156 tasks need; the
    retriever's first five have those of 83 %.
    """
    matches = prior.match(Asked(task), [one.api for one in functions])
    if len(matches) < len(functions):
        return tuple(functions)
    ranked = sorted(zip(functions, matches, strict=True), key=lambda pair: -pair[1].serves)
    least = min(RULED_OUT, ranked[0][1].serves - FAR_BEHIND) if ranked else 0.0
    kept = [function for function, match in ranked if match.serves > least]
    return tuple(kept if len(kept) >= LEAST else [one for one, _ in ranked[:LEAST]])


def is_unserved(task: str, functions: Sequence[Function], prior: Prior, *, fits: bool) -> bool:
    """Whether no function serves any of the task, as the matcher sees it; never without one.

    ``fits``: the retriever finds something near the task. Where it does not, it is enough that the
    matcher needs nothing.
    """
    matches = prior.match(Asked(task), [one.api for one in functions])
    least = NOTHING if fits else NEEDED
    return bool(matches) and all(one.serves < least for one in matches)


def has_matcher(task: str, functions: Sequence[Function], prior: Prior) -> bool:
    """Whether the matcher can be used."""
    return bool(prior.match(Asked(task), [one.api for one in functions[:1]]))


def open_needs(
    wanted: Iterable[Need], path: Sequence[Step], failed: Sequence[Step] = ()
) -> tuple[Need, ...]:
    """Return the needs that no successful call on a path serves and that are worth trying still.

    ``failed`` are the steps that failed anywhere in the search. A repeated call brings nothing new: it
    serves no need, but counts as an attempt.
    """
    wanted = tuple(wanted)
    left = [step for step in path if step.move.function != FINISH]
    found = []
    for need in wanted:
        tried = [
            step for step in left if serves(step, need, wanted) and not (step.early or step.doubted)
        ]
        if any(step.unanswered for step in tried):
            continue
        served = next((step for step in tried if step.ok and not step.repeats), None)
        if served is not None:
            left.remove(served)
        elif len(tried) < ATTEMPTS and _count(failed, need) < MOST_FAILED:
            found.append(need)
    return tuple(_in_turn(found, path))


def serves(step: Step, need: Need, wanted: Collection[Need]) -> bool:
    """Whether a call is for a need of ``wanted``: the model was asked to serve it, else by its function."""
    asked = step.move.need
    if asked and any(one.text == asked for one in wanted):
        return asked == need.text
    return step.move.function in need.functions


def unserved(wanted: Iterable[Need], made: Iterable[Step]) -> tuple[str, ...]:
    """Return the words of the needs that none of ``made`` serves, the steps that succeeded."""
    wanted = tuple(wanted)
    left, found = list(made), []
    for need in wanted:
        served = next((step for step in left if serves(step, need, wanted)), None)
        if served is None:
            found.append(need.text)
        else:
            left.remove(served)
    return tuple(found)


def _count(steps: Iterable[Step], need: Need) -> int:
    return sum(step.move.function in need.functions for step in steps)


def too_early(path: Sequence[Step]) -> str:
    """Return the function whose call was refused last, as another one may tell its values, or ""."""
    return path[-1].move.function if path and path[-1].early else ""


def _in_turn(left: Sequence[Need], path: Sequence[Step]) -> Iterator[Need]:
    """Yield needs without the function whose call came too early, until another one was made."""
    waits = too_early(path)
    for need in left:
        functions = tuple(name for name in need.functions if name != waits)
        if functions:
            yield replace(need, functions=functions)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the common words of two runs as a share of the shorter one."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(0, common) / max(1, min(one[1] - one[0], other[1] - other[0]))

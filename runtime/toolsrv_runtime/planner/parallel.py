"""Several calls of one function told side by side: "15% of 80 and 20% of 45", "5 km and 3 miles".

Each has a value of its own for two parameters or more; which belong together is told by their
order, not by how likely they are. Pure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Match
from toolsrv_runtime.planner.reading.mentions import Mention, mentions

BEHIND = (3.5, 6.0, 9.5)
"""Nats behind the likeliest value of a parameter within which another one may be.

Tried in turn; the first counts that sets most parameters side by side.
"""

Side = dict[str, Mention]
"""The values of one call: the function's key -> where its value stands."""

_INSIDE, _BETWEEN = 14, 32
"""Most characters between two values of a call, and between two calls."""

_JOINT = re.compile(r"\W*(?:\w+\W+){0,2}?(?:[,;/&+]|\b(?:and|plus|then|also)\b)", re.IGNORECASE)


def sides(function: Function, match: Match, task: str) -> list[Side]:
    """Return the values of each call, in their order; empty where the task tells no such calls."""
    widest = {
        key: mentions(parameter, function.api, slot, task, behind=BEHIND[-1])
        for key, parameter in function.parameters.items()
        if (slot := match.parameters.get(parameter.name))
    }
    best: list[Side] = []
    for behind in BEHIND:
        found = {key: _within(some, behind) for key, some in widest.items()}
        paired = _paired(_own(found), task)
        if paired and (not best or len(paired[0]) > len(best[0])):
            best = paired
    return best


def _within(some: Sequence[Mention], behind: float) -> list[Mention]:
    """Return the values that are at most so far behind the likeliest."""
    least = max((one.score for one in some), default=0.0) - behind
    return [one for one in some if one.score >= least]


def _own(found: dict[str, list[Mention]]) -> dict[str, list[Mention]]:
    """Return the values without those that another parameter is likelier to take."""
    every = [(key, one) for key, some in found.items() for one in some]
    return {
        key: [
            one
            for one in some
            if not any(
                other != key and rival.touches(one) and rival.score > one.score
                for other, rival in every
            )
        ]
        for key, some in found.items()
    }


def _paired(found: dict[str, list[Mention]], task: str) -> list[Side]:
    """Return calls where the parameters with several values take turns in the same order."""
    several = {key: some for key, some in found.items() if len(some) > 1}
    if len(several) < 2:
        return []
    count = min(map(len, several.values()))
    kept = [
        (one, key)
        for key, some in several.items()
        for one in sorted(some, key=lambda one: -one.score)[:count]
    ]
    kept.sort(key=lambda one: one[0].begin)
    width = len(several)
    calls = [kept[at : at + width] for at in range(0, len(kept), width)]
    order = [key for _, key in calls[0]]
    apart = all(one.end <= other.begin for (one, _), (other, _) in itertools.pairwise(kept))
    if not apart or any([key for _, key in call] != order for call in calls):
        return []
    if len(set(order)) < width or not all(_close([one for one, _ in call]) for call in calls):
        return []
    joined = (
        _is_joint(task[one[-1][0].end : other[0][0].begin])
        for one, other in itertools.pairwise(calls)
    )
    return [{key: one for one, key in call} for call in calls] if all(joined) else []


def _close(values: Sequence[Mention]) -> bool:
    return all(b.begin - a.end <= _INSIDE for a, b in itertools.pairwise(values))


def _is_joint(between: str) -> bool:
    return len(between) <= _BETWEEN and _JOINT.match(between) is not None

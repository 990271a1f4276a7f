"""What company a candidate keeps: how well others of its tool and its category fit the same text.

The needs of one task mostly lie together, in one tool or in tools of one category. So beside what
speaks for a candidate alone stand what its tool shows at best, and what the others of its tool and
of its category show by the plain sum of words and meaning. Pure; O(n log n) in the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

SIGNALS = (
    "tool's best cosine",
    "tool's mean of three best cosines",
    "tool's share of the nearest twenty",
    "tool's best words",
    "tool's candidates",
    "clauses that its tool leads",
    "plain place",
    "behind the best plain sum",
    "share of the others of its tool",
    "share of the other tools of its category",
    "best other of its tool, behind the best",
    "best other of its category, behind the best",
    "place in its tool",
    "its category's among the first ten",
    "its tool's among the first ten",
)
_NEAREST, _NEAREST_CAP = 20, 8
_CANDIDATES_CAP = 10
_FIRST = 10
# How sharply the plain sums, which lie in [0, 1], are told apart in shares of all candidates.
_SHARPNESS = 6.0


class Alone(NamedTuple):
    """What is known of each of n candidates: arrays (n,), and one row per clause in ``leads``.

    ``nearest`` is the best cosine, NaN where it was not measured; ``vector_rank`` the rank by
    meaning with the whole text, from 1, 0 beyond the list; ``words`` the share of the whole text's
    best; ``plain`` the plain sum.
    """

    nearest: Floats
    vector_rank: Places
    words: Floats
    leads: npt.NDArray[np.bool_]
    plain: Floats


def company(
    alone: Alone, tool_numbers: npt.ArrayLike, category_numbers: npt.ArrayLike, *, measured: bool
) -> Floats:
    """Return the signals (n, len(SIGNALS)) of candidates of those tools and categories.

    NaN where nothing is known: without vectors, or with no other of its kind.
    """
    tool, tools = _numbered(tool_numbers)
    category, categories = _numbered(category_numbers)
    best, mean = _best_cosines(alone.nearest, tool, tools)
    near = (alone.vector_rank > 0) & (alone.vector_rank <= _NEAREST)
    crowd = np.minimum(_count(near, tool, tools), _NEAREST_CAP) / _NEAREST_CAP
    words = np.zeros(tools, np.float32)
    np.maximum.at(words, tool, alone.words)
    leads = np.zeros((len(alone.leads), tools), np.bool_)
    for row, leading in zip(leads, alone.leads, strict=True):
        row[tool[leading]] = True
    top = alone.plain.max()
    place = np.empty(len(tool), np.int64)
    place[np.argsort(-alone.plain, kind="stable")] = np.arange(len(tool))
    mass = np.exp(_SHARPNESS * (alone.plain - top))
    mass /= mass.sum()
    of_tool = np.bincount(tool, weights=mass)[tool]
    of_category = np.bincount(category, weights=mass)[category]
    first = place < _FIRST
    columns = (
        best[tool],
        mean[tool],
        crowd if measured else np.full(len(tool), np.nan),
        words[tool],
        np.minimum(np.bincount(tool)[tool], _CANDIDATES_CAP),
        leads.mean(axis=0)[tool],
        place,
        alone.plain - top,
        of_tool - mass,
        of_category - of_tool,
        _best_other(alone.plain, tool, tools) - top,
        _best_other(alone.plain, category, categories) - top,
        _place_within(alone.plain, tool, tools),
        _count(first, category, categories),
        _count(first, tool, tools),
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def _numbered(numbers: npt.ArrayLike) -> tuple[Places, int]:
    """Return the groups' numbers without gaps, and how many groups there are."""
    found, places = np.unique(numbers, return_inverse=True)
    return places.astype(np.int64), len(found)


def _count(marked: npt.NDArray[np.bool_], group: Places, groups: int) -> Places:
    """Return for each candidate how many of its group are marked."""
    counts: Places = np.bincount(group[marked], minlength=groups)[group]
    return counts


def _by_group(values: Floats, group: Places, groups: int) -> tuple[Places, Places]:
    """Return the candidates by group, best first, and where each group begins."""
    order = np.lexsort((-values, group))
    return order, np.searchsorted(group[order], np.arange(groups))


def _place_within(values: Floats, group: Places, groups: int) -> Places:
    """Return each candidate's place in its group, from 0."""
    order, starts = _by_group(values, group, groups)
    places = np.empty(len(group), np.int64)
    places[order] = np.arange(len(group)) - starts[group[order]]
    return places


def _best_other(values: Floats, group: Places, groups: int) -> Floats:
    """Return the best value among the others of each candidate's group; NaN where it is alone."""
    order, starts = _by_group(values, group, groups)
    best = order[starts]
    second = np.full(groups, np.nan, np.float32)
    several = np.flatnonzero(np.bincount(group, minlength=groups) > 1)
    second[several] = values[order[starts[several] + 1]]
    others: Floats = np.where(
        best[group] == np.arange(len(group)), second[group], values[best][group]
    )
    return others


def _best_cosines(nearest: Floats, tool: Places, tools: int) -> tuple[Floats, Floats]:
    """Return each tool's best cosine and the mean of its three best; NaN where it has none."""
    best = np.full(tools, np.nan, np.float32)
    total, count = np.zeros(tools, np.float32), np.zeros(tools, np.float32)
    order = np.lexsort((-nearest, tool))
    order = order[~np.isnan(nearest[order])]
    sorted_tools = tool[order]
    first = np.searchsorted(sorted_tools, np.arange(tools))
    for k in range(3):
        at = first + k
        fine = at < len(order)
        fine[fine] &= sorted_tools[at[fine]] == np.flatnonzero(fine)
        values = nearest[order[at[fine]]]
        if k == 0:
            best[fine] = values
        total[fine] += values
        count[fine] += 1
    with np.errstate(invalid="ignore"):
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)
    return best, mean

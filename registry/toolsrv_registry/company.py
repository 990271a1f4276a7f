"""What company a candidate keeps: how well others of its tool and its category fit the same text.

The needs of one task mostly lie together, in one tool or in tools of one category. So beside what
speaks for a candidate alone stand what its tool shows at best, and what the others of its tool and
of its category show by the plain sum of words and meaning. Pure; O(n log n) in the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_registry.fusion import zeroed

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
_BEST = 3
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
) -> tuple[npt.ArrayLike, ...]:
    """Return per name of ``SIGNALS`` the column (n,) of candidates of those tools and categories.

    NaN where nothing is known: without vectors, or with no other of its kind. A column that is the
    same for all is one number.
    """
    tool, category = _grouped(tool_numbers, alone.plain), _grouped(category_numbers, alone.plain)
    best, mean = _best_cosines(alone.nearest, tool)
    near = (alone.vector_rank > 0) & (alone.vector_rank <= _NEAREST)
    crowd = np.minimum(tool.marked(near), _NEAREST_CAP) / _NEAREST_CAP
    leads = np.zeros((len(alone.leads), tool.groups), np.bool_)
    for row, leading in zip(leads, alone.leads, strict=True):
        row[tool.of[leading]] = True
    top = alone.plain.max()
    place = np.empty(len(tool.of), np.int64)
    place[np.argsort(-alone.plain, kind="stable")] = np.arange(len(tool.of))
    mass = np.exp(_SHARPNESS * (alone.plain - top))
    mass /= mass.sum()
    of_tool = np.bincount(tool.of, weights=mass)[tool.of]
    of_category = np.bincount(category.of, weights=mass)[category.of]
    first = place < _FIRST
    return (
        best[tool.of],
        mean[tool.of],
        crowd if measured else np.nan,
        np.maximum.reduceat(alone.words[tool.order], tool.starts)[tool.of],
        np.minimum(tool.sizes[tool.of], _CANDIDATES_CAP),
        leads.mean(axis=0)[tool.of],
        place,
        alone.plain - top,
        of_tool - mass,
        of_category - of_tool,
        _best_other(alone.plain, tool) - top,
        _best_other(alone.plain, category) - top,
        _place_within(tool),
        category.marked(first),
        tool.marked(first),
    )


class _Groups(NamedTuple):
    """Candidates in groups: the group of each, and all by group, best first.

    ``order[starts[g]:][:sizes[g]]`` are the candidates of group g.
    """

    of: Places
    order: Places
    starts: Places
    sizes: Places

    @property
    def groups(self) -> int:
        return len(self.starts)

    def marked(self, marked: npt.NDArray[np.bool_]) -> Places:
        """Return for each candidate how many of its group are marked."""
        counts: Places = np.bincount(self.of[marked], minlength=self.groups)[self.of]
        return counts


def _grouped(numbers: npt.ArrayLike, values: Floats) -> _Groups:
    found, of, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    starts = np.zeros(len(found), np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return _Groups(of.astype(np.int64), np.lexsort((-values, of)), starts, sizes)


def _place_within(group: _Groups) -> Places:
    """Return each candidate's place in its group, from 0."""
    places = np.empty(len(group.of), np.int64)
    places[group.order] = np.arange(len(group.of)) - np.repeat(group.starts, group.sizes)
    return places


def _best_other(values: Floats, group: _Groups) -> Floats:
    """Return the best value among the others of each candidate's group; NaN where it is alone."""
    best = group.order[group.starts]
    second = np.full(group.groups, np.nan, np.float32)
    several = np.flatnonzero(group.sizes > 1)
    second[several] = values[group.order[group.starts[several] + 1]]
    others = values[best][group.of]
    others[best] = second
    return others


def _best_cosines(nearest: Floats, group: _Groups) -> tuple[Floats, Floats]:
    """Return each group's best cosine and the mean of its three best; NaN where it has none."""
    # What was not measured comes last in its group.
    values = nearest[np.lexsort((-nearest, group.of))]
    at = group.starts[:, None] + np.arange(_BEST)
    inside = at < (group.starts + group.sizes)[:, None]
    three = np.where(inside, values[np.minimum(at, len(values) - 1)], np.nan)
    count = (~np.isnan(three)).sum(axis=1)
    total = zeroed(three).sum(axis=1, dtype=np.float32)
    mean = np.where(count > 0, total / np.maximum(count, 1).astype(np.float32), np.nan)
    return three[:, 0], mean.astype(np.float32)

"""Ranking signals of the candidates of a search, as numbers that a ranker weighs.

A candidate's own signals come from words, cosines and ranks. Group signals tell how well other
APIs of its tool and category fit. ``plain_scores`` fuses reciprocal ranks and cosine where no
ranker is there. All are arrays (candidates,) or (parts, candidates).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_registry.index.lexicon import Fit, Lexicon

Floats = npt.NDArray[np.float32]


_WORDS, _MEANING, _COSINE = 0.35, 0.24, 0.41


class Candidate(NamedTuple):
    """An API with its place in the rankings of the part that it fits best."""

    api_id: str
    score: float
    lexical_rank: int | None
    dense_rank: int | None
    similarity: float
    part: str


def nan_to_zero(values: Floats) -> Floats:
    """Return numbers with 0 for NaN; a tenth of the time that numpy's own function takes."""
    return np.where(np.isnan(values), np.float32(0), values)


def plain_scores(words: Floats, meaning: Floats, cosine: Floats) -> Floats:
    """Return a score in [0, 1] for each candidate, from arrays (n,).

    ``words`` and ``meaning`` are its best reciprocal ranks within a clause, ``cosine`` its best
    cosine with one; NaN counts as 0.
    """
    close = np.clip(nan_to_zero(cosine), 0.0, 1.0)
    score: Floats = _WORDS * words + _MEANING * meaning + _COSINE * close
    return score.astype(np.float32)


Places = npt.NDArray[np.int64]

GROUP_SIGNALS = (
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
_FIRST_PLACES = 10
_BEST = 3
# How sharply the plain sums, which lie in [0, 1], are told apart in shares of all candidates.
_SHARPNESS = 6.0


class OwnSignals(NamedTuple):
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


def group_signals(
    alone: OwnSignals,
    tool_numbers: npt.ArrayLike,
    category_numbers: npt.ArrayLike,
    *,
    measured: bool,
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
    first = place < _FIRST_PLACES
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
    total = nan_to_zero(three).sum(axis=1, dtype=np.float32)
    mean = np.where(count > 0, total / np.maximum(count, 1).astype(np.float32), np.nan)
    return three[:, 0], mean.astype(np.float32)


_ALONE = (
    "cosine with the whole text",
    "best cosine with a clause",
    "reciprocal rank by meaning, whole text",
    "best reciprocal rank by meaning, clauses",
    "words, whole text",
    "best words of a clause",
    "reciprocal rank by words, whole text",
    "best reciprocal rank by words, clauses",
    "tool's name in the text",
    "tool's name in the text, by its weight",
    "API's name in the text",
    "API's name in a clause",
    "best clause's words covered",
    "described",
    "cosine behind the best",
    "clauses",
    "cosine times words",
    "words in the name",
    "reciprocal rank by both, whole text",
    "best reciprocal rank by both, clauses",
    "by both, behind a clause's best",
    "clauses that the API leads",
    "both, plain sum",
)
SIGNALS = (*_ALONE, *GROUP_SIGNALS)
PLAIN = SIGNALS.index("both, plain sum")
_K = 4.0
_TOOL_WEIGHT = 15.0
# Scores are first looked at in blocks of so many.
_BLOCK = 128
# To lead a clause is to be among its first few.
_LEADING = 5


class VectorHits(NamedTuple):
    """The nearest documents of one part: places of APIs, nearest first, and their cosines."""

    places: Places
    cosines: Floats


class CandidateSignals(NamedTuple):
    """Candidates with their signals and, for the reader, the part that each fits best.

    ``word_ranks`` and ``vector_ranks`` count from 1 within that part; 0 when not among the best.
    """

    places: Places
    signals: Floats
    parts: Places
    word_ranks: Places
    vector_ranks: Places
    cosines: Floats


class WordHits(NamedTuple):
    """What the words of the parts find in a place.

    ``words`` (parts, APIs) is the fit's, 0 outside the place; ``best`` holds each part's best
    places, best first.
    """

    fit: Fit
    words: Floats
    best: list[Places]


def word_candidates(fit: Fit, depth: int, within: npt.NDArray[np.bool_] | None = None) -> WordHits:
    """Return the best ``depth`` APIs of each part by words, within a place."""
    words = fit.words if within is None else np.where(within, fit.words, 0.0)
    return WordHits(fit, words, [best(row, depth) for row in words])


def best(scores: Floats, depth: int, above: float = 0.0) -> Places:
    """Return the places of the best scores above a bound, best first; equal ones in their order.

    O(n) with one look at each: the best of ``depth`` blocks bound the best ``depth`` from below.
    """
    blocks = len(scores) // _BLOCK
    least = above
    if blocks >= depth:
        tops = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
        least = max(above, np.partition(tops, -depth)[-depth])
    places = np.flatnonzero(scores >= least if least > above else scores > above)
    return places[np.argsort(-scores[places], kind="stable")][:depth]


def candidate_signals(
    lexicon: Lexicon,
    found: WordHits,
    near: Sequence[VectorHits],
    within: npt.NDArray[np.bool_] | None = None,
) -> CandidateSignals:
    """Return the candidates of a search: the best of each part by words and by meaning.

    ``near`` holds one entry per part, or none at all when there are no vectors.
    """
    near = [VectorHits(*_inside(one, within)) for one in near] if within is not None else list(near)
    listed = np.zeros(len(lexicon), np.bool_)
    for some in (*found.best, *(one.places for one in near)):
        listed[some] = True
    places = np.flatnonzero(listed)
    if not len(places):
        empty = np.zeros(0, np.int64)
        return CandidateSignals(
            empty,
            np.zeros((0, len(SIGNALS)), np.float32),
            empty,
            empty,
            empty,
            np.zeros(0, np.float32),
        )
    word_ranks = np.stack([_ranks(one, places) for one in found.best])
    measured = bool(near)
    vector_ranks = (
        np.stack([_ranks(one.places, places) for one in near])
        if measured
        else np.zeros_like(word_ranks)
    )
    cosines = (
        np.stack([_values(one, places) for one in near])
        if measured
        else np.full(word_ranks.shape, np.nan, np.float32)
    )
    known = _Known(places, found.words[:, places], word_ranks, vector_ranks, cosines)
    signals = _signals(lexicon, found, known, measured=measured)
    part = _best_part(known)
    at = np.arange(len(places))
    return CandidateSignals(
        places, signals, part, word_ranks[part, at], vector_ranks[part, at], cosines[part, at]
    )


class _Known(NamedTuple):
    """The candidates' places (n,) and what each part says of them (parts, n)."""

    places: Places
    words: Floats
    word_ranks: Places
    vector_ranks: Places
    cosines: Floats


def _signals(lexicon: Lexicon, found: WordHits, known: _Known, *, measured: bool) -> Floats:
    places, words, cosines = known.places, known.words, known.cosines
    clauses = slice(1, None) if len(words) > 1 else slice(0, 1)
    top = np.maximum(found.words.max(axis=1, keepdims=True), 1e-6)
    share = words / top
    whole = cosines[0]
    best_clause = _most(cosines[clauses])
    by_words, by_meaning = _reciprocal(known.word_ranks), _reciprocal(known.vector_ranks)
    both = share + _share(cosines)
    order = _order(both)
    by_both, leads = _reciprocal(order), order[clauses] <= _LEADING
    words_first, meaning_first = by_words[clauses].max(axis=0), by_meaning[clauses].max(axis=0)
    together = plain_scores(words_first, meaning_first, best_clause)
    alone = OwnSignals(
        np.fmax(whole, best_clause), known.vector_ranks[0], share[0], leads, together
    )
    named = lexicon.tool_named(found.fit, places)
    names = lexicon.named(found.fit, places)
    full = np.maximum(found.fit.full[clauses, None], 1e-6)
    columns = (
        whole,
        best_clause,
        by_meaning[0] if measured else np.nan,
        meaning_first if measured else np.nan,
        share[0],
        share[clauses].max(axis=0),
        by_words[0],
        words_first,
        named,
        named * np.minimum(lexicon.tool_weights[places], _TOOL_WEIGHT) / _TOOL_WEIGHT,
        names[0],
        names[clauses].max(axis=0),
        (words[clauses] / full).max(axis=0),
        lexicon.described[places],
        whole - np.fmax.reduce(whole),
        len(words) - 1,
        whole * share[0],
        lexicon.name_lengths[places],
        by_both[0],
        by_both[clauses].max(axis=0),
        (both[clauses] / np.maximum(both[clauses].max(axis=1, keepdims=True), 1e-6)).max(axis=0),
        leads.mean(axis=0),
        together,
    )
    others = group_signals(
        alone, lexicon.tool_numbers[places], lexicon.category_numbers[places], measured=measured
    )
    rows = np.empty((len(SIGNALS), len(places)), np.float32)
    for row, values in zip(rows, (*columns, *others), strict=True):
        row[:] = values
    return np.ascontiguousarray(rows.T)


def _inside(near: VectorHits, within: npt.NDArray[np.bool_]) -> VectorHits:
    kept = within[near.places]
    return VectorHits(near.places[kept], near.cosines[kept])


def _ranks(found: Places, places: Places) -> Places:
    """Return the 1-based rank of each place in a list, 0 where it is not in it."""
    ranks = np.zeros(len(places), np.int64)
    ranks[np.searchsorted(places, found)] = np.arange(1, len(found) + 1)
    return ranks


def _values(near: VectorHits, places: Places) -> Floats:
    values = np.full(len(places), np.nan, np.float32)
    values[np.searchsorted(places, near.places)] = near.cosines
    return values


def _reciprocal(ranks: Places) -> Floats:
    return np.where(ranks > 0, _K / (_K + ranks - 1), 0.0).astype(np.float32)


def _share(cosines: Floats) -> Floats:
    """Return each part's cosines as shares of its best; 0 where there is none."""
    known = nan_to_zero(cosines)
    shares: Floats = known / np.maximum(known.max(axis=1, keepdims=True), 1e-6)
    return shares


def _order(scores: Floats) -> Places:
    """Return the 1-based rank of each column in its row, best first."""
    ranks = np.empty(scores.shape, np.int64)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None], axis=1)
    return ranks


def _most(rows: Floats) -> Floats:
    """Return the greatest of each column; NaN where a column has no number."""
    most: Floats = np.fmax.reduce(rows, axis=0)
    return most


def _best_part(known: _Known) -> Places:
    """Return for each candidate the part that speaks most for it, clauses before the whole."""
    cosine = nan_to_zero(known.cosines)
    strength = _reciprocal(known.word_ranks) + _reciprocal(known.vector_ranks) + cosine
    strength += 1e-3 * known.words / np.maximum(known.words.max(), 1e-6)
    if len(strength) > 1:
        strength[0] -= 0.25
    best: Places = strength.argmax(axis=0)
    return best

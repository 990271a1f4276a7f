"""What speaks for each candidate of a search, as numbers that a ranker weighs.

One row per candidate, one column per name of ``SIGNALS``; NaN where the vectors were not used or
did not find the candidate. Everything is relative to the text and the catalog at hand, nothing
names an API, so that a ranker trained on one catalog serves another. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_registry.company import SIGNALS as COMPANY
from toolsrv_registry.company import Alone, company
from toolsrv_registry.fusion import plain, zeroed
from toolsrv_registry.lexicon import Fit, Lexicon

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

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
SIGNALS = (*_ALONE, *COMPANY)
PLAIN = SIGNALS.index("both, plain sum")
_K = 4.0
_TOOL_WEIGHT = 15.0
# Scores are first looked at in blocks of so many.
_BLOCK = 128
# To lead a clause is to be among its first few.
_LEADING = 5


class Near(NamedTuple):
    """The nearest documents of one part: places of APIs, nearest first, and their cosines."""

    places: Places
    cosines: Floats


class Judged(NamedTuple):
    """Candidates with their signals and, for the reader, the part that each fits best.

    ``word_ranks`` and ``vector_ranks`` count from 1 within that part; 0 when not among the best.
    """

    places: Places
    signals: Floats
    parts: Places
    word_ranks: Places
    vector_ranks: Places
    cosines: Floats


class Worded(NamedTuple):
    """What the words of the parts find in a place.

    ``words`` (parts, APIs) is the fit's, 0 outside the place; ``best`` holds each part's best
    places, best first.
    """

    fit: Fit
    words: Floats
    best: list[Places]


def worded(fit: Fit, depth: int, within: npt.NDArray[np.bool_] | None = None) -> Worded:
    """Return the best ``depth`` APIs of each part by words, within a place."""
    words = fit.words if within is None else np.where(within, fit.words, 0.0)
    return Worded(fit, words, [best(row, depth) for row in words])


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


def judge(
    lexicon: Lexicon,
    found: Worded,
    near: Sequence[Near],
    within: npt.NDArray[np.bool_] | None = None,
) -> Judged:
    """Return the candidates of a search: the best of each part by words and by meaning.

    ``near`` holds one entry per part, or none at all when there are no vectors.
    """
    near = [Near(*_inside(one, within)) for one in near] if within is not None else list(near)
    listed = np.zeros(len(lexicon), np.bool_)
    for some in (*found.best, *(one.places for one in near)):
        listed[some] = True
    places = np.flatnonzero(listed)
    if not len(places):
        empty = np.zeros(0, np.int64)
        return Judged(
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
    return Judged(
        places, signals, part, word_ranks[part, at], vector_ranks[part, at], cosines[part, at]
    )


class _Known(NamedTuple):
    """The candidates' places (n,) and what each part says of them (parts, n)."""

    places: Places
    words: Floats
    word_ranks: Places
    vector_ranks: Places
    cosines: Floats


def _signals(lexicon: Lexicon, found: Worded, known: _Known, *, measured: bool) -> Floats:
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
    together = plain(words_first, meaning_first, best_clause)
    alone = Alone(np.fmax(whole, best_clause), known.vector_ranks[0], share[0], leads, together)
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
    others = company(
        alone, lexicon.tool_numbers[places], lexicon.category_numbers[places], measured=measured
    )
    rows = np.empty((len(SIGNALS), len(places)), np.float32)
    for row, values in zip(rows, (*columns, *others), strict=True):
        row[:] = values
    return np.ascontiguousarray(rows.T)


def _inside(near: Near, within: npt.NDArray[np.bool_]) -> Near:
    kept = within[near.places]
    return Near(near.places[kept], near.cosines[kept])


def _ranks(found: Places, places: Places) -> Places:
    """Return the 1-based rank of each place in a list, 0 where it is not in it."""
    ranks = np.zeros(len(places), np.int64)
    ranks[np.searchsorted(places, found)] = np.arange(1, len(found) + 1)
    return ranks


def _values(near: Near, places: Places) -> Floats:
    values = np.full(len(places), np.nan, np.float32)
    values[np.searchsorted(places, near.places)] = near.cosines
    return values


def _reciprocal(ranks: Places) -> Floats:
    return np.where(ranks > 0, _K / (_K + ranks - 1), 0.0).astype(np.float32)


def _share(cosines: Floats) -> Floats:
    """Return each part's cosines as shares of its best; 0 where there is none."""
    known = zeroed(cosines)
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
    cosine = zeroed(known.cosines)
    strength = _reciprocal(known.word_ranks) + _reciprocal(known.vector_ranks) + cosine
    strength += 1e-3 * known.words / np.maximum(known.words.max(), 1e-6)
    if len(strength) > 1:
        strength[0] -= 0.25
    best: Places = strength.argmax(axis=0)
    return best

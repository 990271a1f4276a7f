"""Candidates, and the order they take where no ranker can be used.

``plain`` adds the reciprocal ranks by words and by meaning within the best clause and the cosine
itself. A small constant lets the first few of each part count most, which brings every need of a
task to the front. The weights were chosen on ToolBench's development queries. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolsrv_registry.signals import SIGNALS, Floats

_WEIGHTS = {
    "best reciprocal rank by words, clauses": 0.35,
    "best reciprocal rank by meaning, clauses": 0.24,
    "best cosine with a clause": 0.41,
}


class Candidate(NamedTuple):
    """An API with its place in the rankings of the part that it fits best."""

    api_id: str
    score: float
    lexical_rank: int | None
    dense_rank: int | None
    similarity: float
    part: str


def plain(signals: Floats) -> Floats:
    """Return a score in [0, 1] for each row of signals (``signals.SIGNALS``)."""
    total = np.zeros(len(signals), np.float32)
    for name, weight in _WEIGHTS.items():
        column = np.nan_to_num(signals[:, SIGNALS.index(name)], nan=0.0)
        total += weight * np.clip(column, 0.0, 1.0)
    return total

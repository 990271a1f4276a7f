"""NDCG and recall of a ranking, and how sure their means are.

NDCG as ToolBench's retriever is judged (format section 3.4): binary gain, discount
1 / log2(rank + 1), the ideal cut at k, equal scores averaged over the tie. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import groupby

import numpy as np
from pydantic import BaseModel, ConfigDict

Ranking = Sequence[tuple[str, float]]
"""(API id, score), best first."""

_SAMPLES = 1_000


class Estimate(BaseModel):
    """A mean with its 95 % bootstrap interval, in per cent."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float
    high: float


def ndcg(ranking: Ranking, relevant: Collection[str], k: int) -> float:
    """Return NDCG@k in [0, 1] of a ranking; what it does not list counts as last.

    O(n) in the ranking's length. 0.0 where nothing is relevant.
    """
    wanted = set(relevant)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    gain, rank = 0.0, 1
    for _, tied in groupby(ranking, key=lambda one: one[1]):
        ids = [api_id for api_id, _ in tied]
        if rank > k:
            break
        share = sum(api_id in wanted for api_id in ids) / len(ids)
        last = min(rank + len(ids), k + 1)
        gain += share * sum(1 / math.log2(at + 1) for at in range(rank, last))
        rank += len(ids)
    return gain / ideal if ideal else 0.0


def recall(ranking: Ranking, relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant APIs among the first k; 0.0 where nothing is relevant."""
    wanted = set(relevant)
    return len(wanted & {api_id for api_id, _ in ranking[:k]}) / len(wanted) if wanted else 0.0


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean of per-query values with its bootstrap interval (1,000 resamples)."""
    array = np.asarray(values, np.float64)
    if not len(array):
        return Estimate(mean=math.nan, low=math.nan, high=math.nan)
    rng = np.random.default_rng(seed)
    means = rng.choice(array, (_SAMPLES, len(array))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return Estimate(
        mean=round(100 * float(array.mean()), 2),
        low=round(100 * float(low), 2),
        high=round(100 * float(high), 2),
    )

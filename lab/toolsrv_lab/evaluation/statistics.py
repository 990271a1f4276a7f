"""Shares and means with 95 % intervals, and what two runs over the same tasks differ by.

Shares: Wilson's interval; their paired difference: Newcombe's (1998, method 10). Means and their
differences: the percentile bootstrap. Knows nothing of what is counted. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.bench.figures import percentile, significant, wilson

_SAMPLES = 2_000
_DIGITS = 4


class Share(BaseModel):
    """``count`` of ``of``, and the share's interval in [0, 1]; of none nothing is known."""

    model_config = ConfigDict(frozen=True)

    count: int
    of: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """The share in [0, 1]; NaN of none."""
        return self.count / self.of if self.of else math.nan


class Mean(BaseModel):
    """A mean with its interval, and the nearest-rank 95th percentile.

    All None where nothing was, the interval where there was one value: it has no spread.
    """

    model_config = ConfigDict(frozen=True)

    mean: float | None
    low: float | None
    high: float | None
    p95: float | None


class Difference(BaseModel):
    """First minus second over ``pairs`` of values, with its interval; None as in ``Mean``."""

    model_config = ConfigDict(frozen=True)

    pairs: int
    value: float | None
    low: float | None
    high: float | None


def share(values: Iterable[bool]) -> Share:
    """Return how many are true."""
    every = list(values)
    low, high = wilson(sum(every), len(every))
    return Share(
        count=sum(every), of=len(every), low=round(low, _DIGITS), high=round(high, _DIGITS)
    )


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of any quantity; the bootstrap draws the same samples each time."""
    if not values:
        return Mean(mean=None, low=None, high=None, p95=None)
    value, low, high = _bootstrap(values)
    top = significant(percentile(sorted(values), 95))
    return Mean(mean=significant(value), low=low, high=high, p95=top)


def mean_difference(pairs: Sequence[tuple[float, float]]) -> Difference:
    """Return how far the first values of pairs lie above the second, on average."""
    if not pairs:
        return Difference(pairs=0, value=None, low=None, high=None)
    value, low, high = _bootstrap([first - second for first, second in pairs])
    return Difference(pairs=len(pairs), value=significant(value), low=low, high=high)


def share_difference(pairs: Sequence[tuple[bool, bool]]) -> Difference:
    """Return the share of the first of each pair minus that of the second, in [-1, 1]."""
    total = len(pairs)
    if not total:
        return Difference(pairs=0, value=None, low=None, high=None)
    first, second = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    value = (first - second) / total
    (low1, high1), (low2, high2) = wilson(first, total), wilson(second, total)
    p1, p2, phi = first / total, second / total, _phi(pairs)

    def reach(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))

    return Difference(
        pairs=total,
        value=round(value, _DIGITS),
        low=round(value - reach(p1 - low1, high2 - p2), _DIGITS),
        high=round(value + reach(high1 - p1, p2 - low2), _DIGITS),
    )


def _phi(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Return the correlation within pairs, with Newcombe's correction towards 0."""
    total = len(pairs)
    both, neither = sum(a and b for a, b in pairs), sum(not a and not b for a, b in pairs)
    only1, only2 = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    sides = (both + only1) * (only2 + neither) * (both + only2) * (only1 + neither)
    if not sides:
        return 0.0
    product: float = both * neither - only1 * only2
    if product > 0:
        product = max(0.0, product - total / 2)
    return product / math.sqrt(sides)


def _bootstrap(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    array = np.asarray(values, np.float64)
    if len(array) == 1:
        return float(array[0]), None, None
    rng = np.random.default_rng(0)
    means = rng.choice(array, (_SAMPLES, len(array))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(array.mean()), significant(float(low)), significant(float(high))

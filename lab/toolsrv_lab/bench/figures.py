"""Figures: a quantity that was measured several times, and the spread of what came out.

A machine that does other things too makes single timings worthless, so a figure always carries
minimum, median and maximum. Knows nothing about what is measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

# Fewer values than this have no 95th percentile of their own.
_FOR_P95 = 20
# The normal quantile of a two-sided 95 % interval.
_Z = 1.959964


class Figure(BaseModel):
    """A quantity: ``count`` values in ``unit``; the rest is None where nothing could be measured.

    ``p95`` is the nearest-rank 95th percentile, None below 20 values.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    unit: str
    count: int
    min: float | None
    median: float | None
    p95: float | None
    max: float | None


def figure(label: str, unit: str, values: Iterable[float | None]) -> Figure:
    """Return the spread of the values, four significant digits each; None values are left out."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return Figure(label=label, unit=unit, count=0, min=None, median=None, p95=None, max=None)
    return Figure(
        label=label,
        unit=unit,
        count=len(known),
        min=significant(known[0]),
        median=significant(statistics.median(known)),
        p95=significant(percentile(known, 95)) if len(known) >= _FOR_P95 else None,
        max=significant(known[-1]),
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of values in ascending order (at least one)."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def significant(value: float) -> float:
    """Return a value with four significant digits; more would be noise."""
    return float(f"{value:.4g}") if abs(value) < 10_000 else float(round(value))


def share(part: float, whole: float) -> float | None:
    """Return ``part / whole`` in per cent, None for an empty whole."""
    return 100 * part / whole if whole else None


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson 1927), both ends in [0, 1].

    No trials tell nothing: (0.0, 1.0).
    """
    if not trials:
        return 0.0, 1.0
    rate, square = successes / trials, _Z**2
    centre = rate + square / (2 * trials)
    reach = _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)

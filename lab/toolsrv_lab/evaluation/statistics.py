"""Statistics of an evaluation: seeded samples, shares and means with 95 % intervals, bar charts.

A larger sample of a seed contains the smaller one. Differences are of paired runs over the same
tasks.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.bench.report import percentile, significant, wilson
from toolsrv_lab.extras import load
from toolsrv_lab.journal import check_picture
from toolsrv_runtime.files import open_atomic

T = TypeVar("T")


def draw(items: Sequence[T], limit: int | None, *, seed: int, key: Callable[[T], str]) -> list[T]:
    """Return at most ``limit`` of the items, drawn by a hash of ``key``, in their own order."""
    if limit is None or limit >= len(items):
        return list(items)
    ranked = sorted(range(len(items)), key=lambda at: _rank(seed, key(items[at])))
    return [items[at] for at in sorted(ranked[:limit])]


def draw_by_stratum(
    items: Sequence[T],
    limit: int | None,
    *,
    seed: int,
    key: Callable[[T], str],
    stratum: Callable[[T], str],
) -> list[T]:
    """Return at most ``limit`` of the items, each stratum in proportion (largest remainders)."""
    if limit is None or limit >= len(items):
        return list(items)
    groups: dict[str, list[T]] = {}
    for one in items:
        groups.setdefault(stratum(one), []).append(one)
    exact = {name: limit * len(group) / len(items) for name, group in groups.items()}
    sizes = {name: int(size) for name, size in exact.items()}
    for name in sorted(exact, key=lambda name: (sizes[name] - exact[name], name)):
        if sum(sizes.values()) < limit:
            sizes[name] += 1
    chosen = {
        key(one)
        for name, group in groups.items()
        for one in draw(group, sizes[name], seed=seed, key=key)
    }
    return [one for one in items if key(one) in chosen]


def _rank(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}/{key}".encode()).hexdigest()


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


def mean_in_unit(values: Sequence[float]) -> Mean:
    """Return the mean of values in [0, 1]; of one value, or of equal ones, with Wilson's interval.

    A bootstrap of equal values takes them for certain, however few they are.
    """
    found = mean(values)
    if found.mean is None or found.low not in (None, found.high):
        return found
    low, high = wilson(sum(values), len(values))
    return found.model_copy(update={"low": round(low, _DIGITS), "high": round(high, _DIGITS)})


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


_COLORS = ("#1f6fb2", "#d9822b", "#4b9b5f", "#a0509a", "#8c6d3f", "#5b6770")
_GREY = "#5b6770"
_WIDTH = 0.8
_LETTER = 0.065
"""Width of a letter of the legend, inches."""


class PlottedRate(Protocol):
    """A rate in [0, 1] with its interval, ``of`` so many; of none there is no bar."""

    @property
    def rate(self) -> float:
        """The height of the bar."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""

    @property
    def high(self) -> float:
        """The upper end of the interval."""

    @property
    def of(self) -> int:
        """What it is a rate of."""


def draw_shares(
    shares: Mapping[str, Mapping[str, PlottedRate]],
    path: Path,
    *,
    title: str,
    marks: Mapping[str, float] | None = None,
) -> None:
    """Draw ``{series: {group: share}}``; ``marks`` are lines at a share of a group, as references.

    Raises:
        UsageError: no matplotlib, or no place for the picture.
    """
    check_picture(path)
    matplotlib, figures = load("matplotlib"), load("matplotlib.figure")
    groups = list(dict.fromkeys(name for one in shares.values() for name in one))
    settings = {"svg.fonttype": "none", "svg.hashsalt": "toolsrv", "font.size": 9}
    with matplotlib.rc_context(settings):
        bars = max(5.0, 1.0 + 0.35 * len(groups) * (len(shares) + 1))
        legend = _LETTER * max(map(len, shares), default=0)
        below = _LETTER / 2 * max(map(len, groups), default=0)  # they are turned by 30 degrees
        picture = figures.Figure(figsize=(bars + legend, 3.6 + below), layout="constrained")
        axes = picture.subplots()
        width = _WIDTH / max(1, len(shares))
        for at, (series, found) in enumerate(shares.items()):
            known = [(place, found[name]) for place, name in enumerate(groups) if name in found]
            known = [(place, one) for place, one in known if one.of]
            rates = [100 * one.rate for _, one in known]
            axes.bar(
                [place - _WIDTH / 2 + (at + 0.5) * width for place, _ in known],
                rates,
                width,
                yerr=[
                    [
                        max(0.0, rate - 100 * one.low)
                        for rate, (_, one) in zip(rates, known, strict=True)
                    ],
                    [
                        max(0.0, 100 * one.high - rate)
                        for rate, (_, one) in zip(rates, known, strict=True)
                    ],
                ],
                label=series,
                color=_COLORS[at % len(_COLORS)],
                ecolor=_GREY,
                capsize=2,
            )
        for name, value in (marks or {}).items():
            if name in groups:
                place = groups.index(name)
                axes.hlines(100 * value, place - 0.45, place + 0.45, colors=_GREY, linestyles=":")
        axes.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
        axes.set_ylim(0, 100)
        axes.set_ylabel("%")
        axes.set_title(title)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        buffer = io.BytesIO()
        kind = path.suffix.removeprefix(".")
        metadata = {"Date": None} if kind == "svg" else {}
        picture.savefig(buffer, format=kind, metadata=metadata, dpi=150)
    with open_atomic(path) as file:
        file.write(buffer.getvalue())

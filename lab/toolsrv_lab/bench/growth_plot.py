"""The figures of ``toolsrv bench growth`` as a picture: four panels over the number of APIs.

Drawn by matplotlib (extra ``lab``) as one SVG file without fonts or scripts from elsewhere; equal
figures give an equal file.
"""

from __future__ import annotations

import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv_lab.bench.figures import percentile
from toolsrv_lab.extras import load
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.files import open_atomic

if TYPE_CHECKING:
    from toolsrv_lab.bench.catalog import Level

_BLUE, _ORANGE, _GREY = "#1f6fb2", "#d9822b", "#9a9a9a"


@dataclass(frozen=True)
class Build:
    """Seconds of a build: with encoding (perhaps ``estimated``), and of the index alone if known."""

    whole: float
    index: float | None
    estimated: bool


def check_plot(path: Path) -> None:
    """Raise UsageError when ``plot`` could not write ``path``; nothing was measured yet."""
    load("matplotlib")
    if path.suffix != ".svg":
        raise UsageError(f"{str(path)!r} is not the name of an SVG file", hint="end it in .svg")
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )


def plot(levels: Sequence[Level], builds: Sequence[Build], path: Path) -> None:
    """Draw build, search, memory and disk into an SVG file.

    Raises:
        UsageError: matplotlib is not installed.
    """
    matplotlib = load("matplotlib")
    figures = load("matplotlib.figure")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "toolsrv", "font.size": 9}
    with matplotlib.rc_context(settings):
        picture = figures.Figure(figsize=(9, 6), layout="constrained")
        panels = picture.subplots(2, 2).flat
        apis = [level.apis for level in levels]
        searches = [sorted(1000 * seconds for seconds in level.searches) for level in levels]
        lines = {"with encoding": [build.whole for build in builds]}
        if any(build.index is not None for build in builds):
            lines["the index alone"] = [build.index or float("nan") for build in builds]
        _panel(next(panels), "build the index, s", apis, lines)
        _panel(
            next(panels),
            "search, ms",
            apis,
            {
                "p50": [statistics.median(one) for one in searches],
                "p95": [percentile(one, 95) for one in searches],
            },
        )
        memory = [level.serving or float("nan") for level in levels]
        _panel(next(panels), "memory of a server, MiB", apis, {"": memory})
        sizes = [sum(level.disk.values()) for level in levels]
        _panel(next(panels), "disk, MiB", apis, {"": sizes})
        if any(build.estimated for build in builds):
            picture.suptitle("hollow: encoding at the rate of the smallest catalog", fontsize=9)
        _mark(picture, apis, builds)
        buffer = io.BytesIO()
        picture.savefig(buffer, format="svg", metadata={"Date": None})
    write_picture(path, buffer.getvalue())


def _panel(axes: Any, title: str, apis: Sequence[int], lines: dict[str, list[float]]) -> None:
    axes.set_title(title)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(apis, [f"{count:,}" for count in apis])
    axes.minorticks_off()
    top = max(lines.values(), key=lambda values: values[0])
    for color, (label, values) in zip((_BLUE, _ORANGE), lines.items(), strict=False):
        axes.plot(apis, values, "o-", color=color, label=label or None)
        for count, value in zip(apis, values, strict=True):
            axes.annotate(
                f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
                (count, value),
                textcoords="offset points",
                xytext=(0, 7 if values is top else -14),
                ha="center",
            )
    # What twice the APIs cost when everything doubles.
    first = next(iter(lines.values()))[0]
    axes.plot(apis, [first * count / apis[0] for count in apis], ":", color=_GREY, label="linear")
    axes.margins(0.15, 0.2)
    axes.legend(frameon=False, fontsize=8)


def _mark(picture: Any, apis: Sequence[int], builds: Sequence[Build]) -> None:
    """Draw the points of the first panel hollow where not all was measured."""
    axes = picture.axes[0]
    for count, build in zip(apis, builds, strict=True):
        if build.estimated:
            axes.plot([count], [build.whole], "o", color=_BLUE, markerfacecolor="white")


def write_picture(path: Path, content: bytes) -> None:
    """Write a file that appears when it is complete."""
    with open_atomic(path) as file:
        file.write(content)

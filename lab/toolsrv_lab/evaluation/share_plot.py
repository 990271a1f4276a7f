"""Shares with their 95 % intervals as a bar chart: groups on the axis, a colour for each series.

Drawn by matplotlib (extra ``lab``) as SVG or PNG, without fonts or scripts from elsewhere; equal
figures give an equal SVG.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from toolsrv_lab.curve import check_picture
from toolsrv_lab.evaluation.statistics import Share
from toolsrv_lab.extras import load
from toolsrv_runtime.files import open_atomic

_COLORS = ("#1f6fb2", "#d9822b", "#4b9b5f", "#a0509a", "#8c6d3f", "#5b6770")
_GREY = "#5b6770"
_WIDTH = 0.8
_LETTER = 0.065
"""Width of a letter of the legend, inches."""


def draw_shares(
    shares: Mapping[str, Mapping[str, Share]],
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

"""The ways to write one tree as bars: seconds, and tokens evaluated. One SVG or PNG file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from toolsrv_lab.bench.growth_plot import write_picture
from toolsrv_lab.bench.replay.ways import WAYS, Measured
from toolsrv_lab.extras import load
from toolsrv_registry.errors import UsageError


def check(path: Path) -> None:
    """Raise UsageError when ``draw`` could not write ``path``; nothing was measured yet."""
    load("matplotlib")
    if path.suffix not in (".svg", ".png"):
        raise UsageError(
            f"{str(path)!r} is not the name of a picture", hint="end it in .svg or .png"
        )
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )


def draw(found: Sequence[Measured], path: Path) -> None:
    """Draw a row of two panels for each model."""
    matplotlib, module = load("matplotlib"), load("matplotlib.figure")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "toolsrv"}):
        picture = module.Figure(figsize=(10, 2.6 * len(found)), layout="constrained")
        panels = picture.subplots(len(found), 2, squeeze=False)
        for row, one in zip(panels, found, strict=True):
            names = [WAYS[way] for way in one.ways]
            for axes, key, label in zip(
                row, ("cpu", "tokens"), ("processor seconds", "tokens evaluated"), strict=True
            ):
                bars = axes.barh(names, [way[key] for way in one.ways.values()], color="#1f6fb2")
                axes.bar_label(bars, fmt="{:,.4g}", padding=3)
                axes.set_title(f"{one.model}: {label}", fontsize=9)
                axes.invert_yaxis()
                axes.margins(x=0.2)
        buffer = io.BytesIO()
        picture.savefig(buffer, format=path.suffix[1:], metadata=_metadata(path))
    write_picture(path, buffer.getvalue())


def _metadata(path: Path) -> dict[str, None] | None:
    return {"Date": None} if path.suffix == ".svg" else None

"""Journal of a training as JSON lines, and its loss curves as a picture.

Several runs of one kind are drawn side by side.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolsrv_lab.extras import load
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.files import check_target, open_atomic


class Journal:
    """A file of JSON objects, each with ``step``; what else is the training's own affair."""

    def __init__(self, path: Path, *, until: int) -> None:
        self.path = path
        self.entries = [one for one in read_journal(path) if one["step"] <= until]
        text = "".join(_json_line(one) for one in self.entries)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
        self._file = path.open("a", encoding="utf-8")

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry; it is in the file when this returns."""
        self.entries.append(dict(entry))
        self._file.write(_json_line(entry))
        self._file.flush()

    def sync(self) -> None:
        """Force what was written onto the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; idempotent."""
        self._file.close()

    def values(self, key: str) -> list[tuple[int, float]]:
        """Return (step, value) of the entries that have ``key``."""
        return [(one["step"], one[key]) for one in self.entries if key in one]


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file; the last one may have been cut off by a kill."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict) and isinstance(one.get("step"), int):
            found.append(one)
    return found


def _json_line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry) + "\n"


CURVE, LOG, PICTURE = "curve.jsonl", "log.jsonl", "curve.svg"

_SMOOTH = 0.9
_COLORS = ("#1f6fb2", "#d9822b", "#4b9b5f", "#a0509a", "#8c6d3f", "#5b6770")
_GREY = "#b9c4cc"

Points = list[tuple[float, float]]


class Curve(NamedTuple):
    """A run's name, whether it is a fine-tuning, and its lines as they stand in its file."""

    name: str
    tuned: bool
    entries: tuple[dict[str, Any], ...]

    def points(self, across: str, key: str) -> Points:
        """Return (x, y) of the entries that have both."""
        return [(one[across], one[key]) for one in self.entries if key in one and across in one]


def read_curve(run: Path) -> Curve:
    """Return the curve of the run in a folder, finished or not. Raises NotFoundError."""
    told = _run_summary(run / "training.json")
    name = run.absolute().name
    for file in (CURVE, LOG):
        entries = read_journal(run / file)
        if entries and file == LOG:
            return Curve(name, tuned=True, entries=tuple(entries))
        if entries:
            return Curve(_label(name, told), tuned=False, entries=_seen_tokens(entries, told))
    raise NotFoundError(
        f"{str(run)!r} has no learning curve yet: no {CURVE} and no {LOG} with a line",
        hint="name the --out folder of a toolsrv lab train model",
    )


def check_picture(path: Path) -> None:
    """Raise UsageError unless ``draw_curves`` could write ``path``."""
    load("matplotlib.figure")
    if path.suffix not in {".svg", ".png"}:
        raise UsageError(
            f"{str(path)!r} is not the name of a picture", hint="end it in .svg or .png"
        )
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Draw runs of one kind into an SVG or PNG file: whole or not at all.

    Raises:
        UsageError: Runs of both kinds, a name that is no picture's, or no matplotlib.
    """
    check_picture(path)
    if len({one.tuned for one in curves}) != 1:
        raise UsageError(
            "a fine-tuning and a training from scratch do not share a picture",
            hint="draw them one by one",
        )
    with _picture(path, (7, 4) if curves[0].tuned else (9, 4 if len(curves) == 1 else 7)) as made:
        if curves[0].tuned:
            _draw_steps(made.subplots(), curves)
        elif len(curves) == 1:
            _draw_one(made.subplots(1, 2), curves[0])
        else:
            _draw_sizes(made.subplots(2, 2).flat, curves)


def _draw_steps(axes: Any, curves: Sequence[Curve]) -> None:
    """Draw the loss of each step of fine-tunings, smoothed, and on their dev sets."""
    alone = len(curves) == 1
    for curve, color in zip(curves, _colors(curves), strict=True):
        losses, dev = curve.points("step", "loss"), curve.points("step", "dev_loss")
        label = "running mean" if alone else curve.name
        if alone:
            _draw_line(axes, losses, color=_GREY, linewidth=0.8, label="each step")
        _draw_line(axes, _smooth(losses), color=color, label=label)
        dev_color = _COLORS[1] if alone else color
        _draw_line(axes, dev, "o-", color=dev_color, label="dev" if alone else f"{label}, dev")
    axes.set_xlabel("step")
    axes.set_ylabel("loss per target token")
    axes.legend(frameon=False)


def _draw_one(panels: Any, curve: Curve) -> None:
    """Draw one training from scratch: losses, and shares of held-out rows that are right."""
    loss, shares = panels
    across = _x_axis([curve])
    _draw_line(loss, curve.points(across, "train_loss"), color=_GREY, label="training, weighted")
    _draw_line(loss, curve.points(across, "loss"), "o-", color=_COLORS[0], label="held out")
    _titled(loss, "loss per token", across)
    names = (("choice", "right function"), ("values", "exact value"), ("tokens", "token"))
    for color, (key, label) in zip(_COLORS, names, strict=False):
        points = [(x, 100 * y) for x, y in curve.points(across, key)]
        _draw_line(shares, points, "o-", color=color, label=label)
    shares.set_ylim(0, 100)
    _titled(shares, "right on held-out rows, %", across)


def _draw_sizes(panels: Any, curves: Sequence[Curve]) -> None:
    """Draw several trainings from scratch: the same four figures of each."""
    across = _x_axis(curves)
    rows = (
        ("loss on held-out rows", across, "loss", 1),
        ("the same over time", "seconds", "loss", 1),
        ("right function, %", across, "choice", 100),
        ("exact values, %", across, "values", 100),
    )
    for axes, (title, x, key, factor) in zip(panels, rows, strict=True):
        for curve, color in zip(curves, _colors(curves), strict=True):
            scale = 1 / 60 if x == "seconds" else 1
            points = [(scale * at, factor * value) for at, value in curve.points(x, key)]
            _draw_line(axes, points, "o-", color=color, label=curve.name)
        _titled(axes, title, "minutes" if x == "seconds" else x)


def _draw_line(axes: Any, points: Points, style: str = "-", **more: Any) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), style, markersize=3, **more)


def _titled(axes: Any, title: str, across: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("tokens seen" if across == "seen" else across)
    if axes.get_lines():
        axes.legend(frameon=False, fontsize=8)


def _x_axis(curves: Sequence[Curve]) -> str:
    """Return what the lines run over: tokens where every run says them, else steps."""
    return "seen" if all("seen" in one for curve in curves for one in curve.entries) else "step"


def _colors(curves: Sequence[Curve]) -> list[str]:
    return [_COLORS[at % len(_COLORS)] for at in range(len(curves))]


def _run_summary(path: Path) -> dict[str, Any]:
    """Return what a finished run says of itself; nothing where it is not finished."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _label(name: str, told: dict[str, Any]) -> str:
    shape = told.get("shape")
    if not isinstance(shape, dict):
        return name
    return f"{name}: width {shape.get('width')}, {shape.get('layers')} layers"


def _seen_tokens(entries: list[dict[str, Any]], told: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return entries with tokens seen: older ones lack them, so their share of all is taken."""
    steps, tokens = told.get("steps"), told.get("tokens")
    if not isinstance(steps, int) or not isinstance(tokens, int) or not steps:
        return tuple(entries)
    return tuple({"seen": round(tokens * one["step"] / steps)} | one for one in entries)


def _smooth(points: Points) -> Points:
    mean, seen = 0.0, []
    for count, (step, value) in enumerate(points, start=1):
        share = min(1 - 1 / count, _SMOOTH)
        mean = share * mean + (1 - share) * value
        seen.append((step, mean))
    return seen


@contextlib.contextmanager
def _picture(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield a figure of this size in inches, and write it when it is drawn."""
    check_target(path)  # before anything is drawn
    matplotlib, figures = load("matplotlib"), load("matplotlib.figure")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "toolsrv", "font.size": 9}
    with matplotlib.rc_context(settings):
        made = figures.Figure(figsize=size, layout="constrained")
        yield made
        kind = path.suffix.removeprefix(".")
        more = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 160}
        with open_atomic(path) as file:
            made.savefig(file, format=kind, **more)

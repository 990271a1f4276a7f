"""How a training went: one JSON object a step, and the learning curve drawn from them.

A run that goes on from a checkpoint forgets what was written after it: each step is there once.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load

_SMOOTH = 0.9
_BLUE, _ORANGE, _GREY = "#1f6fb2", "#d9822b", "#b9c4cc"


class Journal:
    """A file of JSON lines: ``step``, ``epoch``, ``seconds``, ``loss`` and more.

    ``loss`` is the mean over the target tokens of a step. Lines with ``dev_loss`` instead of ``loss`` are evaluations.
    """

    def __init__(self, path: Path, *, until: int) -> None:
        self.path = path
        self.entries = [one for one in _read(path) if one["step"] <= until]
        text = "".join(_line(one) for one in self.entries)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
        self._file = path.open("a", encoding="utf-8")

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry; it is in the file when this returns."""
        self.entries.append(dict(entry))
        self._file.write(_line(entry))
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

    def draw(self, path: Path) -> None:
        """Draw the learning curve into an SVG file."""
        losses, dev = self.values("loss"), self.values("dev_loss")
        if not losses:
            return
        figures, matplotlib = load("matplotlib.figure"), load("matplotlib")
        settings = {"svg.fonttype": "none", "svg.hashsalt": "toolsrv", "font.size": 9}
        with matplotlib.rc_context(settings):
            picture = figures.Figure(figsize=(7, 4), layout="constrained")
            axes = picture.subplots()
            axes.plot(*zip(*losses, strict=True), color=_GREY, linewidth=0.8, label="each step")
            axes.plot(*zip(*_smooth(losses), strict=True), color=_BLUE, label="running mean")
            if dev:
                axes.plot(*zip(*dev, strict=True), "o-", color=_ORANGE, label="dev")
            axes.set_xlabel("step")
            axes.set_ylabel("loss per target token")
            axes.legend(frameon=False)
            handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                picture.savefig(file, format="svg", metadata={"Date": None})
        Path(fresh).chmod(0o644)
        Path(fresh).replace(path)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines; the last one may have been cut off by a kill."""
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


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry) + "\n"


def _smooth(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    mean, seen = 0.0, []
    for count, (step, value) in enumerate(points, start=1):
        share = min(1 - 1 / count, _SMOOTH)
        mean = share * mean + (1 - share) * value
        seen.append((step, mean))
    return seen

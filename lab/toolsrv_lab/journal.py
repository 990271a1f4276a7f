"""How a training goes, as a file of JSON lines with the step each is about.

A run that goes on from a checkpoint forgets what was written after it: each step is there once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A file of JSON objects, each with ``step``; what else is the training's own affair."""

    def __init__(self, path: Path, *, until: int) -> None:
        self.path = path
        self.entries = [one for one in read_journal(path) if one["step"] <= until]
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


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry) + "\n"

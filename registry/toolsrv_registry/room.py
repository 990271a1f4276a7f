"""Is there room left on a disk? Asked after something failed there, to tell the likely reason."""

from __future__ import annotations

import shutil
from pathlib import Path

MIB = 1024 * 1024
SCARCE_BYTES = 64 * MIB
"""With less, a failure to write is put down to it: an index of 16,463 APIs takes some 60 MiB."""
REPEAT = "free some disk space and repeat"


def shortage(path: Path) -> str:
    """Return how little room is left where ``path`` lies; ``""`` for enough, or if unknown."""
    for place in (path, *path.parents):
        try:
            free = shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return ""
        return f"{free / MIB:.1f} MiB left" if free < SCARCE_BYTES else ""
    return ""

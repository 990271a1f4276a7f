"""One file from which a killed training goes on: whole or not at all, and only its own settings'.

``settings`` is any text that tells two runs apart. Read with ``weights_only``: a checkpoint from
elsewhere runs no code. Knows nothing about models.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_registry.errors import DataError

CHECKPOINT = "checkpoint.pt"


def read_checkpoint(folder: Path, settings: str, device: str) -> dict[str, Any] | None:
    """Return the state of a run in ``folder``, None where it has not begun.

    Raises DataError for a file that cannot be read and for a run with other settings.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = load("torch").load(path, map_location=device, weights_only=True)
        same = state["settings"] == settings
    except (OSError, ValueError, KeyError, RuntimeError, EOFError) as error:
        raise DataError(
            f"cannot read the checkpoint {path}: {error}", hint="delete it to start again"
        ) from error
    if not same:
        raise DataError(
            f"the checkpoint {path} is of a run with other settings",
            hint="choose another --out, or delete it to start again",
        )
    return state


def write_checkpoint(folder: Path, settings: str, state: dict[str, Any]) -> None:
    """Write the state of a run: whole or not at all."""
    fresh = folder / f".{CHECKPOINT}.new"
    with fresh.open("wb") as file:
        load("torch").save({**state, "settings": settings}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / CHECKPOINT)

"""One file from which a killed training goes on: whole or not at all, and only its own settings'.

``settings`` is any text that tells two runs apart. Read with ``weights_only``: a checkpoint from
elsewhere runs no code. Knows nothing about models.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_registry.errors import DataError

CHECKPOINT = "checkpoint.pt"
SAVE_SECONDS = 100.0
"""Most seconds between two checkpoints: with a step and the writing itself, under two minutes."""


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
    except (
        OSError, ValueError, KeyError, RuntimeError, EOFError, pickle.UnpicklingError
    ) as error:  # fmt: skip
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
    """Write the state of a run: whole or not at all.

    Raises DataError where there is no room for it; the checkpoint before stays.
    """
    fresh = folder / f".{CHECKPOINT}.new"
    with written(folder, fresh):
        with fresh.open("wb") as file:
            load("torch").save({**state, "settings": settings}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / CHECKPOINT)


@contextlib.contextmanager
def written(folder: Path, fresh: Path | None = None) -> Iterator[None]:
    """Turn what goes wrong while a run's files are written into DataError; ``fresh`` is removed."""
    try:
        yield
    # torch and safetensors tell a full disk as errors of their own.
    except (OSError, RuntimeError, load("safetensors").SafetensorError) as error:
        if fresh is not None:
            fresh.unlink(missing_ok=True)
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"cannot write the run in {str(folder)!r}: {reason}",
            hint="free some space and give the same command again: it goes on from the last "
            "checkpoint",
        ) from error

"""Training runs: one per folder, atomic checkpoints, memory kept by the C library.

A run that is killed continues from its checkpoint if its settings are the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_registry.errors import BusyError, DataError
from toolsrv_registry.file_lock import acquire_lock

LOCK = ".lock"


@contextlib.contextmanager
def exclusive_training(out: Path) -> Iterator[None]:
    """Keep other trainings out of ``out``; raises BusyError where one is at work already."""
    try:
        held = acquire_lock(out / LOCK, wait=False)
    except BlockingIOError:
        raise BusyError(
            f"another training works in {str(out)!r}",
            hint="wait for it, or choose another --out",
        ) from None
    with held:
        yield


# mallopt(3): these numbers are the parameters' names in malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_PAD_BYTES = 512 << 20


def keep_freed_memory() -> bool:
    """Let this process keep large blocks that are freed; return whether the C library heard it.

    Only glibc does; elsewhere nothing happens. Call it before the first tensor is made, in a
    process that ends with its training: memory is given back at its end.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    mallopt = library.mallopt
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, _PAD_BYTES))
    return all(mallopt(name, value) == 1 for name, value in settings)


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
    with write_whole(folder, fresh):
        with fresh.open("wb") as file:
            load("torch").save({**state, "settings": settings}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / CHECKPOINT)


@contextlib.contextmanager
def write_whole(folder: Path, fresh: Path | None = None) -> Iterator[None]:
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

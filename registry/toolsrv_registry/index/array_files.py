"""Arrays kept in one file that appears when it is complete: a cache that processes may share.

Written to a temporary file and renamed. Knows nothing of what the arrays mean.
"""

from __future__ import annotations

import os
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_STALE_SECONDS = 600.0


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file by name; numpy's checksums are compared.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It is damaged, or cannot be read.
    """
    try:
        # numpy leaves a file open that it opened itself and cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Put the arrays in a file's place, whole; raises OSError, and then the old file stays."""
    _sweep(path)
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy types its keywords as one flag
            file.flush()
            os.fsync(file.fileno())
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise


def text_array(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return texts without line breaks as an array."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def array_texts(array: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    """Return the texts that ``text_array`` made an array of."""
    text = array.tobytes().decode()
    return tuple(text.split("\n")) if text else ()


def _sweep(path: Path) -> None:
    """Remove what killed processes left of this file; a living one needs seconds."""
    for stray in path.parent.glob(f".{path.name}-*"):
        with suppress(OSError):
            if time.time() - stray.stat().st_mtime > _STALE_SECONDS:
                stray.unlink()

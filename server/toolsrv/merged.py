"""A PEFT adapter merged into its base once, and kept in the data folder.

llama.cpp applies GGUF adapters only. A merged file's name holds the digests of what it is made from,
so that a changed adapter or base makes another; the least used ones go. Digests of files are kept
with their size and time, so that gigabytes are not read at each start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolsrv.config_file import write_atomic
from toolsrv.file_lock import alone
from toolsrv_registry.file_names import portable_name

FOLDER = "merged"
KEPT = 3
"""Merged files; the least used are deleted."""

_DIGESTS = "digests.json"
_SHOWN = 16
"""Characters of a digest in a file's name."""

Progress = Callable[[int, int], None]


def is_peft(adapter: Path | None) -> bool:
    """Whether an adapter is PEFT's, which is merged before it is used."""
    from toolsrv_runtime.convert.adapter import is_peft as looks

    return adapter is not None and looks(adapter)


def merged_model(
    base: Path | None, adapter: Path, data_dir: Path, progress: Progress | None = None
) -> Path:
    """Return the GGUF file of ``base`` (None: the model that ships) with ``adapter`` merged.

    It is made where it is not there yet. Blocks; of two processes at once one makes it.

    Raises:
        ModelError: as ``toolsrv_runtime.convert.merge``.
        DataError: the data folder cannot be used.
    """
    from toolsrv_runtime.convert.merge import merge
    from toolsrv_runtime.convert.peft import files_of
    from toolsrv_runtime.gguf_header import read_header
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL

    base = base or SHIPPED_MODEL
    read_header(base)  # says what is wrong with it
    config, weights = files_of(adapter)
    folder = data_dir / "models" / FOLDER
    with alone(folder / ".lock"):
        known = _known(folder)
        digests = [_digest(path, known) for path in (base, config, weights)]
        write_atomic(folder / _DIGESTS, json.dumps(known))
        key = hashlib.sha256(" ".join(digests).encode()).hexdigest()[:_SHOWN]
        name = portable_name(f"{base.stem[:60]}.{config.parent.absolute().name[:60]}")
        target = folder / f"{name}.{key}.gguf"
        if not target.is_file():
            merge(base, adapter, target, force=True, progress=progress)
        os.utime(target)
        _tidy(folder, target)
    return target


def _known(folder: Path) -> dict[str, Any]:
    """Return the digests that are known; a damaged file of them is forgotten."""
    try:
        found = json.loads((folder / _DIGESTS).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path, known: dict[str, Any]) -> str:
    """Return a file's SHA-256, read from the file where it changed since."""
    from toolsrv_runtime.convert.adapter import sha256

    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    kept = known.get(str(path.absolute()))
    if isinstance(kept, list) and len(kept) == 2 and kept[0] == stamp:
        return str(kept[1])
    digest = sha256(path)
    known[str(path.absolute())] = [stamp, digest]
    return digest


def _tidy(folder: Path, used: Path) -> None:
    """Delete all but the files that were used last."""
    found = sorted(folder.glob("*.gguf"), key=lambda one: one.stat().st_mtime, reverse=True)
    for one in found[KEPT:]:
        if one != used:
            with contextlib.suppress(OSError):  # on Windows while it is used
                one.unlink()

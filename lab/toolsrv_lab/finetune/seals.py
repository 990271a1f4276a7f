"""Checkpoint folders that count only when they are whole.

A folder is sealed when all of it is on the disk: a file in it lists every other with size and
checksum. What has no seal was cut off by a kill and is swept away; what does not match its seal is
damaged and refused. Knows nothing about what the files are.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from toolsrv_registry.errors import DataError

SEAL = "complete.json"
_CHUNK = 1 << 22


def seal(folder: Path) -> None:
    """Force the folder's files onto the disk and seal it."""
    content = {}
    for path in _files(folder):
        with path.open("r+b") as file:  # Windows flushes no file that is open to read
            os.fsync(file.fileno())
        content[str(path.relative_to(folder))] = [path.stat().st_size, _checksum(path)]
    fresh = folder / f".{SEAL}.new"
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / SEAL)
    if sys.platform == "win32":  # it opens no folders, and keeps their entries by itself
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sweep(parent: Path, prefix: str) -> None:
    """Remove the folders whose writing was cut off."""
    for folder in parent.glob(f"{prefix}*"):
        if not (folder / SEAL).is_file():
            shutil.rmtree(folder)


def newest(parent: Path, prefix: str) -> tuple[Path, int] | None:
    """Return the sealed folder with the highest number after ``prefix``, and the number."""
    found = [
        (int(number), folder)
        for folder in parent.glob(f"{prefix}*")
        if (folder / SEAL).is_file() and (number := folder.name.removeprefix(prefix)).isdecimal()
    ]
    return max(found)[::-1] if found else None


def check(folder: Path) -> None:
    """Raise DataError unless every file is as it was when the folder was sealed."""
    hint = f"delete {str(folder)!r} to go on from the checkpoint before it, if there is one"
    try:
        content = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        expected = {str(name): (int(size), int(sum_)) for name, (size, sum_) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise DataError(f"the checkpoint {str(folder)!r} has a damaged seal", hint=hint) from None
    for name, (size, checksum) in expected.items():
        path = folder / name
        if not path.is_file():
            raise DataError(f"the checkpoint {str(folder)!r} lacks {name!r}", hint=hint)
        if path.stat().st_size != size or _checksum(path) != checksum:
            raise DataError(
                f"the checkpoint {str(folder)!r} is damaged: {name!r} has changed", hint=hint
            )


def _files(folder: Path) -> Iterator[Path]:
    return (one for one in sorted(folder.rglob("*")) if one.is_file() and one.name != SEAL)


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value

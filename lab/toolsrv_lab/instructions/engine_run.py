"""How far a file that an engine writes has come: ``FILE.run.json`` beside it.

The lines of a prompt are written and flushed first, then the record with the file's new size takes
the place of the old. What a kill leaves between the two is cut off when the run is opened again,
so a prompt's lines are in the file once or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from toolsrv_lab.instructions.replies import mark
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.files import check_target, open_atomic_text


class Run(BaseModel):
    """A run: ``calls`` of ``total`` prompts are done, ``size`` bytes and what is in them.

    ``settings`` tells runs apart that must not share a file; ``left_out`` counts by reason.
    """

    settings: dict[str, Any]
    total: int = 0
    calls: int = 0
    size: int = 0
    instructions: int = 0
    left_out: dict[str, int] = {}
    tokens: int = 0

    def leave_out(self, reason: str) -> None:
        """Count something that is not written."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def record_path(path: Path) -> Path:
    """Return where the record of a run lies that writes ``path``."""
    return path.with_name(f"{path.name}.run.json")


def open_run(path: Path, settings: dict[str, Any]) -> tuple[Run, set[str]]:
    """Return the run that writes ``path``, new or gone on with, and the marks of its texts.

    Raises:
        UsageError: the file is none of such a run, or of one with other settings.
        DataError: the file or its record cannot be read or written.
    """
    check_target(path)
    record = record_path(path)
    if not record.exists():
        if path.exists() and path.stat().st_size:
            raise UsageError(
                f"{path} exists and is no run to go on with", hint="name another file with --out"
            )
        run = Run(settings=settings)
        append(path, run, ())
        return run, set()
    run = _read(record)
    other = sorted(key for key in settings if run.settings.get(key) != settings[key])
    if other:
        raise UsageError(
            f"{path} was begun with other settings: {', '.join(other)}",
            hint="give the same again, or name another file with --out",
        )
    return run, _texts(path, run)


def append(path: Path, run: Run, lines: Iterable[str]) -> None:
    """Write lines behind what a run has written, and then its record.

    Raises DataError where one of them cannot be written; the record then is the earlier one.
    """
    told = [line.encode() for line in lines]
    data = b"".join(told)
    try:
        with path.open("r+b" if path.exists() else "x+b") as file:
            file.truncate(run.size)
            file.seek(run.size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}; what it had stays",
            hint="free some space and give the same command again",
        ) from error
    run.size += len(data)
    run.instructions += len(told)
    with open_atomic_text(record_path(path)) as record:
        record.write(run.model_dump_json(indent=1) + "\n")


def _read(record: Path) -> Run:
    try:
        return Run.model_validate_json(record.read_bytes())
    except (OSError, ValidationError) as error:
        raise DataError(
            f"cannot read the record {record}: {str(error).splitlines()[0]}",
            hint="delete it and its file to start again",
        ) from error


def _texts(path: Path, run: Run) -> set[str]:
    """Return the marks of the texts within the size that the record tells."""
    seen = set()
    read = 0
    try:
        with path.open("rb") as file:
            while read < run.size and (line := file.readline()):
                read += len(line)
                seen.add(mark(json.loads(line)["query"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if read != run.size:
        raise _damaged(path, f"it has {read} bytes where {run.size} were written")
    return seen


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} is not what its run wrote: {why}",
        hint=f"delete it and {record_path(path).name} to start again",
    )

"""The folder of an annotation: an answer file per task, and a record of what it was made with.

Answer files are ToolBench's, ``<id>_<method>.json``, and appear when they are complete. The record
``annotation.jsonl`` holds the settings in its first line and a summary per finished run below; it
is not a .json file, so that a conversion of the folder passes it over. One run at a time.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TextIO

from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.toolbench.answer_files import Answer, read_answer
from toolsrv_runtime.toolbench.answer_writer import write_answer

RECORD = "annotation.jsonl"
Status = Literal["solved", "gave_up", "failed"]

_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_ID = 120
_GO_ON = "free some space; the same command goes on after the answers that are there"
_ELSE = "name another folder with --out, or give the same settings again"


class AnswerFolder:
    """The answer files of one annotation; a context manager that holds the folder."""

    def __init__(self, folder: Path, method: str, settings: Mapping[str, Any]) -> None:
        """Make the folder or go on with it; ``settings`` (any JSON) are what its files depend on.

        Raises:
            UsageError: no folder can be made there.
            BusyError: another annotation writes it.
            DataError: it is of an annotation with other settings, or its record is damaged.
        """
        self.folder = folder
        self._method = method
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder)
        except OSError as error:
            raise _unwritable(folder, error) from error
        try:
            self._record: TextIO = (folder / RECORD).open("a+", encoding="utf-8", newline="\n")
        except OSError as error:
            self._lock.release()
            raise _unwritable(folder, error) from error
        try:
            self._begin(json.loads(json.dumps(settings)))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the record and let others write the folder; idempotent."""
        self._record.close()
        self._lock.release()

    def path(self, assignment: Assignment) -> Path:
        """Return where the answer of a task stands."""
        name = _UNSAFE.sub("_", assignment.id).strip("._")[:_LONGEST_ID] or "task"
        return self.folder / f"{name}_{self._method}.json"

    def status(self, assignment: Assignment) -> Status | None:
        """Return how a task ended whose answer is there, None where it is not.

        Raises:
            DataError: the file is damaged, or of another task.
        """
        path = self.path(assignment)
        if not path.exists():
            return None
        answer = read_answer(path)
        if answer.answer_generation.query != assignment.task.strip():
            raise DataError(f"{path} is the answer to another task", hint=_ELSE)
        return status_of(answer)

    def write(self, assignment: Assignment, answer: Answer) -> Status:
        """Write an answer file: whole or not at all.

        Raises:
            DataError: it cannot be written; names it.
        """
        try:
            write_answer(self.path(assignment), answer)
        except DataError as error:
            raise DataError(error.message, hint=_GO_ON) from error
        return status_of(answer)

    def note(self, summary: Mapping[str, Any]) -> None:
        """Add a line to the record. Raises DataError where it cannot be written."""
        try:
            self._record.write(json.dumps(summary, ensure_ascii=False) + "\n")
            self._record.flush()
            os.fsync(self._record.fileno())
        except OSError as error:
            raise DataError(
                f"cannot write {self.folder / RECORD}: {error.strerror or error}",
                hint=_GO_ON,
            ) from error

    def _begin(self, settings: dict[str, Any]) -> None:
        for left in self.folder.glob(f".*_{self._method}.json.*.new"):
            left.unlink(missing_ok=True)  # of a run that was killed
        there = self._settings()
        if there is None:
            self.note({"settings": settings})
            return
        keys = there.keys() | settings.keys()
        other = sorted(key for key in keys if there.get(key) != settings.get(key))
        if other:
            raise DataError(
                f"{self.folder} was begun with other settings: {', '.join(other)}", hint=_ELSE
            )

    def _settings(self) -> dict[str, Any] | None:
        """Return the settings in the record, None where it is new; drop a line that was cut off."""
        path = self.folder / RECORD
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._record.truncate(len(whole))
        if not whole:
            return None
        try:
            value = json.loads(whole.splitlines()[0])["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}, line 1: not the settings of an annotation",
                hint="delete it to make it anew, if the answers beside it are of the same settings",
            ) from error
        return dict(value)


def _locked(folder: Path) -> HeldLock:
    try:
        return lock_beside(folder / RECORD)
    except BlockingIOError as error:
        raise BusyError(
            f"another annotation writes {folder}",
            hint="wait for it, or name another folder with --out",
        ) from error


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write answers to {folder}: {error.strerror or error}",
        hint="name another folder with --out",
    )


def status_of(answer: Answer) -> Status:
    """Return how a search ended: with an answer, a give-up, or neither."""
    if answer.win:
        return "solved"
    gave_up = answer.answer_generation.finish_type == "give_up"
    return "gave_up" if gave_up and answer.answer_generation.valid_data else "failed"

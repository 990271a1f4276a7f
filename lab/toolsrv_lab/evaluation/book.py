"""Verdicts of an evaluation by strategy and task, kept in a result log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from toolsrv_lab.evaluation.result_log import ELSE, ResultLog
from toolsrv_lab.solving import Verdict
from toolsrv_registry.errors import DataError


class Book:
    """Verdicts by strategy and task; ``path`` None keeps them in memory alone. Close it."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        """Open or begin a book of an evaluation with ``settings`` (any JSON).

        Raises:
            UsageError: no file can be made there.
            BusyError: another evaluation writes it.
            DataError: it is no such file, or of an evaluation with other settings.
        """
        self.path = path
        self._found: dict[tuple[str, str], Verdict] = {}
        self._log = ResultLog(path, settings)
        try:
            for at, entry in enumerate(self._log, start=2):
                verdict = verdict_of(entry, path, at)
                self._found[str(entry.get("strategy")), verdict.id] = verdict
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, strategy: str, task_id: str) -> Verdict | None:
        """Return the verdict, None where there is none yet."""
        return self._found.get((strategy, task_id))

    def of(self, strategy: str, task_ids: Iterable[str]) -> list[Verdict]:
        """Return the verdicts that there are, in the order of the tasks."""
        found = (self.get(strategy, task_id) for task_id in task_ids)
        return [one for one in found if one is not None]

    def add(self, strategy: str, verdict: Verdict) -> None:
        """Keep a verdict; it is on the disk when this returns.

        Raises:
            DataError: it cannot be written.
        """
        self._log.add({"strategy": strategy, "verdict": verdict.model_dump(mode="json")})
        self._found[strategy, verdict.id] = verdict

    def close(self) -> None:
        """Close the file and let others write it; idempotent."""
        self._log.close()


def verdict_of(entry: Mapping[str, Any], path: Path | None, line: int) -> Verdict:
    """Return the verdict of a line. Raises DataError that names it where there is none."""
    try:
        return Verdict.model_validate(entry.get("verdict"))
    except ValidationError as error:
        raise DataError(
            f"{path}, line {line}: not a verdict: {error.errors()[0]['msg']}", hint=ELSE
        ) from None

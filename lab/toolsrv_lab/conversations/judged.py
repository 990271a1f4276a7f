"""Tasks that something is judged by, which nothing is to be learnt from.

A task is one of them where it shares a run of thirteen words with one, or is short and the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolsrv_registry.errors import DataError

RUN = 13
_WORD = re.compile(r"\w+")


class Judged:
    """The tasks of some files of JSON lines, each with a ``task``.

    Raises:
        DataError: a file cannot be read.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._runs = {run for file in files for task in _tasks(file) for run in _runs(task)}

    def __contains__(self, task: str) -> bool:
        """Whether a task is one of them."""
        return not self._runs.isdisjoint(_runs(task))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words of a text, all of its words where it has fewer."""
    words = tuple(_WORD.findall(text.lower()))
    for at in range(max(1, len(words) - RUN + 1)):
        yield words[at : at + RUN]


def _tasks(path: Path) -> Iterator[str]:
    try:
        for line in path.read_text("utf-8").splitlines():
            yield str(json.loads(line)["task"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"cannot read the tasks of {path}: {str(error)[:200]}",
            hint="give JSON lines, each with a task",
        ) from None

"""Tasks in, answer files out: resumable, several at a time, each the same whatever the others do.

Who works, this process or a cluster, is the pool's (``toolsrv_lab.execution``).

What is done stays whatever happens; the same command goes on with what is lacking. Knows no command
line and no particular teacher.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.annotation.annotators import Annotator, Surroundings
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.store import AnswerFolder, Status
from toolsrv_lab.execution import Pool, TaskFailedError
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.toolbench.answer_files import Answer
from toolsrv_runtime.toolbench.answer_writer import answer_of

Progress = Callable[["Report"], None]


class Damaged(BaseModel):
    """An answer file that was there and could not be used; it was made again."""

    model_config = ConfigDict(frozen=True)

    file: str
    reason: str


class Report(BaseModel):
    """How an annotation goes: of ``tasks``, what they came to.

    ``there`` of those that are done were done before. ``left_out`` counts by reason the tasks that
    the teacher cannot take; they are not among ``tasks``.
    """

    tasks: int = 0
    solved: int = 0
    gave_up: int = 0
    failed: int = 0
    there: int = 0
    damaged: list[Damaged] = []
    left_out: dict[str, int] = {}

    @property
    def done(self) -> int:
        """The tasks that have an answer file."""
        return self.solved + self.gave_up + self.failed

    def add(self, status: Status) -> None:
        """Count a task that is done."""
        setattr(self, status, getattr(self, status) + 1)


def fit(
    assignments: Iterable[Assignment], annotator: Annotator, count: int | None
) -> tuple[list[Assignment], dict[str, int]]:
    """Return the first ``count`` tasks that a teacher can take, and how many it cannot, by reason.

    Raises:
        UsageError: it can take none.
    """
    taken: list[Assignment] = []
    left_out: Counter[str] = Counter()
    for one in assignments:
        if reason := annotator.unfit(one):
            left_out[reason] += 1
            continue
        taken.append(one)
        if count is not None and len(taken) >= count:
            break
    if not taken:
        why = f": {left_out.most_common(1)[0][0]}" if left_out else ""
        raise UsageError(
            f"there is no task to annotate, {sum(left_out.values())} were left out{why}",
            hint="name other tasks with --tasks, or enable the catalog that they are about",
        )
    return taken, dict(left_out)


async def annotate(
    assignments: Sequence[Assignment],
    folder: AnswerFolder,
    teacher: str,
    pool: Pool[Assignment, Answer],
    *,
    left_out: dict[str, int] | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Have a pool solve what has no answer file yet, and report; ``teacher`` is named in errors.

    Raises:
        UsageError: two tasks would share a file, or the pool cannot be used.
        DataError: the teacher failed, or a file cannot be written; what is done stays.
    """
    report = Report(tasks=len(assignments), left_out=left_out or {})
    _check(assignments, folder)
    lacking = await asyncio.to_thread(_lacking, assignments, folder, report)
    progress(report)

    async def keep(assignment: Assignment, answer: Answer) -> None:
        report.add(await asyncio.to_thread(folder.write, assignment, answer))
        progress(report)

    try:
        await pool.run(lacking, keep)
    except TaskFailedError as failed:
        error = failed.error
        raise DataError(
            f"the teacher {teacher} failed at task {failed.task.id!r}: {error.message};"
            f" {report.done} of {report.tasks} answers are in {folder.folder}",
            hint=f"{error.hint}; then give the same command again: it goes on after them",
        ) from error
    folder.note({"summary": report.model_dump(mode="json")})
    return report


async def solve(annotator: Annotator, assignment: Assignment, around: Surroundings) -> Answer:
    """Return the answer file of a task.

    Raises:
        ToolsrvError: the teacher failed.
    """
    solved = await annotator.solve(assignment, around)
    functions = solved.offered
    return answer_of(
        solved.outcome,
        functions.to_json(),
        tools=functions.tool_list_block(),
        faithful=True,  # a teacher says which needs nothing serves: that is to be learnt
    )


def _check(assignments: Sequence[Assignment], folder: AnswerFolder) -> None:
    files = Counter(folder.path(one).name for one in assignments)
    name, most = files.most_common(1)[0] if files else ("", 0)
    if most > 1:
        raise UsageError(
            f"{most} tasks would share the file {name}", hint="give every task an id of its own"
        )


def _lacking(
    assignments: Sequence[Assignment], folder: AnswerFolder, report: Report
) -> list[Assignment]:
    """Return the tasks without a whole answer file; count the others."""
    found = []
    for assignment in assignments:
        try:
            status = folder.status(assignment)
        except DataError as error:
            reason = error.message
            report.damaged.append(Damaged(file=folder.path(assignment).name, reason=reason))
            status = None
        if status is None:
            found.append(assignment)
            continue
        report.there += 1
        report.add(status)
    return found

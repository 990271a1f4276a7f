"""Annotation pipeline: tasks to answer files in a folder, resumable and concurrent.

A task's result does not depend on others. The folder records the settings that it was made with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TextIO

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolsrv_catalogs.offline import OFFLINE_CATALOG, load_offline_catalog
from toolsrv_catalogs.text import clean
from toolsrv_lab.annotation.annotators import Annotator, Surroundings
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.environment import CatalogFinder
from toolsrv_lab.execution import Codec, Pool, Slots, TaskFailedError
from toolsrv_lab.nano.world import World
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_registry.registry import Registry
from toolsrv_runtime import TASK_LIMIT
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.toolbench.answer_files import Answer, parse_answer, read_answer
from toolsrv_runtime.toolbench.answer_writer import answer_of, write_answer

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
        found, wanted = answer.answer_generation.query, assignment.task
        if clean(found, TASK_LIMIT).strip() != clean(wanted, TASK_LIMIT).strip():
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


def fitting_assignments(
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


def catalog_names(registry: Registry, given: Collection[str]) -> list[str]:
    """Return the names of the catalogs to work on: the given ones, else the enabled ones."""
    return sorted(given) or sorted(one.name for one in registry.store.catalogs() if one.enabled)


def usable_apis(registry: Registry, catalogs: Sequence[str]) -> dict[str, Api]:
    """Return the APIs of some catalogs by id.

    Raises:
        NotFoundError: there is no such catalog.
        UsageError: they have no API.
    """
    found = {api.id: api for name in catalogs for api in registry.store.apis(catalog=name)}
    if not found:
        which = f"the catalog {', '.join(catalogs)} has" if catalogs else "no enabled catalog has"
        raise UsageError(
            f"{which} {'no' if catalogs else 'an'} API to call",
            hint="see toolsrv catalog list; import a catalog, or enable one",
        )
    return found


@dataclass(frozen=True, slots=True)
class Workplace:
    """What annotating needs: a teacher, and a registry with the catalogs that it works on."""

    annotator: Annotator
    registry: Registry
    catalogs: Sequence[str]
    apis: Mapping[str, Api]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Slots[Assignment, Answer]]:
        """Open what annotates: real calls of the catalog that ships, played ones of others."""
        offline = frozenset(api.id for api in load_offline_catalog().apis)
        real = offline if OFFLINE_CATALOG in self.catalogs else frozenset[str]()
        alone = self.catalogs[0] if len(self.catalogs) == 1 else None
        finder = CatalogFinder(self.registry.retriever, self.apis.keys(), alone)
        world = World(())
        try:
            async with default_caller() as caller:
                around = Surroundings(finder, self.apis, real, caller, world)
                yield lambda: contextlib.nullcontext(
                    lambda assignment: solve(self.annotator, assignment, around)
                )
        finally:
            await asyncio.to_thread(world.close)  # it has an event loop of its own


_TASK: TypeAdapter[Assignment] = TypeAdapter(Assignment)


def _write_task(assignment: Assignment) -> str:
    return _TASK.dump_json(assignment).decode()


def _read_task(text: str) -> Assignment:
    return _TASK.validate_json(text)


def _write_answer(answer: Answer) -> str:
    return json.dumps(answer.document())


def _read_answer(text: str) -> Answer:
    return parse_answer(wellformed.loads(text), "the worker's answer")


CODEC = Codec(_write_task, _read_task, _write_answer, _read_answer)
"""Assignments and answer files between processes."""

"""A list of runs, live and ended, in which a client's model finds one again. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from toolsrv.plain import one_line, plain
from toolsrv.run_store import RunRow
from toolsrv.runs import Run

TASK_CHARACTERS = 400


class RunLine(BaseModel):
    """One run of a list. ``ended`` is ISO 8601 in UTC, "" while it has not ended."""

    run_id: str
    status: str
    task: str
    ended: str = ""


class RunsView(BaseModel):
    """Runs, the newest first."""

    runs: tuple[RunLine, ...]
    next_step: str = Field(default="", description="What to do now.")


def run_lines(runs: Iterable[Run], rows: Iterable[RunRow], words: str, limit: int) -> list[RunLine]:
    """Return live runs, then ended ones, the newest first; each once.

    ``runs`` are those in memory, oldest first, ``rows`` those on disk, newest first. Only runs whose
    task has all ``words`` are listed, ``limit`` at most.
    """
    held = list(reversed(list(runs)))
    live = [_line(one) for one in held if one.live]
    ended = {one.id: _line(one) for one in held if not one.live}
    for row in rows:
        ended.setdefault(
            row.id, RunLine(run_id=row.id, status=row.status, task=plain(row.task), ended=row.ended)
        )
    latest = sorted(ended.values(), key=lambda one: one.ended, reverse=True)
    wanted = words.casefold().split()
    found = (one for one in (*live, *latest) if all(word in one.task.casefold() for word in wanted))
    lines = [one.model_copy(update={"task": one_line(one.task, TASK_CHARACTERS)}) for one in found]
    return lines[:limit]


def _line(run: Run) -> RunLine:
    ended = "" if run.ended is None else run.ended.isoformat(timespec="seconds")
    return RunLine(run_id=run.id, status=run.status, task=plain(run.task), ended=ended)


def runs_view(lines: Iterable[RunLine]) -> RunsView:
    """Return a list with what to do with it."""
    runs = tuple(lines)
    return RunsView(runs=runs, next_step=_STEP if runs else "")


def cut_runs(view: RunsView, most: int, characters: int) -> RunsView:
    """Return the first ``most`` runs, with at most ``characters`` of each task."""
    runs = tuple(
        one.model_copy(update={"task": one_line(one.task, characters)}) for one in view.runs[:most]
    )
    step = view.next_step
    if left := len(view.runs) - len(runs):
        step = f"{left} older runs have no room here, find one by words of its task; {step}"
    return view.model_copy(update={"runs": runs, "next_step": step})


_STEP = "get_run for an answer, show_run for a tree, solve_task with continues to go on from one"

"""Strategies side by side: tasks solved by each, verdicts kept in a result log, figures by kind.

Shares have Wilson intervals. A killed run continues from the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_lab.evaluation.result_log import ELSE, ResultLog
from toolsrv_lab.evaluation.statistics import (
    Difference,
    Mean,
    Share,
    mean,
    mean_difference,
    share,
    share_difference,
)
from toolsrv_lab.solving import FaultyCaller, Task, Verdict, check_tasks, solve_one
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_runtime.outcome import Usage
from toolsrv_runtime.solve import SolveOptions, Solver


class VerdictLog:
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


ALL = "all"

KINDS: Mapping[str, Callable[[Verdict], bool]] = {
    "single": lambda one: one.kind == "single",
    "two": lambda one: one.kind == "two",
    "three": lambda one: one.kind == "three",
    "chained": lambda one: one.chained,
    "fails": lambda one: one.fails,
    "none": lambda one: one.kind == "none",
    ALL: lambda _: True,
}
"""The kinds of tasks; ``chained`` and ``fails`` are among the first three as well."""

JUDGED: Mapping[str, Callable[[Verdict], bool]] = {
    "solved": lambda one: one.solved,
    "right_functions": lambda one: one.right_functions,
    "right_answer": lambda one: one.right_answer,
    "wrong_claims": lambda one: one.wrong_claim,
}

COSTS: Mapping[str, Callable[[Verdict], float]] = {
    "replies": lambda one: one.usage.model_calls,
    "calls": lambda one: one.usage.calls,
    "tokens": lambda one: one.usage.generated_tokens,
    "seconds": lambda one: one.usage.seconds,
}


class Summary(BaseModel):
    """Verdicts in figures.

    ``right_functions``: of the tasks that something serves, those in which every needed API was
    called with success. ``right_arguments``: of these, those in which they gave what the task's
    own calls give. ``right_answer``: of all tasks; for one that nothing serves, that it was given
    up. ``solved``: calls and answer. ``gave_up``: of the tasks that nothing serves, those given
    up. ``wrong_claims``: of all tasks, those with an answer that is not right. Then per task:
    replies of the model, calls of APIs, tokens that the model wrote, seconds.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    offered: Share
    right_functions: Share
    right_arguments: Share
    right_answer: Share
    solved: Share
    gave_up: Share
    wrong_claims: Share
    replies: Mean
    calls: Mean
    tokens: Mean
    seconds: Mean


class Compared(BaseModel):
    """What ``first`` has more than ``second`` of ``measure``, on the tasks that both solved."""

    model_config = ConfigDict(frozen=True)

    first: str
    second: str
    measure: str
    difference: Difference


async def evaluate_strategies(
    tasks: Sequence[Task],
    strategies: Mapping[str, SolveOptions],
    book: VerdictLog,
    *,
    solver: Solver,
    caller: FaultyCaller,
    apis: Mapping[str, Api],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Solve what the book lacks and write it there; ``caller`` is the one ``solver`` calls with.

    Raises:
        DataError: a task is not usable, or a solve failed; says what is kept and how to go on.
    """
    check_tasks(tasks, apis)
    total, done = len(tasks) * len(strategies), 0
    for at, task in enumerate(tasks):
        for name, options in _turned(strategies, at):
            if book.get(name, task.id) is None:
                try:
                    verdict = await solve_one(
                        task, solver=solver, caller=caller, apis=apis, options=options
                    )
                except ToolsrvError as error:
                    raise _stopped(error, task, name, book) from error
                book.add(name, verdict)
            done += 1
            progress(done, total)


def _turned(strategies: Mapping[str, SolveOptions], by: int) -> list[tuple[str, SolveOptions]]:
    """Return the strategies with another one first each time."""
    every = list(strategies.items())
    by %= len(every)
    return every[by:] + every[:by]


def _stopped(error: ToolsrvError, task: Task, strategy: str, book: VerdictLog) -> DataError:
    further = (
        f"{len(book)} verdicts are kept in {book.path}; the same command goes on after them"
        if book.path
        else "with --out FILE an evaluation can go on where it stopped"
    )
    return DataError(
        f"the evaluation stopped at task {task.id!r} with {strategy}: {error.message}",
        hint=f"{error.hint}; {further}" if error.hint else further,
    )


def by_kind(verdicts: Sequence[Verdict]) -> dict[str, Summary]:
    """Return the figures of each kind of task that there is, ``all`` last."""
    groups = {kind: [one for one in verdicts if has(one)] for kind, has in KINDS.items()}
    return {kind: summary(group) for kind, group in groups.items() if group}


def summary(verdicts: Sequence[Verdict]) -> Summary:
    """Return the figures of some verdicts."""
    served = [one for one in verdicts if one.kind != "none"]
    nothing = [one for one in verdicts if one.kind == "none"]
    return Summary(
        tasks=len(verdicts),
        offered=share(one.offered for one in served),
        right_functions=share(one.right_functions for one in served),
        right_arguments=share(one.right_calls for one in served if one.right_functions),
        right_answer=share(one.right_answer for one in verdicts),
        solved=share(one.solved for one in verdicts),
        gave_up=share(one.right_answer for one in nothing),
        wrong_claims=share(one.wrong_claim for one in verdicts),
        **{name: mean([cost(one) for one in verdicts]) for name, cost in COSTS.items()},
    )


def compare(verdicts: Mapping[str, Sequence[Verdict]]) -> list[Compared]:
    """Return, for each two strategies, their differences on the tasks that both have."""
    found = []
    for first, second in combinations(verdicts, 2):
        other = {one.id: one for one in verdicts[second]}
        pairs = [(one, other[one.id]) for one in verdicts[first] if one.id in other]
        differences = {
            name: share_difference([(has(a), has(b)) for a, b in pairs])
            for name, has in JUDGED.items()
        } | {
            name: mean_difference([(cost(a), cost(b)) for a, b in pairs])
            for name, cost in COSTS.items()
        }
        found += [
            Compared(first=first, second=second, measure=name, difference=one)
            for name, one in differences.items()
        ]
    return found


FAILED = "failed"
"""Status of a solve that the engine's fault ended."""


class SolvedFigures(BaseModel):
    """Verdicts in figures.

    ``solved``: right calls made and the right answer. ``right_calls``: the task's calls were made
    with success, or others that told the same. ``right_answer``: the values asked for stand in the
    answer; of a task that nothing serves, it was given up. ``wrong_claims``: an answer states
    what no result and not the task supports. ``wrong_answers``: answered, and not right. Each of
    all tasks. ``statuses`` count the outcomes. Then per task: seconds, generated and evaluated
    tokens, replies of the model, calls.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    solved: Share
    right_calls: Share
    right_answer: Share
    wrong_claims: Share
    wrong_answers: Share
    statuses: dict[str, int]
    seconds: Mean
    generated: Mean
    evaluated: Mean
    replies: Mean
    calls: Mean


def by_stratum(verdicts: Sequence[Verdict]) -> dict[str, SolvedFigures]:
    """Return the figures of each kind of task that there is, ``all`` last."""
    groups = {kind: [one for one in verdicts if has(one)] for kind, has in KINDS.items()}
    return {kind: solved_figures(group) for kind, group in groups.items() if group}


def solved_figures(verdicts: Sequence[Verdict]) -> SolvedFigures:
    """Return the figures of some verdicts."""
    usages = [one.usage for one in verdicts]
    return SolvedFigures(
        tasks=len(verdicts),
        solved=share(one.solved for one in verdicts),
        right_calls=share(one.right_calls or one.another_way for one in verdicts),
        right_answer=share(one.right_answer for one in verdicts),
        wrong_claims=share(bool(one.unsupported) for one in verdicts),
        wrong_answers=share(one.wrong_claim for one in verdicts),
        statuses=dict(Counter(one.status for one in verdicts).most_common()),
        seconds=mean([one.seconds for one in usages]),
        generated=mean([one.generated_tokens for one in usages]),
        evaluated=mean([one.evaluated_tokens for one in usages]),
        replies=mean([one.model_calls for one in usages]),
        calls=mean([one.calls for one in usages]),
    )


def failed_task(task: Task, error: ToolsrvError) -> Verdict:
    """Return the verdict on a solve that raised."""
    return Verdict(
        id=task.id,
        kind=task.kind,
        status=FAILED,
        offered=False,
        right_calls=False,
        right_answer=False,
        answer=error.message,
        calls=(),
        usage=Usage(),
        chained=task.chained,
        fails=bool(task.fails),
    )

"""ToolEval's pass rate, and StableToolBench's solvable pass rate.

Votes are independent, so that they are asked for at the same time; each is resumed from the judge's
log. A judge that needs no votes is asked once.
"""

from __future__ import annotations

import asyncio
import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.execution import LocalPool, TaskFailedError, stateless
from toolsrv_lab.tooleval.answer_sets import AnswerSet, Judged
from toolsrv_lab.tooleval.judge import Judge
from toolsrv_lab.tooleval.verdicts import (
    AnswerStatus,
    TaskStatus,
    Verdict,
    coin,
    empty_answer,
    majority,
    passes,
    sopr,
)

MOST_MORE = 4
"""Further votes on an answer whose votes are equal, before a coin decides."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Vote:
    """One evaluation of one answer."""

    answer: AnswerStatus
    task: TaskStatus
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Label:
    """The votes on an answer. ``decided`` is False where a coin had to."""

    votes: tuple[Vote, ...]
    passed: bool
    decided: bool

    @property
    def solved(self) -> AnswerStatus:
        """The status that most votes give the answer, the first of equals."""
        return _most([one.answer for one in self.votes])

    @property
    def task(self) -> TaskStatus:
        """The status that most votes give the task."""
        return _most([one.task for one in self.votes])

    def count(self, verdict: Verdict) -> int:
        """Return how many votes have a verdict."""
        return sum(one.verdict == verdict for one in self.votes)


class PassFigures(BaseModel):
    """A set in figures. ``undecided``: answers that a coin decided."""

    model_config = ConfigDict(frozen=True)

    model: str
    subset: str
    passed: Share
    solved: Share
    solvable: Share
    unfinished: Share
    hallucinated: Share
    undecided: Share
    votes: int
    sopr_percent: float | None = None
    sopr_deviation: float | None = None


def answer_status(judge: Judge, answer: Judged, at: int) -> AnswerStatus:
    """Return the status of an answer: by itself, and by its steps where that leaves it unsure."""
    if empty_answer(answer.final_answer):
        return "Unsolved"
    status = judge.check_answer_status(answer, at)
    return judge.parse_answer_status(answer, at) if status == "Unsure" else status


def evaluate(judge: Judge, answer: Judged, at: int, *, solvable: bool = False) -> Vote:
    """Return one vote on an answer; ``solvable``: every task is taken to be (StableToolBench).

    An answer that does not end in Finish fails and nobody is asked, as in the reference.
    """
    if solvable:
        status = answer_status(judge, answer, at)
        return Vote(status, "Solvable", passes(status, "Solvable"))
    if not answer.finished:
        return Vote("Unsolved", "Solvable", "Failed")
    status = answer_status(judge, answer, at)
    task = "Solvable" if status == "Solved" else judge.check_task_solvable(answer, at)
    return Vote(status, task, passes(status, task))


def label(
    judge: Judge, answer: Judged, times: int, *, seed: int = 0, solvable: bool = False
) -> Label:
    """Return the label of an answer: the majority of ``times`` votes, of more where it is equal."""
    votes = [evaluate(judge, answer, at, solvable=solvable) for at in range(times)]
    for at in range(times, times + MOST_MORE if times > 1 and not solvable else times):
        if majority([one.verdict for one in votes]) != "Unsure":
            break
        votes.append(evaluate(judge, answer, at))
    outcome = majority([one.verdict for one in votes])
    decided = outcome != "Unsure"
    passed = outcome == "Passed" if decided else coin(seed, answer.id, answer.final_answer)
    return Label(tuple(votes), passed, decided)


def label_sets(
    judge: Judge,
    sets: Sequence[AnswerSet],
    times: int,
    *,
    seed: int = 0,
    solvable: bool = False,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[dict[str, Label]]:
    """Return the labels of each set by query id, asked for by ``jobs`` threads."""
    work = [(at, one) for at, group in enumerate(sets) for one in group.answers.values()]

    def one(item: tuple[int, Judged]) -> Label:
        return label(judge, item[1], times, seed=seed, solvable=solvable)

    found: list[dict[str, Label]] = [{} for _ in sets]
    for (at, answer), made in zip(work, in_parallel(one, work, jobs, progress), strict=True):
        found[at][answer.id] = made
    return found


def in_parallel(
    make: Callable[[T], R], items: Sequence[T], jobs: int, progress: Callable[[], None]
) -> list[R]:
    """Return what ``make`` makes of each item, in order; after a first error nothing is begun.

    ``make`` is called by ``jobs`` threads, ``progress`` after each by this one.
    """
    found: dict[int, R] = {}

    async def one(at: int) -> R:
        return await asyncio.to_thread(make, items[at])

    async def keep(at: int, made: R) -> None:
        found[at] = made
        progress()

    try:
        asyncio.run(LocalPool(stateless(one), jobs).run(range(len(items)), keep))
    except TaskFailedError as failed:
        raise failed.error from None
    return [found[at] for at in range(len(items))]


def figures(
    group: AnswerSet, labels: Mapping[str, Label], times: int, *, solvable: bool = False
) -> PassFigures:
    """Return a labelled set in figures."""
    every = list(labels.values())
    rate = (
        sopr({key: _runs(one) for key, one in labels.items()}, times) if solvable else (None, None)
    )
    return PassFigures(
        model=group.model,
        subset=group.subset,
        passed=share(one.passed for one in every),
        solved=share(one.solved == "Solved" for one in every),
        solvable=share(one.task == "Solvable" for one in every),
        unfinished=share(not one.finished for one in group.answers.values()),
        hallucinated=share(one.hallucinated for one in group.answers.values()),
        undecided=share(not one.decided for one in every),
        votes=sum(len(one.votes) for one in every),
        sopr_percent=rate[0],
        sopr_deviation=rate[1],
    )


def results_json(
    group: AnswerSet, labels: Mapping[str, Label], *, solvable: bool = False
) -> dict[str, Any]:
    """Return a set in the form of ToolEval's result file, or StableToolBench's."""
    return {key: _entry(group.answers[key], one, solvable) for key, one in labels.items()}


def results_tsv(group: AnswerSet, labels: Mapping[str, Label], *, solvable: bool = False) -> str:
    """Return the same as ToolEval's tab-separated table."""
    columns = [
        *("query", "solvable", "available_tools", "model_intermediate_steps", "model_final_step"),
        *("model", "query_id", "is_solved", "pass_rate_label", "reason", "not_hallucinate"),
    ]
    if solvable:
        left_out = ("solvable", "pass_rate_label", "reason", "not_hallucinate")
        columns = [one for one in columns if one not in left_out]
    rows = []
    for key, one in labels.items():
        answer = group.answers[key]
        entry = _entry(answer, one, solvable)
        rows.append(
            {
                "query": answer.query,
                "solvable": entry.get("task_solvable", ""),
                "available_tools": str(answer.tool_names),
                "model_intermediate_steps": answer.steps_text(),
                "model_final_step": answer.final_step(),
                "model": group.model,
                "query_id": key,
                "is_solved": str(entry["is_solved"]),
                "pass_rate_label": "passed" if one.passed else "failed",
                "reason": entry.get("reason", ""),
                "not_hallucinate": str(entry.get("not_hallucinate", "")),
            }
        )
    return tsv(columns, rows)


def tsv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], delimiter: str = "\t") -> str:
    """Return a table of text with a head line; lines end in a line feed."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, columns, delimiter=delimiter, lineterminator="\n", extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def leaderboard(name: str, rows: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return ToolBench's leaderboard as CSV: methods, best first, with subsets beside.

    ``name`` is ``WinRate`` or ``PassRate``; ``rows``: method → subset → a value in [0, 1] a query.
    """
    subsets = sorted({subset for of in rows.values() for subset in of})
    found = []
    for method, of in rows.items():
        values = [one for subset in of.values() for one in subset]
        row: dict[str, Any] = {"Method": method, name: _mean(values), "StdError": _error(values)}
        for subset in subsets:
            row[f"{subset}_{name}"] = _mean(of.get(subset, ()))
            row[f"{subset}_StdError"] = _error(of.get(subset, ()))
        found.append(row)
    found.sort(key=lambda row: -(row[name] if isinstance(row[name], float) else -1.0))
    columns = ["Method", name, "StdError"]
    columns += [f"{one}_{name}" for one in subsets] + [f"{one}_StdError" for one in subsets]
    return tsv(columns, found, ",")


def _entry(answer: Judged, one: Label, solvable: bool) -> dict[str, Any]:
    if solvable:
        return {
            "query": answer.query,
            "tool_names": answer.tool_names,
            "answer_steps": answer.steps_text(),
            "final_step": answer.final_step(),
            "is_solved": _runs(one),
        }
    return {
        "passed": one.count("Passed"),
        "failed": one.count("Failed"),
        "query": answer.query,
        "task_solvable": f"TaskStatus.{one.task}",
        "tool_names": answer.tool_names,
        "answer_steps": answer.steps_text(),
        "final_step": answer.final_step(),
        "is_solved": f"AnswerStatus.{one.solved}",
        "reason": "" if answer.finished else "No answer",
        "not_hallucinate": not answer.hallucinated,
    }


def _runs(one: Label) -> dict[str, str]:
    return {str(at): f"AnswerStatus.{vote.answer}" for at, vote in enumerate(one.votes)}


def _most(values: Sequence[T]) -> T:
    return max(values, key=values.count)


def _mean(values: Sequence[float]) -> float | str:
    return sum(values) / len(values) if values else ""


def _error(values: Sequence[float]) -> float | str:
    if not values:
        return ""
    middle = sum(values) / len(values)
    variance = sum((one - middle) ** 2 for one in values) / len(values)
    return math.sqrt(variance / len(values))

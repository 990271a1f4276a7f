"""Strategies side by side: verdicts on tasks in figures by kind. Shares have Wilson intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import (
    Difference,
    Mean,
    Share,
    mean,
    mean_difference,
    share,
    share_difference,
)
from toolsrv_lab.solving import Task, Verdict
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.outcome import Usage

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

"""Figures of solved tasks: shares with Wilson intervals and costs, by kind of task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_lab.evaluation.strategies import KINDS
from toolsrv_lab.solving import Task, Verdict
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.outcome import Usage

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
    return {kind: figures(group) for kind, group in groups.items() if group}


def figures(verdicts: Sequence[Verdict]) -> SolvedFigures:
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


def failed(task: Task, error: ToolsrvError) -> Verdict:
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

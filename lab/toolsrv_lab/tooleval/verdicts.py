"""ToolEval's labels and how they combine. Pure.

An answer solves its query or not, a task can be solved with its tools or not, and both together
pass or fail; each may be unsure. Coins are drawn by a hash, so that a run that is repeated decides
the same.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

AnswerStatus = Literal["Solved", "Unsolved", "Unsure"]
TaskStatus = Literal["Solvable", "Unsolvable", "Unsure"]
Verdict = Literal["Passed", "Failed", "Unsure"]
Preference = Literal["a", "b", "tie"]

GIVE_UP = "give_up_and_restart"
_SCORES: Mapping[str, float] = {"Solved": 1.0, "Unsure": 0.5}


def empty_answer(final_answer: str) -> bool:
    """Whether a final answer is none: then it is unsolved and no judge is asked."""
    return not final_answer or GIVE_UP in final_answer


def passes(answer: AnswerStatus, task: TaskStatus) -> Verdict:
    """Return the verdict on an answer to a task."""
    if answer == "Solved" or task == "Unsolvable":
        return "Passed"
    return "Failed" if answer == "Unsolved" and task == "Solvable" else "Unsure"


def majority(verdicts: Sequence[Verdict]) -> Verdict:
    """Return which of passed and failed has more votes; unsure where they are equal."""
    ahead = verdicts.count("Passed") - verdicts.count("Failed")
    return "Unsure" if not ahead else "Passed" if ahead > 0 else "Failed"


def coin(*key: object) -> bool:
    """Return a fair coin that falls the same way for the same key."""
    return bool(hashlib.sha256(repr(key).encode()).digest()[0] & 1)


def sopr(runs: Mapping[str, Mapping[str, str]], times: int) -> tuple[float, float]:
    """Return StableToolBench's solvable pass rate and its deviation over runs, in per cent.

    ``runs``: query id → run (``"0"``, …) → status, with or without ``AnswerStatus.`` before it. A
    run without a status counts 0, as the reference counts it.
    """
    if not runs:
        return 0.0, 0.0
    rates = []
    for at in range(times):
        scores = (
            _SCORES.get(one.get(str(at), "").rpartition(".")[2], 0.0) for one in runs.values()
        )
        rates.append(100 * sum(scores) / len(runs))
    return statistics.fmean(rates), statistics.pstdev(rates)

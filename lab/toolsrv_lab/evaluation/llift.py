"""LLift's evaluation: use before initialisation, with its design elements added one by one.

The elements are switches of a solve (``constraints``, ``progressive``, ``self-check``, ``plan``) and
``votes``. Each case is solved by the agent's tool loop; the same model then reads its answer and says
which verdict that is, held to a call. Every case is solved in several runs with seeds of their own,
to see how often they agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.cells import Cell
from toolsrv_lab.evaluation.llift_cases import Case, CaseWorld, Label
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatRequest,
    ReplyConstraints,
    Tool,
    UserMessage,
)
from toolsrv_runtime.options import SWITCHES
from toolsrv_runtime.outcome import Outcome, Usage
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

VOTES = "votes"
SIMPLE = "simple"
"""The row without any element."""

ORDER = ("constraints", "progressive", "self-check", "plan", VOTES)
"""The elements in the order in which they are added."""

VOTE_SIZE = 3
FAILED = "failed"
_ENDED = ("answered", "replied")

Said = Label | Literal["none"]
"""A verdict; ``none``: the solve ended without an answer, or with one that says neither."""

_ANSWER_LIMIT = 4_000
_TOKENS = 64
_SEED_STEP = 1000
"""Between the seeds of two runs: a vote takes a few from its own on."""
_SAMPLES = 2_000
_QUESTION = (
    "An analyst was asked whether the variable {variable} in the C function {function} can be used "
    "before its initialisation, and answered:\n\n{answer}\n\nWhich verdict does this answer give? "
    "before: some path uses the variable before it is initialised. safe: it is initialised on every path. "
    "none: the answer does not tell. Call verdict with it."
)


class LliftResult(BaseModel):
    """What became of one case in one run. ``asked`` are the sources that were read."""

    model_config = ConfigDict(frozen=True)

    id: str
    run: int
    label: Label
    verdict: Said
    status: str
    answer: str
    asked: tuple[str, ...]
    needs: tuple[str, ...]
    usage: Usage

    @property
    def right(self) -> bool:
        """Whether the verdict is that of the label."""
        return self.verdict == self.label


class LliftFigures(BaseModel):
    """One row of a table: the first run of each case, and how often further runs agree.

    ``undecided`` verdicts are wrong, and no reports of a bug. ``needed_read``: of the sources that a
    case cannot be decided without, those that were read. Means are per solve, of all runs.
    """

    model_config = ConfigDict(frozen=True)

    cases: int
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    undecided: Share
    precision: Share
    recall: Share
    accuracy: Share
    f1: float | None
    f1_low: float | None
    f1_high: float | None
    consistent: Share
    needed_read: Share
    statuses: dict[str, int]
    seconds: Mean
    generated: Mean
    replies: Mean
    calls: Mean


def rows(given: Sequence[str]) -> list[str]:
    """Return the rows of elements: those given, else none and then one more at a time.

    Raises:
        UsageError: there is no such element.
    """
    if not given:
        return [SIMPLE, *("+".join(ORDER[:at]) for at in range(1, len(ORDER) + 1))]
    for row in given:
        for name in row.split("+"):
            if name not in (*ORDER, SIMPLE) or (name == SIMPLE and row != SIMPLE):
                raise UsageError(
                    f"--elements: there is no element {name!r}",
                    hint=f"any of {', '.join(ORDER)} with + between, or {SIMPLE}",
                )
    return list(given)


def options_of(base: SolveOptions, row: str) -> SolveOptions:
    """Return the options of a row: its elements and no aids.

    The aids read requests to services; programs are none.
    """
    names = frozenset(row.split("+"))
    return base.model_copy(
        update={
            "switches": frozenset(one for one in SWITCHES if one in names),
            "votes": VOTE_SIZE if VOTES in names else 1,
            "aids": frozenset(),
            "search_again": False,
            "look_wider": False,
            "keep_on_fault": False,
        }
    )


def runs_of(cases: Sequence[Case], runs: int) -> dict[str, tuple[Case, int]]:
    """Return what is solved, by the name that a result is kept under."""
    return {f"{one.id}/{at}": (one, at) for at in range(runs) for one in cases}


async def solve_case(
    case: Case,
    run: int,
    options: SolveOptions,
    *,
    solver: Solver,
    world: CaseWorld,
    model: ChatModel,
) -> LliftResult:
    """Solve a case with the seed of its run; ``world`` is the one that ``solver`` works in.

    Raises:
        ToolsrvError: the model failed.
    """
    world.case = case
    options = options.model_copy(update={"seed": options.seed + _SEED_STEP * run})
    outcome = await solver.solve(case.task, options)
    return LliftResult(
        id=case.id,
        run=run,
        label=case.label,
        verdict=await _verdict(case, outcome, model, options.seed),
        status=outcome.status,
        answer=outcome.answer[:_ANSWER_LIMIT],
        asked=case.asked([one.api_id for one in outcome.evidence]),
        needs=case.needs,
        usage=outcome.usage,
    )


def failed_case(task: tuple[Case, int], error: ToolsrvError) -> LliftResult:
    """Return the result of a solve that raised."""
    case, run = task
    return LliftResult(
        id=case.id,
        run=run,
        label=case.label,
        verdict="none",
        status=FAILED,
        answer=error.message,
        asked=(),
        needs=case.needs,
        usage=Usage(),
    )


def figures(results: Sequence[LliftResult]) -> LliftFigures:
    """Return the results of one cell in figures."""
    first = [one for one in results if one.run == 0]
    counts = Counter((one.label, one.verdict) for one in first)
    hits, alarms = counts["before", "before"], counts["safe", "before"]
    value, low, high = _f1(first)
    read = [name in one.asked for one in results for name in one.needs]
    usages = [one.usage for one in results]
    return LliftFigures(
        cases=len(first),
        true_positives=hits,
        false_positives=alarms,
        true_negatives=counts["safe", "safe"],
        false_negatives=sum(one.label == "before" for one in first) - hits,
        undecided=share(one.verdict == "none" for one in first),
        precision=share(one.right for one in first if one.verdict == "before"),
        recall=share(one.right for one in first if one.label == "before"),
        accuracy=share(one.right for one in first),
        f1=value,
        f1_low=low,
        f1_high=high,
        consistent=_consistent(results),
        needed_read=share(read),
        statuses=dict(Counter(one.status for one in results).most_common()),
        seconds=mean([one.seconds for one in usages]),
        generated=mean([one.generated_tokens for one in usages]),
        replies=mean([one.model_calls for one in usages]),
        calls=mean([one.calls for one in usages]),
    )


def by_cell(found: Mapping[Cell, Sequence[LliftResult]]) -> dict[Cell, LliftFigures]:
    """Return the figures of each cell that has results."""
    return {cell: figures(results) for cell, results in found.items() if results}


async def _verdict(case: Case, outcome: Outcome, model: ChatModel, seed: int) -> Said:
    if outcome.status not in _ENDED or not outcome.answer.strip():
        return "none"  # what a search that was cut short had is joined from sources, no verdict
    tool = Tool(
        "verdict",
        "Name the verdict of an answer.",
        {
            "type": "object",
            "properties": {"verdict": {"type": "string", "enum": ["before", "safe", "none"]}},
            "required": ["verdict"],
            "additionalProperties": False,
        },
    )
    text = _QUESTION.format(
        variable=case.variable, function=case.function, answer=outcome.answer[:_ANSWER_LIMIT]
    )
    request = ChatRequest(
        (UserMessage(text),),
        (tool,),
        ReplyConstraints((tool.name,), calls=1, text=False),
        max_tokens=_TOKENS,
        seed=seed,
    )
    stop = Stop()
    reply = await run_in_thread(lambda: model.reply(request, stop=stop), stop)
    said = reply.calls[0].arguments.get("verdict") if reply and reply.calls else None
    return "before" if said == "before" else "safe" if said == "safe" else "none"


def _consistent(results: Sequence[LliftResult]) -> Share:
    """Return the share of cases whose runs all gave one verdict, of those with several runs."""
    groups: dict[str, list[Said]] = {}
    for one in results:
        groups.setdefault(one.id, []).append(one.verdict)
    return share(len(set(group)) == 1 for group in groups.values() if len(group) > 1)


def _f1(results: Sequence[LliftResult]) -> tuple[float | None, float | None, float | None]:
    """Return F1 and its 95 % interval, the percentile bootstrap over cases; None without bugs."""
    said = np.array([one.verdict == "before" for one in results], bool)
    true = np.array([one.label == "before" for one in results], bool)
    if not true.any():
        return None, None, None
    drawn = np.random.default_rng(0).integers(0, len(said), (_SAMPLES, len(said)))
    hits = (said & true)[drawn].sum(axis=1)
    both = said[drawn].sum(axis=1) + true[drawn].sum(axis=1)
    values = 2 * hits / np.maximum(both, 1)
    low, high = np.percentile(values, (2.5, 97.5))
    value = 2 * int((said & true).sum()) / int(said.sum() + true.sum())
    return round(value, 4), round(float(low), 4), round(float(high), 4)

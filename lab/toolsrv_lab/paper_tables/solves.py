"""Tables 3, 4 and 6: queries solved by models with strategies, among oracle or retrieved APIs.

Every solve is one result of a log, with its answer in the form that ToolEval judges. ReACT@N repeats
ReACT until it has cost as many replies of the model as DFSDT did on the same query.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.cells import Cell, CellLog
from toolsrv_lab.evaluation.stable import empty_form, name_of, offer
from toolsrv_lab.evaluation.stable_world import QueryRetriever
from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.evaluation.strategies import FAILED
from toolsrv_lab.evaluation.toolbench_queries import QueryResult, failed_query, judge_query
from toolsrv_lab.retrieval.queries import Query
from toolsrv_lab.tooleval.answer_sets import AnswerSet, parse_judged, tooleval_form
from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.calls.result import AskConsent
from toolsrv_runtime.outcome import Outcome, Source
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.toolbench.answer_files import Answer

Strategy = Literal["react", "dfsdt", "react-n"]
STRATEGIES: Mapping[str, str] = {"react": "ReACT", "react-n": "ReACT@N", "dfsdt": "DFSDT"}
"""Names of the strategies in tables; ``react-n`` only stands in Table 3."""
ApiSet = Literal["oracle", "retrieved"]
API_SETS: Mapping[str, str] = {"oracle": "oracle APIs", "retrieved": "top 5 APIs"}
RETRIEVED = 5
_MOST_CHAINS = 32


class TableSolve(BaseModel):
    """What became of one query. ``form``: the answer as ToolEval judges it, ``answer``: its file.

    ``sources`` counts the responses by where they came from; a refused call has none.
    """

    model_config = ConfigDict(frozen=True)

    solved: QueryResult
    sources: dict[Source, int]
    form: dict[str, Any]
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TableTask:
    """A query, and how many replies of the model it may cost; None: what the options say."""

    query: Query
    replies: int | None = None


@dataclass(frozen=True, slots=True)
class SolveCell:
    """A model with a strategy among oracle or retrieved APIs; one row of a table."""

    model: str
    identity: str
    strategy: str
    apis: str

    @property
    def cell(self) -> Cell:
        """What its results are kept by."""
        return Cell(self.model, self.identity, f"{self.strategy}/{self.apis}")

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.model}, {STRATEGIES[self.strategy]}, {API_SETS[self.apis]}"


def cells_of(
    model: str, identity: str, strategies: Sequence[str], apis: Sequence[str], *, repeated: bool
) -> list[SolveCell]:
    """Return the cells of a model, ReACT@N last; ``repeated``: with those of Table 3.

    Table 3 is measured among oracle APIs, as in the paper.
    """
    found = [SolveCell(model, identity, one, some) for some in apis for one in strategies]
    if repeated:
        three = ("react", "dfsdt", "react-n")
        found += [SolveCell(model, identity, one, "oracle") for one in three]
    return list(dict.fromkeys(found))


def base_options(options: SolveOptions, cell: SolveCell) -> SolveOptions:
    """Return the options of a cell's solves."""
    update: dict[str, Any] = {"strategy": "cot" if cell.strategy == "react-n" else cell.strategy}
    if cell.strategy == "react-n":
        update["chains"] = _MOST_CHAINS
    if cell.apis == "retrieved":
        update |= {"candidates": RETRIEVED, "search_again": False}
    return options.model_copy(update=update)


def tree_replies(cell: SolveCell, query: str, log: CellLog[TableSolve]) -> int | None:
    """Return how many replies a model's search tree had on a query that ReACT@N repeats.

    None where the tree failed, or where there is none.
    """
    tree = log.get(dataclasses.replace(cell, strategy="dfsdt").cell, query)
    if tree is None or tree.solved.status == FAILED:
        return None
    return max(1, tree.solved.usage.model_calls)


async def solve_query(
    task: TableTask,
    options: SolveOptions,
    cell: SolveCell,
    *,
    solver: Solver,
    retriever: QueryRetriever,
    apis: Mapping[str, Api],
    answer: Callable[[Outcome], Answer],
    ask: AskConsent | None = None,
) -> TableSolve:
    """Return what becomes of a query; ``retriever`` is that of ``solver``, ``answer`` makes its file.

    Raises:
        ToolsrvError: the model failed.
    """
    query = task.query
    if task.replies is not None:
        limits = options.limits.model_copy(update={"model_calls": task.replies})
        options = options.model_copy(update={"limits": limits})
    given = query.candidates or query.relevant
    ids = [one.id for one in given] if cell.apis == "oracle" else []
    outcome = await solver.solve(query.query, offer(options, ids, retriever, apis), ask=ask)
    file = answer(outcome)
    return TableSolve(
        solved=judge_query(query, outcome, apis),
        sources=dict(Counter(one.source for one in outcome.evidence if one.status)),
        form=tooleval_form(file, STRATEGIES[cell.strategy]),
        answer=file.document(),
    )


def failed_solve(task: TableTask, error: ToolsrvError) -> TableSolve:
    """Return the result of a solve that raised: no answer, which fails."""
    query = task.query
    return TableSolve(solved=failed_query(query, error), sources={}, form=empty_form(query))


def simulated_share(results: Sequence[TableSolve]) -> Share:
    """Return how many of the responses were simulated."""
    every = Counter[str]()
    for one in results:
        every.update(one.sources)
    return share(at < every["simulated"] for at in range(every.total()))


def answer_set(
    cell: SolveCell, subset: str, queries: Sequence[Query], log: CellLog[TableSolve]
) -> AnswerSet:
    """Return the answers of a cell to a subset that the log has, as ToolEval judges them."""
    answers = {}
    for query in queries:
        name = name_of(query)
        if (one := log.get(cell.cell, name)) is not None:
            answers[name] = parse_judged(name, one.form, f"{subset}/{name}")
    return AnswerSet(cell.name, subset, answers)

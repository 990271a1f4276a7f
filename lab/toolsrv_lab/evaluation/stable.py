"""StableToolBench: its queries solved against its cache, with the shares of hits and misses.

Each query is offered the APIs that it came with, calls go to a world that replays the cache
(``stable_world``), and the answers are judged by the solvable pass rate (``tooleval``). Queries that
need an API that no catalog has are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.stable_world import QueryRetriever, WorldCaller
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_lab.evaluation.toolbench_queries import QueryResult, failed_query, judge_query
from toolsrv_lab.retrieval.queries import Query
from toolsrv_lab.tooleval.answer_sets import AnswerSet, parse_judged, tooleval_form
from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.calls.recordings.storage import RecordingStore
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import MAX_CANDIDATES
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.toolbench.answer_files import Answer
from toolsrv_runtime.toolbench.cache import (
    CacheReadout,
    FindApi,
    cache_files,
    read_cache,
    zipped_cache,
)

ALL = "all"

Progress = Callable[[int, int], None]


class CacheUse(BaseModel):
    """Calls of a solve at the world: hits with real or simulated replies, misses, refusals."""

    model_config = ConfigDict(frozen=True)

    real: int = 0
    simulated: int = 0
    missed: int = 0
    refused: int = 0

    @property
    def looked_up(self) -> int:
        """The calls that the cache was asked for."""
        return self.real + self.simulated + self.missed


class StableResult(BaseModel):
    """What became of one query; ``form`` is its answer as ToolEval judges it.

    ``answer`` may be its answer file.
    """

    model_config = ConfigDict(frozen=True)

    solved: QueryResult
    use: CacheUse
    form: dict[str, Any]
    answer: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The query's id, unique in its set alone."""
        return self.solved.id

    @property
    def set(self) -> str:
        """The query's set."""
        return self.solved.set


class StableFigures(BaseModel):
    """Over some queries: shares of the calls that the cache was asked for, then of the queries.

    ``covered``: queries with a call and without a miss. ``finished``: with an answer.
    """

    model_config = ConfigDict(frozen=True)

    queries: int
    calls: int
    hits: Share
    real_hits: Share
    simulated_hits: Share
    misses: Share
    refused: int
    covered: Share
    needed_called: Share
    finished: Share
    seconds: Mean
    generated: Mean


def import_cache(
    place: Path, find: FindApi, store: RecordingStore, progress: Progress
) -> dict[str, Any]:
    """Put the replies of a cache, a folder or a zip archive, into recordings; return their counts.

    Raises:
        NotFoundError: there is no cache.
        UsageError: it is neither a folder nor a zip archive.
        DataError: it cannot be read, or the recordings cannot be written.
    """
    seen = CacheReadout()
    if place.is_dir():
        files = cache_files(place)
        added = store.add_all(read_cache(files, find, seen, progress))
    else:
        with zipped_cache(place) as files:
            added = store.add_all(read_cache(files, find, seen, progress))
    return {
        "files": len(files),
        "added": added,
        "judged": dict(sorted(seen.judged.items())),
        "left_out": dict(sorted(seen.left_out.items())),
        "unknown_apis": len(seen.unknown),
    }


def name_of(query: Query) -> str:
    """Return what tells a query from those of other sets."""
    return f"{query.set}/{query.query_id}"


def offer(
    options: SolveOptions,
    ids: Sequence[str],
    retriever: QueryRetriever,
    apis: Mapping[str, Api],
) -> SolveOptions:
    """Have a retriever offer some APIs, and return the options of a solve among them alone.

    Without a known API the retriever searches. A fault of the engine is raised.
    """
    retriever.candidates = [apis[one] for one in dict.fromkeys(ids) if one in apis]
    update: dict[str, Any] = {"keep_on_fault": False}
    if retriever.candidates:
        update["candidates"] = min(len(retriever.candidates), MAX_CANDIDATES)
        update |= {"search_again": False, "look_wider": False}
    return options.model_copy(update=update)


async def solve_query(
    query: Query,
    options: SolveOptions,
    *,
    solver: Solver,
    caller: WorldCaller,
    retriever: QueryRetriever,
    apis: Mapping[str, Api],
    answer: Callable[[Outcome], Answer],
    method: str,
) -> tuple[StableResult, Answer]:
    """Solve a query among the APIs that it came with; ``answer`` makes its answer file.

    ``caller`` and ``retriever`` are those of ``solver``.

    Raises:
        ToolsrvError: the model or the world failed.
    """
    given = offer(options, [one.id for one in query.candidates], retriever, apis)
    caller.begin()
    outcome = await solver.solve(query.query, given)
    file = answer(outcome)
    result = StableResult(
        solved=judge_query(query, outcome, apis),
        use=CacheUse.model_validate(caller.used),
        form=tooleval_form(file, method),
    )
    return result, file


def failed_solve(query: Query, error: ToolsrvError) -> StableResult:
    """Return the result of a solve that raised: no answer, which counts as unsolved."""
    return StableResult(solved=failed_query(query, error), use=CacheUse(), form=empty_form(query))


def empty_form(query: Query) -> dict[str, Any]:
    """Return the form of a query without an answer, as ToolEval judges it."""
    return {
        "query": query.query,
        "available_tools": [],
        "answer": {"method": "", "total_steps": 0, "final_answer": "", "answer_details": []},
    }


def answer_sets(results: Sequence[StableResult], model: str) -> list[AnswerSet]:
    """Return the answers of each set as ToolEval judges them."""
    sets: dict[str, list[StableResult]] = {}
    for one in results:
        sets.setdefault(one.set, []).append(one)
    return [
        AnswerSet(
            model,
            name,
            {one.id: parse_judged(one.id, one.form, f"{name}/{one.id}") for one in group},
        )
        for name, group in sets.items()
    ]


def by_set(results: Sequence[StableResult]) -> dict[str, StableFigures]:
    """Return the figures of each set, ``all`` last."""
    groups: dict[str, list[StableResult]] = {}
    for one in results:
        groups.setdefault(one.set, []).append(one)
    return {name: figures(group) for name, group in (groups | {ALL: list(results)}).items()}


def figures(results: Sequence[StableResult]) -> StableFigures:
    """Return the figures over some queries."""
    real = sum(one.use.real for one in results)
    simulated = sum(one.use.simulated for one in results)
    missed = sum(one.use.missed for one in results)
    total = real + simulated + missed

    def of(count: int) -> Share:
        return share(at < count for at in range(total))

    called = [one.use for one in results if one.use.looked_up]
    usages = [one.solved.usage for one in results]
    return StableFigures(
        queries=len(results),
        calls=total,
        hits=of(real + simulated),
        real_hits=of(real),
        simulated_hits=of(simulated),
        misses=of(missed),
        refused=sum(one.use.refused for one in results),
        covered=share(not one.missed for one in called),
        needed_called=share(one.solved.needed_called for one in results),
        finished=share(one.solved.status == "answered" for one in results),
        seconds=mean([one.seconds for one in usages]),
        generated=mean([one.generated_tokens for one in usages]),
    )

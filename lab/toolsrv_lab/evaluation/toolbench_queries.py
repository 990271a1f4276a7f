"""Queries over ToolBench's catalog, solved with simulated responses and judged by their calls.

Nobody answers these APIs any more, so what comes back is invented in the shape of the response
schema (``calls.simulation``) and no answer can be right or wrong. What can be judged: whether the
needed APIs were called, whether the first function was a needed one, whether arguments were
invented, and whether an answer was given at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.answer_values import states
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_lab.evaluation.strategies import FAILED
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.outcome import Evidence, Outcome, Usage
from toolsrv_runtime.values.facts import response_text

ALL = "all"
_SOURCE_LIMIT = 50_000


class QueryResult(BaseModel):
    """What became of one query. ``called`` are API ids in order, the failed calls too.

    ``needed_called``: every needed API answered. ``first_relevant``: the first call is of a needed
    API. ``arguments`` counts the argument values that may be judged, ``invented`` lists those
    that neither the query nor an earlier result holds.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    set: str
    status: str
    offered: bool
    needed_called: bool
    first_relevant: bool
    called: tuple[str, ...]
    arguments: int
    invented: tuple[str, ...]
    unsupported: int
    answer: str
    usage: Usage


class QueryFigures(BaseModel):
    """Over some queries. ``offered``: all needed APIs were among the candidates.

    ``with_invented``: of the queries with a call, those with an invented argument;
    ``invented_arguments``: of the argument values, the invented ones. ``finished``: with an answer.
    """

    model_config = ConfigDict(frozen=True)

    queries: int
    offered: Share
    needed_called: Share
    first_relevant: Share
    with_invented: Share
    invented_arguments: Share
    finished: Share
    statuses: dict[str, int]
    seconds: Mean
    generated: Mean
    evaluated: Mean
    calls: Mean


def usable_queries(
    queries: Sequence[Query], apis: Mapping[str, Api]
) -> tuple[list[Query], dict[str, int]]:
    """Return the queries whose needed APIs the catalogs have, and why others are left out."""
    found: list[Query] = []
    out = {"need no API": 0, "need an API that no enabled catalog has": 0}
    nothing, unknown = out
    for one in queries:
        if not one.relevant_ids:
            out[nothing] += 1
        elif any(name not in apis for name in one.relevant_ids):
            out[unknown] += 1
        else:
            found.append(one)
    return found, {reason: count for reason, count in out.items() if count}


def judge_query(query: Query, outcome: Outcome, apis: Mapping[str, Api]) -> QueryResult:
    """Judge the calls of an outcome."""
    needed = set(query.relevant_ids)
    judged, invented = 0, []
    sources = [query.query]
    for call in outcome.evidence:
        values = _values(call, apis.get(call.api_id))
        judged += len(values)
        text = "\n".join(sources)
        invented += [value for value in values if not states(text, value)]
        sources.append(response_text(call.response, _SOURCE_LIMIT)[0])
    called = tuple(call.api_id for call in outcome.evidence)
    return QueryResult(
        id=query.query_id,
        set=query.set,
        status=outcome.status,
        offered=needed <= set(outcome.candidates),
        needed_called=needed <= {call.api_id for call in outcome.evidence if call.ok},
        first_relevant=bool(called) and called[0] in needed,
        called=called,
        arguments=judged,
        invented=tuple(invented),
        unsupported=len(outcome.unsupported),
        answer=outcome.answer,
        usage=outcome.usage,
    )


def _values(call: Evidence, api: Api | None) -> list[str]:
    """Return the argument values that can be invented: no defaults, choices or truth values."""
    known = {one.name: one for one in api.parameters} if api is not None else {}
    found = []
    for name, value in call.arguments.items():
        parameter = known.get(name)
        documented = {str(parameter.default), *map(str, parameter.enum or ())} if parameter else ()
        for one in _leaves(value):
            if isinstance(one, bool) or one is None or str(one) in documented or not str(one):
                continue
            found.append(str(one))
    return found


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]


def by_set(results: Sequence[QueryResult]) -> dict[str, QueryFigures]:
    """Return the figures of each set of queries, ``all`` last."""
    groups: dict[str, list[QueryResult]] = {}
    for one in results:
        groups.setdefault(one.set, []).append(one)
    return {name: figures(group) for name, group in (groups | {ALL: list(results)}).items()}


def figures(results: Sequence[QueryResult]) -> QueryFigures:
    """Return the figures over some queries."""
    calling = [one for one in results if one.called]
    invented = sum(len(one.invented) for one in results)
    arguments = sum(one.arguments for one in results)
    usages = [one.usage for one in results]
    return QueryFigures(
        queries=len(results),
        offered=share(one.offered for one in results),
        needed_called=share(one.needed_called for one in results),
        first_relevant=share(one.first_relevant for one in results),
        with_invented=share(bool(one.invented) for one in calling),
        invented_arguments=share(at < invented for at in range(arguments)),
        finished=share(one.status == "answered" for one in results),
        statuses=dict(Counter(one.status for one in results).most_common()),
        seconds=mean([one.seconds for one in usages]),
        generated=mean([one.generated_tokens for one in usages]),
        evaluated=mean([one.evaluated_tokens for one in usages]),
        calls=mean([one.calls for one in usages]),
    )


def failed_query(query: Query, error: ToolsrvError) -> QueryResult:
    """Return the result of a solve that raised."""
    return QueryResult(
        id=query.query_id,
        set=query.set,
        status=FAILED,
        offered=False,
        needed_called=False,
        first_relevant=False,
        called=(),
        arguments=0,
        invented=(),
        unsupported=0,
        answer=error.message,
        usage=Usage(),
    )

"""How well a retriever finds what queries need: NDCG, recall and completeness per set.

Ranks by ``Retriever.rank``, the bare ranking. The first of the APIs that serve a need as well counts
as the one that is needed, and the others are left out. Queries none of whose APIs the catalogs have are
counted and left out; a relevant API that the catalogs lack stays in the denominator.

The corpus is all that is enabled, the candidates that a query came with, or those of its whole set: the
paper's protocol, where each group of instructions is searched in the APIs of that group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.retrieval.metrics import Estimate, Ranking, estimate, ndcg, recall
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.api import Api
from toolsrv_registry.registry import Registry
from toolsrv_runtime.agent.candidates import MOST_RERANKED, rerank

Corpus = Literal["all", "candidates", "set"]
Progress = Callable[[int, int], None]
Rank = Callable[[str, frozenset[str] | None], Ranking]
"""Ranks a text: over everything, or over the given API ids only."""

NDCG_AT = (1, 3, 5, 10)
RECALL_AT = (5, 10)
ALL = "all sets"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ranked API as ``reranked`` wants it; ``clause`` is the whole text."""

    api: Api
    clause: str
    score: float


class SetFigures(BaseModel):
    """The figures of one set of queries, in per cent.

    ``complete``: of the queries, those all of whose relevant APIs are among the first k.
    """

    model_config = ConfigDict(frozen=True)

    queries: int
    ndcg: dict[int, Estimate]
    recall: dict[int, Estimate]
    complete: dict[int, Estimate] = {}


class Evaluation(BaseModel):
    """Figures per set, ``all sets`` last; ``left_out`` counts queries without a known API.

    ``apis`` are those of the catalogs, ``corpora`` how many each set was searched in.
    """

    model_config = ConfigDict(frozen=True)

    corpus: Corpus
    apis: int
    left_out: int
    sets: dict[str, SetFigures]
    corpora: dict[str, int] = {}


def evaluate(
    queries: Iterable[Query],
    rank: Rank,
    known: frozenset[str],
    *,
    corpus: Corpus = "all",
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Return the figures of a ranking function over queries."""
    every = list(queries)
    fit = [query for query in every if known.intersection(_pool(query, corpus))]
    offered = _offered(fit) if corpus == "set" else {}
    values: dict[str, list[dict[str, float]]] = defaultdict(list)
    for done, query in enumerate(fit, start=1):
        pool = offered.get(query.set)
        if corpus == "candidates":
            pool = frozenset(one.id for one in query.candidates)
        ranking = _settled(rank(query.query, pool), query)
        values[query.set].append(_values(ranking, query.relevant_ids))
        if progress is not None:
            progress(done, len(fit))
    together = [one for some in values.values() for one in some]
    if len(values) > 1:
        values[ALL] = together
    return Evaluation(
        corpus=corpus,
        apis=len(known),
        left_out=len(every) - len(fit),
        sets={name: _figures(some, seed) for name, some in values.items()},
        corpora={name: len(some & known) for name, some in offered.items()},
    )


def with_matcher(registry: Registry) -> Callable[..., Ranking]:
    """Return a ranking function in the order in which searches and solves show hits.

    Called as ``Retriever.rank`` is.
    """

    def rank(text: str, *, among: frozenset[str] | None = None) -> Ranking:
        ranking = registry.retriever.rank(text, among=among)
        apis = registry.store.get_many([api_id for api_id, _ in ranking[:MOST_RERANKED]])
        first = [Candidate(apis[one], text, score) for one, score in ranking[:MOST_RERANKED]]
        best = rerank(first, text, registry.retriever.match)
        return [*((one.hit.api.id, one.score) for one in best), *ranking[MOST_RERANKED:]]

    return rank


def _offered(queries: Iterable[Query]) -> dict[str, frozenset[str]]:
    """Return set -> what its queries came with, and what they need."""
    found: dict[str, set[str]] = defaultdict(set)
    for query in queries:
        found[query.set].update(one.id for one in query.candidates)
        found[query.set].update(query.relevant_ids)
    return {name: frozenset(some) for name, some in found.items()}


def _pool(query: Query, corpus: Corpus) -> Sequence[str]:
    if corpus != "all" and not query.candidates:
        return ()
    return query.relevant_ids


def _settled(ranking: Ranking, query: Query) -> Ranking:
    """Return a ranking in which the best of those that serve a need stands for it."""
    stands_for = query.stands_for
    if not stands_for:
        return ranking
    best: dict[str, float] = {}
    for api_id, score in ranking:
        best.setdefault(stands_for.get(api_id, api_id), score)
    return list(best.items())


def _values(ranking: Ranking, relevant: Sequence[str]) -> dict[str, float]:
    found = {f"ndcg{k}": ndcg(ranking, relevant, k) for k in NDCG_AT}
    found |= {f"recall{k}": recall(ranking, relevant, k) for k in RECALL_AT}
    return found | {f"complete{k}": float(found[f"recall{k}"] == 1) for k in RECALL_AT}


def _figures(values: Sequence[dict[str, float]], seed: int) -> SetFigures:
    def over(name: str) -> Estimate:
        return estimate([one[name] for one in values], seed)

    return SetFigures(
        queries=len(values),
        ndcg={k: over(f"ndcg{k}") for k in NDCG_AT},
        recall={k: over(f"recall{k}") for k in RECALL_AT},
        complete={k: over(f"complete{k}") for k in RECALL_AT},
    )

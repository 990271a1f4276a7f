"""Evaluation of a retriever: NDCG@1/3/5, Recall@5/10 per set, ablations, unserved requests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.bench.report import wilson
from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.given_apis import GivenApi
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.matcher import MatchRequest
from toolsrv_registry.ranker import Ranker
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.retriever import Retriever
from toolsrv_registry.search.signals import SIGNALS, Floats
from toolsrv_runtime.agent.candidates import MOST_RERANKED, rerank
from toolsrv_runtime.agent.coverage import UNSERVED_LOG_ODDS

Ranking = Sequence[tuple[str, float]]
"""(API id, score), best first."""

_SAMPLES = 1_000


class Estimate(BaseModel):
    """A mean with its 95 % bootstrap interval, in per cent."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float
    high: float


def ndcg(ranking: Ranking, relevant: Collection[str], k: int) -> float:
    """Return NDCG@k in [0, 1] of a ranking; what it does not list counts as last.

    O(n) in the ranking's length. 0.0 where nothing is relevant.
    """
    wanted = set(relevant)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    gain, rank = 0.0, 1
    for _, tied in groupby(ranking, key=lambda one: one[1]):
        ids = [api_id for api_id, _ in tied]
        if rank > k:
            break
        share = sum(api_id in wanted for api_id in ids) / len(ids)
        last = min(rank + len(ids), k + 1)
        gain += share * sum(1 / math.log2(at + 1) for at in range(rank, last))
        rank += len(ids)
    return gain / ideal if ideal else 0.0


def recall(ranking: Ranking, relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant APIs among the first k; 0.0 where nothing is relevant."""
    wanted = set(relevant)
    return len(wanted & {api_id for api_id, _ in ranking[:k]}) / len(wanted) if wanted else 0.0


def estimate(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean of per-query values in [0, 1] with its bootstrap interval (1,000 resamples).

    Of equal values, which a bootstrap takes for certain, the interval is Wilson's.
    """
    array = np.asarray(values, np.float64)
    if not len(array):
        return Estimate(mean=math.nan, low=math.nan, high=math.nan)
    rng = np.random.default_rng(seed)
    means = rng.choice(array, (_SAMPLES, len(array))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    if low == high:
        low, high = wilson(float(array.sum()), len(array))
    return Estimate(
        mean=round(100 * float(array.mean()), 2),
        low=round(100 * float(low), 2),
        high=round(100 * float(high), 2),
    )


Corpus = Literal["all", "candidates", "set"]
Progress = Callable[[int, int], None]
Rank = Callable[[str, frozenset[str] | None], Ranking]
"""Ranks a text: over everything, or over the given API ids only."""

NDCG_AT = (1, 3, 5, 10)
RECALL_AT = (5, 10)
ALL = "all sets"


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
        first = [GivenApi(apis[one], score, text) for one, score in ranking[:MOST_RERANKED]]
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


Order = Callable[[Floats], Floats]


AT = 5
_DEPTH = 60


def variants(ranker: Ranker) -> dict[str, Order]:
    """Return name -> how it scores rows of signals."""

    def by(name: str) -> Order:
        column = SIGNALS.index(name)
        return lambda signals: np.nan_to_num(signals[:, column], nan=-1.0)

    return {
        "words, whole text": by("words, whole text"),
        "words, best clause": by("best words of a clause"),
        "meaning, whole text": by("cosine with the whole text"),
        "meaning, best clause": by("best cosine with a clause"),
        "both, plain sum": by("both, plain sum"),
        "both, ranker": ranker.score,
    }


def ablate(
    retriever: Retriever,
    queries: Sequence[Query],
    ranker: Ranker,
    *,
    progress: Progress | None = None,
) -> dict[str, dict[str, Estimate]]:
    """Return variant -> set -> NDCG@5 in per cent with its interval."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    orders = variants(ranker)
    for done, query in enumerate(queries, start=1):
        recalled = retriever.recall(query.query)
        ids = [recalled.lexicon.ids[at] for at in recalled.judged.places]
        for name, order in orders.items():
            scores = order(recalled.judged.signals)
            best = np.argsort(-scores, kind="stable")[:_DEPTH]
            ranking = [(ids[at], float(scores[at])) for at in best]
            values[name][query.set].append(ndcg(ranking, query.relevant_ids, AT))
        if progress is not None:
            progress(done, len(queries))
    return {
        name: {one: estimate(some) for one, some in sets.items()} for name, sets in values.items()
    }


SEARCH, MATCHER, EITHER = "search", "matcher", "either"


class Refused(BaseModel):
    """Shares of texts that a judge refuses: with their tools, without them; and its precision."""

    model_config = ConfigDict(frozen=True)

    served: Share
    removed: Share
    precision: Share


class UnservedFigures(BaseModel):
    """The judges by name; ``apis`` are those that are searched."""

    model_config = ConfigDict(frozen=True)

    queries: int
    apis: int
    judges: dict[str, Refused]


def evaluate_unserved(
    retriever: Retriever,
    queries: Sequence[Query],
    known: frozenset[str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> UnservedFigures:
    """Return how often "nothing fits" is said, rightly and wrongly.

    Raises:
        DataError: the matcher cannot be used.
    """
    said: dict[str, tuple[list[bool], list[bool]]] = {
        name: ([], []) for name in (SEARCH, MATCHER, EITHER)
    }
    for done, query in enumerate(queries, start=1):
        tools = {one.rpartition("/")[0] for one in query.relevant_ids}
        others = frozenset(one for one in known if one.rpartition("/")[0] not in tools)
        for at, among in enumerate((None, others)):
            for name, refused in _unserved_outcome(retriever, query.query, among).items():
                said[name][at].append(refused)
        progress(done, len(queries))
    return UnservedFigures(
        queries=len(queries),
        apis=len(known),
        judges={
            name: Refused(
                served=share(served),
                removed=share(removed),
                precision=share([True] * sum(removed) + [False] * sum(served)),
            )
            for name, (served, removed) in said.items()
        },
    )


def _unserved_outcome(
    retriever: Retriever, text: str, among: frozenset[str] | None
) -> dict[str, bool]:
    found = retriever.search(text, MOST_RERANKED, among=among)
    apis = [hit.api for hit in found.hits]
    matches = retriever.match(MatchRequest(found.reading.text or text), apis)
    unmatched = (
        max((one.serves for one in matches), default=UNSERVED_LOG_ODDS - 1) < UNSERVED_LOG_ODDS
    )
    return {
        SEARCH: found.nothing_fits,
        MATCHER: unmatched,
        EITHER: found.nothing_fits or unmatched,
    }

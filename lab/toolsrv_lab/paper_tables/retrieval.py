"""Table 2: NDCG of our retriever, of BM25 and of a zero-shot encoder, by instruction type.

Each method on each group of queries is one result of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from toolsrv_lab.evaluation.cells import Cell, CellLog
from toolsrv_lab.paper_tables.published import PAPER_V2, RETRIEVAL
from toolsrv_lab.paper_tables.subsets import TYPES, ordered, subset_of, type_of
from toolsrv_lab.paper_tables.table import AVERAGE, HERE, PaperTable, Provenance, Row, Value
from toolsrv_lab.retrieval.baselines import Scores
from toolsrv_lab.retrieval.evaluation import ALL, Rank, Ranking, SetFigures, evaluate
from toolsrv_lab.retrieval.queries import Query

Corpus = Literal["all", "set"]
AT = (1, 5)
_DEPTH = 100
WORLD = "no calls: APIs are ranked by their documents"


@dataclass(frozen=True, slots=True)
class Method:
    """A way to rank. ``identity`` tells it from others (an encoder's hash); ``open`` readies it."""

    name: str
    identity: str
    open: Callable[[], Rank]


def scored_rank(ids: Sequence[str], scores: Scores) -> Rank:
    """Return the ranking of ``ids`` by their texts' scores, over all or over a pool."""

    def rank(text: str, pool: frozenset[str] | None) -> Ranking:
        found: npt.NDArray[np.float32] = scores(text)
        best = np.argsort(-found, kind="stable")
        kept = (int(at) for at in best if pool is None or ids[at] in pool)
        return [(ids[at], float(found[at])) for at, _ in zip(kept, range(_DEPTH), strict=False)]

    return rank


def by_type(queries: Sequence[Query]) -> dict[str, list[Query]]:
    """Return the queries of each instruction type, or of each set that says none; all together last."""
    groups: dict[str, list[Query]] = {}
    for one in queries:
        groups.setdefault(type_of(subset_of(one)), []).append(one)
    return {name: groups[name] for name in ordered(groups, TYPES)} | {ALL: list(queries)}


def run_methods(
    methods: Sequence[Method],
    groups: Mapping[str, Sequence[Query]],
    known: frozenset[str],
    log: CellLog[SetFigures],
    *,
    corpus: Corpus,
    seed: int,
    progress: Callable[[bool], None] = lambda _fresh: None,
) -> None:
    """Rank what the log lacks; a method of which it lacks nothing is not opened.

    ``progress`` is called after each query of each group with whether it was ranked just now.
    """
    for method in methods:
        cell = cell_of(method, corpus)
        rank: Rank | None = None
        for name, queries in groups.items():
            if log.get(cell, name) is not None:
                for _ in queries:
                    progress(False)
                continue
            rank = rank or _remembered(method.open())
            together = [one.model_copy(update={"set": ALL}) for one in queries]
            found = evaluate(
                together, rank, known, corpus=corpus, seed=seed,
                progress=lambda _done, _total: progress(True),
            )  # fmt: skip
            log.add(cell, name, found.sets.get(ALL) or SetFigures(queries=0, ndcg={}, recall={}))


def _remembered(rank: Rank) -> Rank:
    """Return a ranking that ranks a text once: a query stands in its type's group and among all."""
    known: dict[tuple[str, frozenset[str] | None], Ranking] = {}

    def ranked(text: str, pool: frozenset[str] | None) -> Ranking:
        if (text, pool) not in known:
            known[text, pool] = rank(text, pool)
        return known[text, pool]

    return ranked


def cell_of(method: Method, corpus: Corpus) -> Cell:
    """Return the cell that a method's figures are kept by."""
    return Cell(method.name, method.identity, method.name, corpus)


def retrieval_table(
    methods: Sequence[Method],
    groups: Mapping[str, Sequence[Query]],
    log: CellLog[SetFigures],
    *,
    corpus: Corpus,
    seed: int,
    command: str,
) -> PaperTable:
    """Return Table 2 of what the log has."""
    made = Provenance(command=command, seed=seed, world=WORLD)
    rows = []
    for method in methods:
        cells: dict[str, Value] = {}
        for name in groups:
            one = log.get(cell_of(method, corpus), name)
            if one is None or not one.queries:
                continue
            column = AVERAGE if name == ALL else name
            for at in AT:
                ndcg = one.ndcg[at]
                cells[f"{column} @{at}"] = Value(
                    value=ndcg.mean, low=ndcg.low, high=ndcg.high, of=one.queries, made=made
                )
        rows.append(Row(name=method.name, source=HERE, cells=cells))
    counts = ", ".join(f"{name} {len(some)}" for name, some in groups.items() if name != ALL)
    others = [name for name in groups if name not in (*TYPES, ALL)]
    searched = (
        "all enabled APIs" if corpus == "all" else "the APIs that the set's queries came with"
    )
    return PaperTable(
        number="2",
        title="retrievers, NDCG in per cent",
        columns=tuple(f"{name} @{at}" for name in (*TYPES, *others, AVERAGE) for at in AT),
        rows=(*rows, *RETRIEVAL),
        published=f"{PAPER_V2}, Table 2",
        notes=(
            (
                f"Queries: {counts}. Ranked here: {searched}; in the paper, the APIs of each type's own "
                "data. The average here is over all queries, in the paper over the three types."
            ),
        ),
    )

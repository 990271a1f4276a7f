"""What each part of the search brings: NDCG@5 per set with that part alone, then put together.

All variants order the same candidates of one recall, by one signal, by the plain sum, by the
ranker; so their difference is the order alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from toolsrv_lab.retrieval.metrics import Estimate, estimate, ndcg
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.ranker import Ranker
from toolsrv_registry.retriever import Retriever
from toolsrv_registry.signals import SIGNALS, Floats

Order = Callable[[Floats], Floats]
Progress = Callable[[int, int], None]

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

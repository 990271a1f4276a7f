"""The lists that the ranker learns from: searches whose answers are known."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.sample import groups
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.retrieval.ranking import List
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.recall import Recalled
from toolsrv_registry.registry import Registry
from toolsrv_registry.retriever import Retriever

# So many of the ranker's lists come a second time without vectors.
_BLIND_SHARE = 0.3

Counted = Callable[[int, int], None]


def ranker_lists(
    retriever: Retriever, queries: Sequence[Query], *, seed: int = 0, weight: float = 1.0
) -> Iterator[List]:
    """Yield the judged candidates of each query, and of some a second time by words alone."""
    rng = random.Random(seed)
    for query in queries:
        yield from _list(retriever.recall(query.query), query, weight)
        if rng.random() < _BLIND_SHARE:
            yield from _list(retriever.recall(query.query, words_only=True), query, weight / 2)


def small_lists(*, rounds: int = 2, seed: int = 0, weight: float = 0.5) -> Iterator[List]:
    """Yield lists of searches in the small catalog that ships.

    Ranks and shares mean something else among 170 APIs than among thousands; a ranker that met
    only large catalogs orders a small one worse than no ranker at all.
    """
    catalog = load_offline_catalog()
    rng = random.Random(seed)
    queries = [
        Query(
            query_id=str(at),
            query=compose(members, rng).text,
            relevant=tuple(Named(id=one.id) for one in members),
        )
        for at, members in enumerate(groups(catalog.apis, rounds, rng))
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        Registry.open(Path(folder), [catalog]) as registry,
    ):
        registry.ensure_index()
        yield from ranker_lists(registry.retriever, queries, seed=seed, weight=weight)


def service_lists(
    apis: Sequence[Api],
    queries: Sequence[Query],
    *,
    counted: Counted | None = None,
    seed: int = 0,
    weight: float = 0.5,
) -> Iterator[List]:
    """Yield lists of searches among the operations of many services.

    Documents of real services differ in style from ToolBench's, and their APIs are named by ids: a
    ranker that met only the latter costs points there.
    """
    tools: dict[tuple[str, str], list[Api]] = defaultdict(list)
    for api in apis:
        tools[api.category, api.tool].append(api)
    catalog = Catalog(
        name="services",
        tools=tuple(
            Tool(category=category, name=name, apis=tuple(found))
            for (category, name), found in tools.items()
        ),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Registry.open(Path(folder), [catalog]) as registry,
    ):
        registry.ensure_index(counted)
        yield from ranker_lists(registry.retriever, queries, seed=seed, weight=weight)


def _list(recalled: Recalled, query: Query, weight: float) -> Iterator[List]:
    wanted, places = set(query.relevant_ids), recalled.judged.places
    if len(places):
        needed = np.asarray([recalled.lexicon.ids[at] in wanted for at in places])
        yield List(recalled.judged.signals, needed, weight)

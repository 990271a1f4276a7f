"""The gate: search may not get worse on a fixed catalog with fixed questions.

The catalog is the one that ships, the questions are the 112 development tasks of
``tests/runtime/data``, each with the APIs that serve it. The floors lie two points below what was
measured (NDCG@5 76.2, Recall@5 83.9).
"""

from __future__ import annotations

import json
from pathlib import Path

from toolsrv_lab.retrieval.evaluation import evaluate
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_registry.registry import Registry

TASKS = Path(__file__).parents[1] / "runtime" / "data" / "tasks_dev.jsonl"
NDCG_FLOOR, RECALL_FLOOR = 74.0, 82.0


def questions() -> list[Query]:
    found = []
    for line in TASKS.read_text("utf-8").splitlines():
        task = json.loads(line)
        needed = tuple(Named(id=call["api"]) for call in task["calls"])
        found.append(Query(query_id=task["id"], query=task["task"], relevant=needed))
    return found


def test_search_finds_what_the_development_tasks_need(registry: Registry) -> None:
    known = frozenset(api.id for api in registry.store.apis())
    queries = [query for query in questions() if known.intersection(query.relevant_ids)]
    assert len(queries) == 112
    found = evaluate(queries, lambda text, _: registry.retriever.rank(text), known)
    figures = found.sets["all"]
    assert figures.ndcg[5].mean >= NDCG_FLOOR
    assert figures.recall[5].mean >= RECALL_FLOOR


def test_what_search_shows_is_as_good_as_its_bare_ranking(registry: Registry) -> None:
    hits = needed = 0
    for query in questions():
        wanted = set(query.relevant_ids)
        shown = {hit.api.id for hit in registry.retriever.search(query.query, 5).hits}
        hits += len(wanted & shown)
        needed += len(wanted)
    assert hits / needed >= 0.78

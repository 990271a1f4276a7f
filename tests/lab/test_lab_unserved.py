"""Whether a search tells that nothing fits, and rankings in the order of ``toolsrv search``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.retrieval.evaluation import (
    EITHER,
    MATCHER,
    SEARCH,
    evaluate_unserved,
    with_matcher,
)
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_registry.registry import Registry

ASKED = {
    "How many kilometres are 3 miles?": "Science/unit_converter/convert_units",
    "Is 3 May 2027 a public holiday in Norway?": "Events/public_holidays/is_it_a_holiday",
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The catalog that ships, indexed."""
    with Registry.open(tmp_path_factory.mktemp("data"), [load_offline_catalog()]) as opened:
        opened.ensure_index()
        yield opened


def test_served_queries_are_kept_and_refused_ones_are_counted_by_judge(registry: Registry) -> None:
    queries = [
        Query(query_id=text, query=text, relevant=(Named(id=api_id),))
        for text, api_id in ASKED.items()
    ]
    known = frozenset(api.id for api in registry.store.apis())
    found = evaluate_unserved(registry.retriever, queries, known)
    assert (found.queries, found.apis) == (2, len(known))
    assert list(found.judges) == [SEARCH, MATCHER, EITHER]
    for one in found.judges.values():
        assert (one.served.count, one.served.of, one.removed.of) == (0, 2, 2)
    either = found.judges[EITHER]
    assert either.precision.of == either.removed.count
    assert either.removed.count >= found.judges[MATCHER].removed.count


def test_an_api_that_is_not_among_those_given_is_not_found(registry: Registry) -> None:
    (text, api_id), _ = ASKED.items()
    known = frozenset(api.id for api in registry.store.apis())
    whole = registry.retriever.search(text, 20)
    less = registry.retriever.search(text, 20, among=known - {api_id})
    assert whole.hits[0].api.id == api_id
    assert less.hits
    assert api_id not in {hit.api.id for hit in less.hits}


def test_a_ranking_with_the_matcher_has_the_same_apis_and_the_needed_one_first(
    registry: Registry,
) -> None:
    rank = with_matcher(registry)
    for text, api_id in ASKED.items():
        ranking, plain = rank(text), registry.retriever.rank(text)
        assert ranking[0][0] == api_id
        assert {one for one, _ in ranking} == {one for one, _ in plain}

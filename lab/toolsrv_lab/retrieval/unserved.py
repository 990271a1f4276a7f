"""How well it is told that nothing in the catalogs fits a text.

Each query is searched twice: in all APIs, where its own are, and in all but those of its tools. Two
judges say "nothing fits": the search (``SearchResult.nothing_fits``) and the matcher, whose log-odds
for the best of the first hits are below the threshold of a solve (``coverage.NOTHING``). Precision is
the share of removed ones among those that are refused, both kinds being equally many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.matcher import Asked
from toolsrv_registry.retriever import Retriever
from toolsrv_runtime.agent.candidates import MOST_RERANKED
from toolsrv_runtime.agent.coverage import UNSERVED_LOG_ODDS

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
            for name, refused in _judged(retriever, query.query, among).items():
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


def _judged(retriever: Retriever, text: str, among: frozenset[str] | None) -> dict[str, bool]:
    found = retriever.search(text, MOST_RERANKED, among=among)
    apis = [hit.api for hit in found.hits]
    matches = retriever.match(Asked(found.reading.text or text), apis)
    unmatched = (
        max((one.serves for one in matches), default=UNSERVED_LOG_ODDS - 1) < UNSERVED_LOG_ODDS
    )
    return {
        SEARCH: found.nothing_fits,
        MATCHER: unmatched,
        EITHER: found.nothing_fits or unmatched,
    }

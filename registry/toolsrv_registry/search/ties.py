"""Order of hits with equal scores.

Two hits are tied where they serve the same part of the text, belong to different tools and their
scores differ by less than ``TIE_MARGIN``. Other things, such as price, may order tied hits. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolsrv_registry.search.retriever import Hit

TIE_MARGIN = 0.01
"""Difference of scores that tells nothing: the largest that costs no NDCG@5 (docs/api-search.md)."""

TieOrder = Callable[[Hit], tuple[Any, ...]]


def order_ties(hits: Sequence[Hit], order: TieOrder, margin: float = TIE_MARGIN) -> list[Hit]:
    """Return the hits with each run of equals in their ``order``; all others keep their places."""
    return [hit for run in _tied_runs(hits, margin) for hit in sorted(run, key=order)]


def _tied_runs(hits: Sequence[Hit], margin: float) -> Iterator[list[Hit]]:
    """Yield neighbours that are equals of the first and of each other."""
    run: list[Hit] = []
    for hit in hits:
        if run and not _is_tied(run, hit, margin):
            yield run
            run = []
        run.append(hit)
    if run:
        yield run


def _is_tied(run: Sequence[Hit], hit: Hit, margin: float) -> bool:
    first = run[0]
    return (
        hit.clause == first.clause
        and all(abs(hit.score - one.score) < margin for one in run)
        and all(hit.tool_id != one.tool_id for one in run)
    )

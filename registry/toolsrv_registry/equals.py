"""The order of hits that fit equally well: nothing else tells them apart, so other things may.

Two hits are equals where they serve the same part of the text, belong to different tools and their
scores, probabilities that they are needed, differ by less than ``MARGIN``. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolsrv_registry.retriever import Hit

MARGIN = 0.01
"""Difference of scores that tells nothing: the largest that costs no NDCG@5 (registry/README.md)."""

Order = Callable[[Hit], tuple[Any, ...]]


def equals_ordered(hits: Sequence[Hit], order: Order, margin: float = MARGIN) -> list[Hit]:
    """Return the hits with each run of equals in their ``order``; all others keep their places."""
    return [hit for run in _runs(hits, margin) for hit in sorted(run, key=order)]


def _runs(hits: Sequence[Hit], margin: float) -> Iterator[list[Hit]]:
    """Yield neighbours that are equals of the first and of each other."""
    run: list[Hit] = []
    for hit in hits:
        if run and not _joins(run, hit, margin):
            yield run
            run = []
        run.append(hit)
    if run:
        yield run


def _joins(run: Sequence[Hit], hit: Hit, margin: float) -> bool:
    first = run[0]
    return (
        hit.clause == first.clause
        and all(abs(hit.score - one.score) < margin for one in run)
        and all(hit.tool_id != one.tool_id for one in run)
    )

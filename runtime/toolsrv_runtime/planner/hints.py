"""The compact model's task hints: the search text, and the open needs, by rules about English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.contract.hints import MadeCall
from toolsrv_runtime.planner import ciphers, clues, conversions, costs, counted
from toolsrv_runtime.planner.conversions import CONVERTER
from toolsrv_runtime.planner.formulas import CALCULATOR
from toolsrv_runtime.planner.reading.cards import unquoted
from toolsrv_runtime.planner.reading.idioms import in_plain_words
from toolsrv_runtime.planner.reading.ratios import as_sums
from toolsrv_runtime.planner.unserved import unserved
from toolsrv_runtime.values import arithmetic

MOST_SIGNS = 4
"""Signs of a task that a first search looks for besides: each is one more reading of its hits."""

_QUOTATION = re.compile(r"[\"“][^\"“”]{20,}[\"”]|(?<!\w)'[^']{20,}'(?!\w)")


class PlannerHints:
    """See ``TaskHints``; ``prior`` is the retriever and its matcher."""

    def __init__(self, prior: Reranker) -> None:
        self._prior = prior

    def query(self, task: str) -> str:
        """Return a task in plain words; a long quotation is data and says nothing of needs."""
        return query(task)

    def expansion(self, task: str) -> Sequence[str]:
        """Return what calculators and converters are called, where a task has work for them.

        No document of a calculator says "squared" or "times", none of a converter "hours".
        """
        sums = arithmetic.arithmetic_share(as_sums(task)) or costs.asks(task)
        found = [CALCULATOR] if sums else []
        return [*found, CONVERTER] if conversions.find(task) else found

    def extra_queries(self, task: str) -> Sequence[str]:
        """Return what signs of a task stand for, and the count of days from a feast."""
        found = [clue.question for clue in clues.find(task)]
        found += [ciphers.CIPHER] if ciphers.is_told(task) else []
        feast = counted.find(task)
        found += [feast.question, counted.ADDS] if feast else []
        return found[:MOST_SIGNS]

    def uncovered(
        self, task: str, functions: Sequence[Function], results: Iterable[MadeCall]
    ) -> tuple[str, ...]:
        """Return the needs of a task that no successful call served."""
        return unserved(task, functions, results, self._prior)


def query(task: str) -> str:
    """Return a task as a query: in plain words, without long quotations unless nothing is left."""
    task = in_plain_words(unquoted(task))
    bare = _QUOTATION.sub(" ", task)
    return bare if re.search(r"\w", bare) else task

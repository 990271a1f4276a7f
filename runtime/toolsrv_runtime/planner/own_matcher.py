"""The matcher that the rules were tuned with, for the compact model alone.

The one of the registry has learnt since from functions that no catalog has. With it the rules' own
thresholds no longer hold: of the 176 open tasks they solve 158, with this one 171.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import Match, Matcher, MatchRequest
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApis
from toolsrv_runtime.contract.format import Reranker

OWN_MATCHER = Path(__file__).parents[1] / "models" / "nano.matcher"


@cache
def _matcher() -> Matcher:
    return Matcher(OWN_MATCHER)


class OwnPrior:
    """A prior with the compact model's own matcher in place of the registry's."""

    def __init__(self, prior: Reranker) -> None:
        self._prior = prior

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """See ``Reranker``."""
        return self._prior.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """See ``Reranker``."""
        return self._prior.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """See ``Reranker``."""
        try:
            return _matcher().match(asked, apis)
        except DataError:
            return []


def own_prior(prior: Reranker) -> Reranker:
    """Return a prior with the compact model's own matcher, itself where it has it already."""
    return prior if isinstance(prior, OwnPrior) else OwnPrior(prior)


class OwnFinder(OwnPrior):
    """A finder with the compact model's own matcher in place of the registry's."""

    def __init__(self, finder: ApiRetriever) -> None:
        super().__init__(finder)
        self._finder = finder

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """See ``ApiRetriever``."""
        return self._finder.search(text, limit, category=category)

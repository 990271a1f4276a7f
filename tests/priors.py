"""What stands in for the retriever where only the matcher's word is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Match, Matcher, MatchRequest
from toolsrv_runtime.planner.own_matcher import OWN_MATCHER

MATCHER = Matcher()
OWN = Matcher(OWN_MATCHER)


class Shipped:
    """The matcher that ships; a retriever that knows nothing."""

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        del text
        return [0.0] * len(apis)

    similarities = scores

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        return MATCHER.match(asked, apis)


class Tuned(Shipped):
    """The same with the matcher that the rules were tuned with."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        return OWN.match(asked, apis)


class Silent(Shipped):
    """One whose files cannot be used."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        del asked, apis
        return []

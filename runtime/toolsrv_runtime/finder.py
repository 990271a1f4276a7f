"""The retriever as a solve uses it, and a task as a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Asked, Match
from toolsrv_runtime.planner.reading.cards import unquoted
from toolsrv_runtime.planner.reading.idioms import in_plain_words

_QUOTATION = re.compile(r"[\"“][^\"“”]{20,}[\"”]|(?<!\w)'[^']{20,}'(?!\w)")


class Found(Protocol):
    """One search hit."""

    @property
    def api(self) -> Api:
        """What was found."""

    @property
    def score(self) -> float:
        """How well it fits; higher is better."""

    @property
    def clause(self) -> str:
        """The part of the text that it fits best."""


class FoundList(Protocol):
    """What a search gives."""

    @property
    def hits(self) -> Sequence[Found]:
        """The hits, best first."""

    @property
    def nothing_fits(self) -> bool:
        """Whether even the best hit is likely unrelated."""

    @property
    def nearest_categories(self) -> Sequence[str]:
        """Where the closest APIs lie."""

    @property
    def dead_left_out(self) -> int:
        """How many APIs were left out because they failed when last checked."""

    @property
    def need_consent(self) -> Sequence[str]:
        """Ids of better APIs than the first hit that nobody can be asked about."""

    @property
    def language(self) -> str:
        """English name of the text's language, "" for English and where too little tells."""


class Finder(Protocol):
    """The retriever as a solve uses it."""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> FoundList:
        """Return the APIs that fit ``text``, best first."""

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def likeness(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: Asked, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values.

        Empty where the matcher cannot be used.
        """


def query(task: str) -> str:
    """Return a task as a query: a long quotation is data to work on and says nothing of needs."""
    task = in_plain_words(unquoted(task))
    bare = _QUOTATION.sub(" ", task)
    return bare if re.search(r"\w", bare) else task

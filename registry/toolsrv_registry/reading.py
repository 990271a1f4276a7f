"""A text as a search reads it: misspelt words put right, another language put into English.

Joins ``spelling`` and ``foreign`` with the words of one store, and keeps what they need. The
result says what was changed, so that whoever asked can be told.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolsrv_registry import foreign
from toolsrv_registry.shelf import Shelf
from toolsrv_registry.spelling import Frequency, Speller, english_words, replaced, suspects

# A word that one in so many APIs has is usual enough to be meant.
_APIS_A_USE = 2_000
# One that one in so many has says nothing of a language: "calculator".
_APIS_A_PLAIN_USE = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """What is searched for a text: ``text`` is the query, perhaps changed.

    ``corrected`` are (word as written, word searched). ``language`` is the English name of the
    text's language when that is not English; ``translated`` says whether anything of it that asks
    for something could be put into English.
    """

    text: str
    corrected: tuple[tuple[str, str], ...] = field(default=())
    language: str = ""
    translated: bool = False

    @property
    def unread(self) -> bool:
        """Whether nothing of a text in another language could be read."""
        return bool(self.language) and not self.translated


class Reader:
    """Reads texts with the words of one store. Thread-safe."""

    def __init__(self, shelf: Shelf, frequency: Frequency) -> None:
        self._shelf = shelf
        self._frequency = frequency
        self._lock = threading.Lock()
        self._kept: _Vocabulary | None = None

    def read(self, query: str) -> Reading:
        """Return what to search for a query; the query itself when nothing is to be changed."""
        language = None
        if english_words():
            language = foreign.detect(query, self._is_english, self._is_named)
        if language is not None:
            said = self._searchable(foreign.gloss(query, language))
            said = said if foreign.asks(said, language) else ""
            return Reading(said or query, (), language.name, translated=bool(said))
        if next(suspects(query), None) is None:
            return Reading(query)
        corrections = self._vocabulary().speller.corrections(query)
        return Reading(replaced(query, corrections), tuple(corrections.items()))

    def load(self) -> None:
        """Read the catalogs' words now rather than with the first text that needs them."""
        self._vocabulary()

    def _is_english(self, word: str) -> bool:
        """Say whether a word is English, or so usual in the catalogs that it tells as little."""
        if word in english_words():
            return True
        vocabulary = self._vocabulary()
        return vocabulary.counts.get(word, 0) > vocabulary.commonest // _APIS_A_PLAIN_USE

    def _is_named(self, word: str) -> bool:
        return word in self._vocabulary().names

    def _searchable(self, said: str) -> str:
        """Return a gloss without words of other alphabets that no API has."""
        kept = (
            word
            for word in said.split()
            if max(word) < _LATIN_END or self._frequency(word.strip(";"))
        )
        return " ".join(kept).strip("; ")

    def _vocabulary(self) -> _Vocabulary:
        names = self._shelf.names()
        with self._lock:
            if self._kept is None or self._kept.names is not names:
                self._kept = _vocabulary(names, self._shelf.counts())
            return self._kept


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The words of one state of a store; the commonest one stands in nearly every API."""

    names: frozenset[str]
    counts: Mapping[str, int]
    commonest: int
    speller: Speller


def _vocabulary(names: frozenset[str], counts: Mapping[str, int]) -> _Vocabulary:
    commonest = max(counts.values(), default=0)
    least = max(1, commonest // _APIS_A_USE)
    speller = Speller(names, lambda word: counts.get(word, 0), foreign.english_of, least)
    return _Vocabulary(names, counts, commonest, speller)


_LATIN_END = "\u0250"

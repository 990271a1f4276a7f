"""A text as a search reads it: misspelt words put right, another language put into English.

Joins ``spelling`` and ``foreign`` with the words of one store, and keeps what they need. The
result says what was changed, so that whoever asked can be told.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import lru_cache

from toolsrv_registry import foreign
from toolsrv_registry.shelf import Shelf
from toolsrv_registry.spelling import Frequency, Speller, english_words, replaced

_KEPT = 4_096


@dataclass(frozen=True, slots=True)
class Reading:
    """What is searched for a text: ``text`` is the query, perhaps changed.

    ``corrected`` are (word as written, word searched). ``language`` is the English name of the
    text's language when that is not English; ``translated`` says whether anything of it could be
    put into English.
    """

    text: str
    corrected: tuple[tuple[str, str], ...] = field(default=())
    language: str = ""
    translated: bool = False


class Reader:
    """Reads texts with the words of one store. Thread-safe."""

    def __init__(self, shelf: Shelf, frequency: Frequency) -> None:
        self._shelf = shelf
        self._frequency = frequency
        self._lock = threading.Lock()
        self._speller: tuple[frozenset[str], Speller] | None = None

    def read(self, query: str) -> Reading:
        """Return what to search for a query; the query itself when nothing is to be changed."""
        english = english_words()
        language = foreign.detect(query, english.__contains__) if english else None
        if language is not None:
            said = self._searchable(foreign.gloss(query, language))
            return Reading(said or query, (), language.name, translated=bool(said))
        corrections = self._present_speller().corrections(query)
        return Reading(replaced(query, corrections), tuple(corrections.items()))

    def _searchable(self, said: str) -> str:
        """Return a gloss without words of other alphabets that no API has."""
        kept = (
            word
            for word in said.split()
            if max(word) < _LATIN_END or self._frequency(word.strip(";"))
        )
        return " ".join(kept).strip("; ")

    def _present_speller(self) -> Speller:
        names = self._shelf.names()
        with self._lock:
            if self._speller is None or self._speller[0] is not names:
                kept = lru_cache(maxsize=_KEPT)(self._frequency)
                self._speller = (names, Speller(names, kept, foreign.english_of))
            return self._speller[1]


_LATIN_END = "\u0250"

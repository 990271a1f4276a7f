"""What is known of other languages: their small words, and a glossary of what APIs are about.

Reads the two files in ``foreign_words/`` once (some 170 notions in eight languages). Forms are
kept without case and accents. Pure but for that; knows nothing about whole texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "foreign_words"
LONGEST_PHRASE = 4
_SHORTEST_PREFIX = 3
_DENSE = {"zh": "Chinese", "ja": "Japanese"}


@dataclass(frozen=True, slots=True)
class Language:
    """A language by code (empty where there is no glossary) and English name."""

    code: str
    name: str


@dataclass(slots=True)
class Lexicon:
    """What is known of one language; all forms without case and accents."""

    name: str = ""
    joining: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    exact: dict[tuple[str, ...], str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    phrases: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def knows(self, word: str) -> bool:
        """Say whether a word alone means something."""
        return bool(self.meaning((word,))[0])

    def meaning(self, tokens: Sequence[str]) -> tuple[str, int]:
        """Return what the beginning of the tokens means and how many it takes; ``("", 1)``."""
        for length in range(min(LONGEST_PHRASE, len(tokens)), 0, -1):
            found = self.exact.get(tuple(tokens[:length]))
            if found:
                return found, length
        for phrase, found in self.phrases:
            if len(phrase) <= len(tokens) and all(map(_begins, tokens, phrase)):
                return found, len(phrase)
        beginning = self._beginning(tokens[0])
        return (self.prefixes[beginning], 1) if beginning else ("", 1)

    def form(self, word: str) -> str:
        """Return the form by which a word alone is known, perhaps its beginning; "" for none."""
        return word if (word,) in self.exact else self._beginning(word)

    def _beginning(self, word: str) -> str:
        lengths = range(len(word), _SHORTEST_PREFIX - 1, -1)
        return next((word[:length] for length in lengths if word[:length] in self.prefixes), "")


def folded(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


@lru_cache(maxsize=1)
def lexicons() -> dict[str, Lexicon]:
    """Return what is known of each language, by its code."""
    lexicons = {code: Lexicon(name=name) for code, name in _DENSE.items()}
    for code, name, joining, others in _rows("stop_words.tsv")[1:]:
        joins = {folded(word) for word in joining.split()}
        small = {folded(word) for word in others.split()}
        # A question mark stands at words that are also English.
        telling = {word for word in joins | small if not word.endswith("?") and len(word) > 1}
        dropped = {word.rstrip("?") for word in small}
        lexicons[code] = Lexicon(name, frozenset(joins), frozenset(telling), frozenset(dropped))
    rows = _rows("glossary.tsv")
    for row in rows[1:]:
        for code, forms in zip(rows[0][1:], row[1:], strict=True):
            for form in forms.split(","):
                _learn(lexicons[code], form, row[0], dense=code in _DENSE)
    return lexicons


def _learn(lexicon: Lexicon, form: str, meaning: str, *, dense: bool) -> None:
    if dense:
        lexicon.exact.setdefault((form,), meaning)
        return
    pieces = tuple(re.findall(r"[^\W\d_]+\*?", folded(form)))
    if len(pieces) == 1 and form.endswith("*"):
        lexicon.prefixes.setdefault(pieces[0][:-1], meaning)
        lexicon.exact.setdefault((pieces[0][:-1],), meaning)
    elif form.find("*") >= 0:
        lexicon.phrases.append((pieces, meaning))
    else:
        lexicon.exact.setdefault(pieces, meaning)


def _rows(name: str) -> list[list[str]]:
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


def _begins(token: str, form: str) -> bool:
    return token.startswith(form[:-1]) if form.endswith("*") else token == form

"""Misspelt words of a text, put right by words that the catalogs have.

A word is looked at when it is no English word, no catalog word and no name as far as its letters
tell; it is corrected to a word at a small distance (insertions, deletions, replacements and
swaps of neighbours) that the catalogs use. Which words there are is told from outside; pure but
for the English words, which are the whole words among the shipped encoder's tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from toolsrv_registry.encoder import SHIPPED_ENCODER
from toolsrv_registry.words import STOP_WORDS

_WORD = re.compile(r"(?<![\w@#/.:-])[A-Za-z]{4,24}(?![\w@/:-])")
_PLAIN = re.compile(r"[a-z]{3,24}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n])[\s\"'(]*$")
# One edit, or two in a long word.
_LONG = 8
# A word that the catalogs have is taken for a slip only when another is so much more usual.
_RARER = 20
_LOOKED_UP = 12
_ENDING_TEXT = "s es ed d er ers r ing ings ly y en ness less able ist ists ies ied ful"
_ENDINGS = tuple(_ENDING_TEXT.split())
_LEAST_STEM = 3
_VOWELS = frozenset("aeiouy")
# A text with many unknown words is not misspelt but of another kind.
_CORRECTED = 6

Frequency = Callable[[str], int]


class Speller:
    """Corrects words of one vocabulary. Thread-safe; O(words with the same first letter)."""

    def __init__(
        self,
        names: Iterable[str],
        frequency: Frequency,
        english_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Take the words of the catalogs' names, and how often the catalogs have any word.

        ``english_of`` knows words of other languages; "" for others.
        """
        self._names = frozenset(names)
        self._frequency = frequency
        self._english_of = english_of
        self._by_letter: dict[str, list[str]] = {}
        for word in sorted(english_words() | {n for n in self._names if _PLAIN.fullmatch(n)}):
            if word not in STOP_WORDS:
                self._by_letter.setdefault(word[0], []).append(word)

    def corrections(self, text: str) -> dict[str, str]:
        """Return the misspelt words of a text, as they stand there, with what they should be."""
        found: dict[str, str] = {}
        shouting = text.isupper()
        for match in _WORD.finditer(text):
            written = match.group()
            if written in found or not (shouting or _ordinary(written, text[: match.start()])):
                continue
            if right := self.corrected(written.lower()):
                found[written] = right
            if len(found) == _CORRECTED:
                break
        return found

    def corrected(self, word: str) -> str:
        """Return what a lower-case word is a slip of, or means in English; "" when it is neither."""
        if word in self._names or _is_english(word):
            return ""
        known = self._frequency(word)
        if not known and (meant := self._english_of(word)):
            return meant
        near = self._near(word)
        if not near:
            return ""
        usual = max(near, key=self._frequency)
        return usual if self._frequency(usual) > _RARER * known else ""

    def _near(self, word: str) -> list[str]:
        """Return the nearest words that one may have meant, all at the same distance."""
        from rapidfuzz.distance import OSA  # noqa: PLC0415 - only a misspelt text needs it
        from rapidfuzz.process import extract  # noqa: PLC0415

        words = self._by_letter.get(word[0], [])
        most = 2 if len(word) >= _LONG else 1
        rows = extract(word, words, scorer=OSA.distance, score_cutoff=most, limit=None)
        slips = [(near, int(far)) for near, far, _ in rows if _slip(word, near, int(far))]
        least = min((far for _, far in slips), default=0)
        return [near for near, far in slips if far == least][:_LOOKED_UP]


def replaced(text: str, corrections: dict[str, str]) -> str:
    """Return a text with its misspelt words put right."""
    if not corrections:
        return text
    return _WORD.sub(lambda match: corrections.get(match.group(), match.group()), text)


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Return some 20,000 English words and names; none where the encoder's files are damaged."""
    try:
        loaded = json.loads((SHIPPED_ENCODER / "tokenizer.json").read_text("utf-8"))
        tokens = loaded["model"]["vocab"]
        return frozenset(token for token in tokens if _PLAIN.fullmatch(token))
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def _is_english(word: str) -> bool:
    """Say whether a word, or what is left without a common ending, is English."""
    known = english_words()
    if word in known or word in STOP_WORDS:
        return True
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= _LEAST_STEM:
            if rest in known or f"{rest}e" in known or f"{rest}y" in known:
                return True
            if rest[-1] == rest[-2] and rest[:-1] in known:
                return True
    return False


def _slip(word: str, near: str, distance: int) -> bool:
    """Say whether one word is likely a slip of the other and not a word of its own.

    Fingers leave out, double and swap letters, and ears mistake vowels; a replaced consonant or
    ending mostly makes another word ("honed" is not "hoped").
    """
    lost = Counter(near) - Counter(word)
    added = Counter(word) - Counter(near)
    if not lost or not added:
        return True
    if word[-2:] != near[-2:]:
        return False
    vowels = set(lost) | set(added) <= _VOWELS
    return vowels or (distance == 1 and len(word) >= _LONG)


def _ordinary(written: str, before: str) -> bool:
    """Say whether a word is written as no name or code would be."""
    if written.islower():
        return True
    return written.istitle() and bool(_SENTENCE_START.search(before[-8:]))

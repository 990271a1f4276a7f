"""Query normalization: correct misspelt words, and translate other languages into English.

The words of the catalogs and of the encoder's vocabulary decide what is misspelt. The query stays
as it is where nothing has to change.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from toolsrv_registry import languages
from toolsrv_registry.encoder import SHIPPED_ENCODER
from toolsrv_registry.search.labels import ApiLabels
from toolsrv_registry.words import STOP_WORDS

_WORD = re.compile(r"(?<![\w@#/.:-])[A-Za-z]{4,24}(?![\w@/:-])")
_PLAIN = re.compile(r"[a-z]{3,24}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n])[\s\"'(]*$")
# One edit, or two in a long word.
_LONG = 8
# A word that the catalogs have, seldom, is taken for a slip only when it is no short one (codes and
# brands mostly are) and another is so much more usual; less of it where a long English word is
# meant.
_SELDOM, _LEAST_KNOWN = 8, 6
_RARER, _RARER_LONG = 20, 2
# A word is put right by one that the catalogs hardly have only when it is long, the word is usual
# English, and vowels alone differ: "definately".
_SURE_LENGTH, _USUAL_ENGLISH = 9, 12_000
_LOOKED_UP = 12
# Two usual words in one are a word: "headset".
_USUAL_PART, _LEAST_HEAD, _LEAST_TAIL = 8_000, 4, 3
# A short word has many neighbours: "bake" is no slip of "bike", nor "carve" of "care".
_SHORT, _SHORTEST = 5, 4
# What is written as it sounds, farther from the word than a slip: "flite", "fone".
_SOUNDS = (
    (re.compile(r"ite(s?)$"), r"ight\1"),
    (re.compile(r"^f"), "ph"),
)
_ENDING_TEXT = "s es ed d er ers r or ors ing ings ly y en ness less able ist ists ful"
_ENDINGS = tuple(_ENDING_TEXT.split())
# What the British write with s: "analyser", "organise".
_BRITISH = re.compile(r"(?<=[iy])s(?=[aei])")
# Endings in which a final y has become an i.
_TURNED_ENDINGS = ("ies", "ied", "ier", "iers", "iest", "ily", "iness")
_LEAST_STEM = 3
_VOWELS = frozenset("aeiouy")
# Endings that sound alike: "calender".
_ALIKE = frozenset({"ar", "er", "or"})
# A text with many unknown words is not misspelt but of another kind.
_CORRECTED = 6
_KEPT = 4_096

Frequency = Callable[[str], int]


class Speller:
    """Corrects words of one vocabulary. Thread-safe; O(words with the same first letter)."""

    def __init__(
        self,
        names: Iterable[str],
        frequency: Frequency,
        english_of: Callable[[str], str] = lambda _: "",
        least: int = 1,
    ) -> None:
        """Take the words of the catalogs' names, and how often the catalogs have any word.

        ``english_of`` knows words of other languages; "" for others. A word is put right only by
        one that the catalogs have ``least`` times.
        """
        self._frequency = frequency
        self._english_of = english_of
        self._by_letter: dict[str, list[str]] = {}
        ranks = _english_ranks()
        for word in sorted(ranks.keys() | {name for name in names if _PLAIN.fullmatch(name)}):
            usual = len(word) >= _SURE_LENGTH and ranks.get(word, _USUAL_ENGLISH) < _USUAL_ENGLISH
            if word not in STOP_WORDS and (usual or frequency(word) >= least):
                self._by_letter.setdefault(word[0], []).append(word)
        self._least = least

    def corrections(self, text: str) -> dict[str, str]:
        """Return the misspelt words of a text, as they stand there, with what they should be."""
        found: dict[str, str] = {}
        for written in suspect_words(text):
            if right := self.corrected(written.lower()):
                found[written] = right
            if len(found) == _CORRECTED:
                break
        return found

    def corrected(self, word: str) -> str:
        """Return what a lower-case word is a slip of, or means in English; "" when it is neither."""
        if _is_right(word):
            return ""
        known = self._frequency(word)
        if known and (known > _SELDOM or len(word) < _LEAST_KNOWN):
            return ""
        if not known and (meant := self._english_of(word) or self._sounding(word)):
            return meant
        near = self._near(word, known)
        if not near:
            return ""
        usual = max(near, key=self._frequency)
        long = len(word) >= _LONG and _english_ranks().get(usual, _USUAL_ENGLISH) < _USUAL_ENGLISH
        rarer = _RARER_LONG if long else _RARER
        return usual if max(self._frequency(usual), 1) > rarer * known else ""

    def _sounding(self, word: str) -> str:
        """Return the word of the catalogs that sounds like one that is none; "" for none."""
        for pattern, spelt in _SOUNDS:
            near = pattern.sub(spelt, word)
            if near != word and near in self._by_letter.get(near[0], ()):
                return near
        return ""

    def _near(self, word: str, known: int) -> list[str]:
        """Return the nearest words that one may have meant, all at the same distance."""
        from rapidfuzz.distance import OSA  # noqa: PLC0415 - only a misspelt text needs it
        from rapidfuzz.process import extract  # noqa: PLC0415

        words = self._by_letter.get(word[0], [])
        most = 2 if len(word) >= _LONG and not known else 1
        rows = extract(word, words, scorer=OSA.distance, score_cutoff=most, limit=None)
        slips = [
            (near, int(far))
            for near, far, _ in rows
            if near != word
            and not _inflected(word, near)
            and _slip(word, near, int(far))
            and not (known and _extra(word, near))
            and not (len(word) <= _SHORT and _another_short(word, near))
            and (self._frequency(near) >= self._least or _vowels_alone(word, near))
        ]
        least = min((far for _, far in slips), default=0)
        return [near for near, far in slips if far == least][:_LOOKED_UP]


def suspect_words(text: str) -> Iterator[str]:
    """Yield the words of a text, as they stand there, that are no English and no names."""
    shouting = text.isupper()
    seen = set()
    for match in _WORD.finditer(text):
        written = match.group()
        if written in seen or not (shouting or _ordinary(written, text[: match.start()])):
            continue
        seen.add(written)
        if not _is_right(written.lower()):
            yield written


def replace_words(text: str, corrections: dict[str, str]) -> str:
    """Return a text with its misspelt words put right."""
    if not corrections:
        return text
    return _WORD.sub(lambda match: corrections.get(match.group(), match.group()), text)


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Return some 20,000 English words and names; none where the encoder's files are damaged."""
    return frozenset(_english_ranks())


def is_english(word: str) -> bool:
    """Say whether a lower-case word is English, or is with a common ending more or less."""
    known = english_words()
    if word in STOP_WORDS or _is_word(word, known):
        return True
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= _LEAST_STEM:
            if _is_word(rest, known) or _is_word(f"{rest}e", known):
                return True
            if rest[-1] == rest[-2] and rest[:-1] in known:
                return True
    return any(
        len(word) >= len(ending) + _LEAST_STEM and f"{word.removesuffix(ending)}y" in known
        for ending in _TURNED_ENDINGS
        if word.endswith(ending)
    )


def _is_word(word: str, known: frozenset[str]) -> bool:
    """Say whether a word is known, or is by its past or its participle: "bake" by "baked".

    Those of "update" make no word of "updat", nor those of "model" one of "modell".
    """
    if word in known:
        return True
    if word.endswith("e"):
        return f"{word}d" in known
    doubled = word + word[-1:]
    if f"{word}e" in known or doubled in known or (word[-1:] == word[-2:-1] and word[:-1] in known):
        return False
    return any(f"{stem}{end}" in known for stem in (word, doubled) for end in ("ed", "ing"))


@lru_cache(maxsize=1)
def _english_ranks() -> dict[str, int]:
    """Return the English words with their places in the encoder's list: usual words come first."""
    try:
        loaded = json.loads((SHIPPED_ENCODER / "tokenizer.json").read_text("utf-8"))
        tokens = loaded["model"]["vocab"]
        return {token: rank for token, rank in tokens.items() if _PLAIN.fullmatch(token)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


@lru_cache(maxsize=_KEPT)
def _is_right(word: str) -> bool:
    return is_english(word) or is_english(_BRITISH.sub("z", word)) or _is_compound(word)


def _is_compound(word: str) -> bool:
    """Say whether a word, perhaps in the plural, is two usual English words in one."""
    ranks = _english_ranks()
    return any(
        ranks.get(one[:at], _USUAL_PART) < _USUAL_PART
        and ranks.get(one[at:], _USUAL_PART) < _USUAL_PART
        and not {one[:at], one[at:]} & STOP_WORDS
        for one in dict.fromkeys((word, word.removesuffix("s")))
        for at in range(_LEAST_HEAD, len(one) - _LEAST_TAIL + 1)
    )


def _vowels_alone(word: str, near: str) -> bool:
    """Say whether two words differ in vowels alone."""
    lost, added = Counter(near) - Counter(word), Counter(word) - Counter(near)
    return set(lost) | set(added) <= _VOWELS


def _inflected(word: str, near: str) -> bool:
    """Say whether one of two words is the other with an ending."""
    longer, shorter = (word, near) if len(word) > len(near) else (near, word)
    return longer.startswith(shorter) and longer[len(shorter) :] in _ENDINGS


def _extra(word: str, near: str) -> bool:
    """Say whether a word is another with a letter more than slips add: a name, another language."""
    if len(word) != len(near) + 1:
        return False
    at = next((at for at in range(len(near)) if word[at] != near[at]), len(near))
    if word[at + 1 :] != near[at:]:
        return False
    return at == len(near) or (word[at] not in _VOWELS and word[at] != word[at - 1])


def _another_short(word: str, near: str) -> bool:
    """Say whether a short word is rather one of its own than a slip of a near one.

    Slips leave letters out, swap and double them; in the shortest no letter is a mistaken one.
    """
    if len(near) < _SHORTEST:
        return True
    if len(word) == len(near):
        return len(word) == _SHORTEST and sorted(word) != sorted(near)
    doubled = any(one == other for one, other in pairwise(word))
    return not doubled and _extra(word, near)


def _slip(word: str, near: str, distance: int) -> bool:
    """Say whether one word is likely a slip of the other and not a word of its own.

    Fingers leave out, double and swap letters, and ears mistake vowels; a replaced consonant or
    ending mostly makes another word ("honed" is not "hoped").
    """
    lost = Counter(near) - Counter(word)
    added = Counter(word) - Counter(near)
    if not lost or not added:
        return True
    if word[-2:] != near[-2:] and not (word[-2:] in _ALIKE and near[-2:] in _ALIKE):
        return False
    return _vowels_alone(word, near) or (distance == 1 and len(word) >= _LONG)


def _ordinary(written: str, before: str) -> bool:
    """Say whether a word is written as no name or code would be."""
    if written.islower():
        return True
    return written.istitle() and bool(_SENTENCE_START.search(before[-8:]))


# A word that one in so many APIs has is usual enough to be meant.
_APIS_A_USE = 2_000
# One that one in so many has says nothing of a language: "calculator".
_APIS_A_PLAIN_USE = 300


@dataclass(frozen=True, slots=True)
class SearchQuery:
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


class QueryReader:
    """Reads texts with the words of one store. Thread-safe."""

    def __init__(self, labels: ApiLabels, frequency: Frequency) -> None:
        self._labels = labels
        self._frequency = frequency
        self._lock = threading.Lock()
        self._kept: _Vocabulary | None = None

    def read(self, query: str) -> SearchQuery:
        """Return what to search for a query; the query itself when nothing is to be changed."""
        language = None
        if english_words():
            language = languages.detect(query, self._is_english, self._is_named)
        if language is not None:
            said = self._searchable(languages.gloss(query, language))
            said = said if languages.has_content(said, language) else ""
            return SearchQuery(said or query, (), language.name, translated=bool(said))
        if next(suspect_words(query), None) is None:
            return SearchQuery(query)
        corrections = self._vocabulary().speller.corrections(query)
        return SearchQuery(replace_words(query, corrections), tuple(corrections.items()))

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
        names = self._labels.names()
        with self._lock:
            if self._kept is None or self._kept.names is not names:
                self._kept = _make_vocabulary(names, self._labels.counts())
            return self._kept


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The words of one state of a store; the commonest one stands in nearly every API."""

    names: frozenset[str]
    counts: Mapping[str, int]
    commonest: int
    speller: Speller


def _make_vocabulary(names: frozenset[str], counts: Mapping[str, int]) -> _Vocabulary:
    commonest = max(counts.values(), default=0)
    least = max(1, commonest // _APIS_A_USE)
    speller = Speller(names, lambda word: counts.get(word, 0), languages.english_word, least)
    return _Vocabulary(names, counts, commonest, speller)


_LATIN_END = "\u0250"

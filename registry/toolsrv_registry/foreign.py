"""Texts in other languages than the catalog's English: which language, and what it means.

``detect`` names a text's language from its script and its small words; ``gloss`` says in English
as much as a small glossary can: the nouns and verbs that APIs are about (``foreign_words/``, some
170 notions in eight languages), with names and numbers kept. It is no translation: enough to
bring the right APIs up, and the search says what it took the text for.

Pure but for reading its two files once; knows nothing about APIs or searching.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from toolsrv_registry.words import STOP_WORDS

_FOLDER = Path(__file__).parent / "foreign_words"
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,:]\d+)*|[.,;:!?]")
_QUOTED = re.compile(r"[\"“«„][^\"“”«»„]*[\"”»“]|[「『][^」』]*[」』]")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_DENSE_TOKEN = re.compile(rf"[{_HAN}\u3040-\u30ff]|[A-Za-z0-9][\w.:-]*|[。！？；，、.,;!?]")
_LONGEST_PHRASE = 4
_LONGEST_RUN = 8
_SHORTEST_PREFIX = 3
_CUT = "; "
_ENDS, _PAUSES = frozenset(".;!?。！？；"), frozenset(",:，、")

# Scripts that tell the language, or a name for all that write in it; the first that fits. Japanese
# mixes its syllables with Han, so a smaller share tells.
_SCRIPTS = (
    ("ja", "Japanese", "\u3040-\u30ff"),
    ("zh", "Chinese", _HAN),
    ("ko", "Korean", "\uac00-\ud7af\u1100-\u11ff"),
    ("ru", "Russian", "\u0400-\u04ff"),
    ("", "Greek", "\u0370-\u03ff"),
    ("", "Arabic", "\u0600-\u06ff"),
    ("", "Hebrew", "\u0590-\u05ff"),
    ("", "Hindi", "\u0900-\u097f"),
    ("", "Thai", "\u0e00-\u0e7f"),
)
_IN_SCRIPT = tuple((code, name, re.compile(f"[{chars}]")) for code, name, chars in _SCRIPTS)
_LETTER = re.compile(r"[^\W\d_]")
_SCRIPT_SHARE = 0.3

IsEnglish = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Language:
    """A language by code (empty where there is no glossary) and English name."""

    code: str
    name: str


@dataclass(slots=True)
class _Lexicon:
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
        for length in range(min(_LONGEST_PHRASE, len(tokens)), 0, -1):
            found = self.exact.get(tuple(tokens[:length]))
            if found:
                return found, length
        for phrase, found in self.phrases:
            if len(phrase) <= len(tokens) and all(map(_begins, tokens, phrase)):
                return found, len(phrase)
        token = tokens[0]
        for length in range(len(token), _SHORTEST_PREFIX - 1, -1):
            if token[:length] in self.prefixes:
                return self.prefixes[token[:length]], 1
        return "", 1


def detect(text: str, is_english: IsEnglish) -> Language | None:
    """Return the language of a text, or None for English and where too little tells.

    What stands in quotation marks is data and does not count, unless there is nothing else.
    ``is_english`` knows single lower-case words.
    """
    bare = _QUOTED.sub(" ", text)
    text = bare if _LETTER.search(bare) else text
    return _by_script(text) or _by_words(text, is_english)


def gloss(text: str, language: Language) -> str:
    """Return in English what is understood of a text, one clause per need; "" for nothing.

    Names, numbers and words that the glossary lacks stay as they are; small words go.
    """
    lexicon = _lexicons().get(language.code)
    if lexicon is None:
        kept = re.findall(r"[A-Za-z0-9][\w.:-]*", text)
        return " ".join(kept)
    said = _dense(text, lexicon) if language.code in ("zh", "ja") else _spaced(text, lexicon)
    return re.sub(r"[\s;]*;[\s;]*", _CUT, " ".join(said)).strip("; ")


def english_of(word: str) -> str:
    """Return what a single foreign word means, in whichever language has it; "" for none."""
    folded = (_folded(word),)
    for lexicon in _lexicons().values():
        if found := lexicon.exact.get(folded):
            return found
    return ""


def _by_script(text: str) -> Language | None:
    letters = len(_LETTER.findall(text))
    for code, name, pattern in _IN_SCRIPT if not text.isascii() else ():
        if len(pattern.findall(text)) > _SCRIPT_SHARE * letters:
            return Language(code, name)
    return None


def _by_words(text: str, is_english: IsEnglish) -> Language | None:
    """Compare a text's words with each language's small words and notions, and with English."""
    tokens = [token.casefold() for token in _TOKEN.findall(text) if token[0].isalpha()]
    folded = [_folded(token) for token in tokens]
    best, most = "", 0
    for code, lexicon in _lexicons().items():
        small = sum(word in lexicon.telling for word in folded)
        if not small and len(folded) > _LONGEST_PHRASE:
            continue
        notions = sum(
            word not in lexicon.telling and not is_english(token) and lexicon.knows(word)
            for token, word in zip(tokens, folded, strict=True)
        )
        if small + notions > most:
            best, most = code, small + notions
    if not best:
        return None
    lexicon = _lexicons()[best]
    rest = [
        token
        for token, word in zip(tokens, folded, strict=True)
        if not (word in lexicon.telling or lexicon.knows(word))
    ]
    plain = sum(token in STOP_WORDS for token in rest)
    # A list of English words holds many names and foreign words too, so these count half.
    english = plain + sum(is_english(token) and token not in STOP_WORDS for token in rest) / 2
    told = most > english and (most > 1 or not english)
    return Language(best, lexicon.name) if told else None


def _spaced(text: str, lexicon: _Lexicon) -> Iterator[str]:
    written = _TOKEN.findall(text)
    folded = [_folded(word) for word in written]
    at = 0
    while at < len(written):
        meaning, length = lexicon.meaning(folded[at : at + _LONGEST_PHRASE])
        if meaning:
            yield meaning
        elif folded[at] in _ENDS or folded[at] in lexicon.joining:
            yield ";"
        elif folded[at] not in lexicon.dropped and folded[at] not in _PAUSES:
            yield written[at]
        at += length


def _dense(text: str, lexicon: _Lexicon) -> Iterator[str]:
    """Read a script without spaces: the longest known run of characters at each place."""
    units = _DENSE_TOKEN.findall(text)
    mixed = lexicon.name == "Japanese"
    at = 0
    while at < len(units):
        unit = units[at]
        length = 1
        if unit.isascii() and unit[0].isalnum():
            yield unit
        elif unit in _ENDS:
            yield ";"
        else:
            for length in range(min(_LONGEST_RUN, len(units) - at), 0, -1):
                found = lexicon.exact.get(("".join(units[at : at + length]),))
                if found and not (mixed and length == 1 and _beside_han(units, at)):
                    yield found
                    break
        at += length


def _beside_han(units: Sequence[str], at: int) -> bool:
    """Say whether a character is part of a longer word of Han characters."""
    beside = [*units[max(at - 1, 0) : at], *units[at + 1 : at + 2]]
    return any(re.match(f"[{_HAN}]", unit) for unit in beside)


def _begins(token: str, form: str) -> bool:
    return token.startswith(form[:-1]) if form.endswith("*") else token == form


def _folded(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


@lru_cache(maxsize=1)
def _lexicons() -> dict[str, _Lexicon]:
    lexicons = {code: _Lexicon(name=name) for code, name, _ in _SCRIPTS if code in ("zh", "ja")}
    for code, name, joining, others in _rows("stop_words.tsv")[1:]:
        joins = {_folded(word) for word in joining.split()}
        small = {_folded(word) for word in others.split()}
        # A question mark stands at words that are also English.
        telling = {word for word in joins | small if not word.endswith("?") and len(word) > 1}
        dropped = {word.rstrip("?") for word in small}
        lexicons[code] = _Lexicon(name, frozenset(joins), frozenset(telling), frozenset(dropped))
    rows = _rows("glossary.tsv")
    for row in rows[1:]:
        for code, forms in zip(rows[0][1:], row[1:], strict=True):
            for form in forms.split(","):
                _learn(lexicons[code], form, row[0], dense=code in ("zh", "ja"))
    return lexicons


def _learn(lexicon: _Lexicon, form: str, meaning: str, *, dense: bool) -> None:
    if dense:
        lexicon.exact.setdefault((form,), meaning)
        return
    pieces = tuple(re.findall(r"[^\W\d_]+\*?", _folded(form)))
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

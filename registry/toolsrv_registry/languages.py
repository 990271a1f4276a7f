"""Language detection and glosses: translate the words of a task into English.

A language is told by its script, its stop words and a glossary of what APIs are about
(``foreign_words/``). Chinese and Japanese, which write no blanks, are split by the longest known
run. A gloss is a bag of English words for the search, not a translation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from toolsrv_registry.words import STOP_WORDS, words

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
class Glossary:
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


def fold_accents(text: str) -> str:
    """Return a text without case and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


@lru_cache(maxsize=1)
def glossaries() -> dict[str, Glossary]:
    """Return what is known of each language, by its code."""
    lexicons = {code: Glossary(name=name) for code, name in _DENSE.items()}
    for code, name, joining, others in _rows("stop_words.tsv")[1:]:
        joins = {fold_accents(word) for word in joining.split()}
        small = {fold_accents(word) for word in others.split()}
        # A question mark stands at words that are also English.
        telling = {word for word in joins | small if not word.endswith("?") and len(word) > 1}
        dropped = {word.rstrip("?") for word in small}
        lexicons[code] = Glossary(name, frozenset(joins), frozenset(telling), frozenset(dropped))
    rows = _rows("glossary.tsv")
    for row in rows[1:]:
        for code, forms in zip(rows[0][1:], row[1:], strict=True):
            for form in forms.split(","):
                _learn(lexicons[code], form, row[0], dense=code in _DENSE)
    return lexicons


def _learn(lexicon: Glossary, form: str, meaning: str, *, dense: bool) -> None:
    if dense:
        lexicon.exact.setdefault((form,), meaning)
        return
    pieces = tuple(re.findall(r"[^\W\d_]+\*?", fold_accents(form)))
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


CODES = ("zh", "ja")
_EITHER = Language("", "Chinese or Japanese")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IN_HAN, _IN_KANA = re.compile(f"[{_HAN}]"), re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_UNSPACED_TOKEN = re.compile(rf"[{_HAN}\u3040-\u30ff]|[A-Za-z0-9][\w.:-]*|[。！？；，、.,;!?]")
_UNSPACED_ENDS = frozenset(".;!?。！？；")
_LONGEST_RUN = 8
# Chinese characters that join others, and do not count when much or little of a text is read.
_PARTICLES = frozenset("的了吗呢吧啊是有在我你他她它们要请给和与及或也都很这那什么怎样哪个把到")


def count_unspaced(text: str) -> int:
    """Count the Han characters and kana of a text."""
    return len(_IN_HAN.findall(text)) + len(_IN_KANA.findall(text))


def unspaced_language(text: str) -> Language:
    """Return the language of a text in these characters; Chinese where both read as much."""
    if _IN_KANA.search(text):
        return Language("ja", glossaries()["ja"].name)
    read = {code: _understood_characters(text, glossaries()[code]) for code in CODES}
    code = max(CODES, key=lambda one: read[one])
    return Language(code, glossaries()[code].name) if read[code] else _EITHER


def gloss_unspaced(text: str, lexicon: Glossary) -> Iterator[str]:
    """Yield in English what is understood of a text, with ";" between needs."""
    for run, meaning in _longest_known_runs(text, lexicon):
        if run.isascii() and run[0].isalnum():
            yield run
        elif run in _UNSPACED_ENDS:
            yield ";"
        elif meaning:
            yield meaning


def _understood_characters(text: str, lexicon: Glossary) -> int:
    """Count the Han characters that are understood; none where they are single ones and few."""
    runs = [
        run for run, meaning in _longest_known_runs(text, lexicon) if meaning and _IN_HAN.match(run)
    ]
    known = sum(map(len, runs))
    all_told = sum(character not in _PARTICLES for character in _IN_HAN.findall(text))
    return known if max(map(len, runs), default=0) > 1 or 2 * known > all_told else 0


def _longest_known_runs(text: str, lexicon: Glossary) -> Iterator[tuple[str, str]]:
    """Yield the longest known runs of characters with their meaning, all others one by one."""
    units = _UNSPACED_TOKEN.findall(text)
    mixed = lexicon.name == "Japanese"
    at = 0
    while at < len(units):
        length, meaning = 1, ""
        for longer in range(min(_LONGEST_RUN, len(units) - at), 0, -1):
            found = lexicon.exact.get(("".join(units[at : at + longer]),))
            if found and not (mixed and longer == 1 and _beside_han(units, at)):
                length, meaning = longer, found
                break
        yield "".join(units[at : at + length]), meaning
        at += length


def _beside_han(units: Sequence[str], at: int) -> bool:
    """Say whether a character is part of a longer word of Han characters."""
    beside = [*units[max(at - 1, 0) : at], *units[at + 1 : at + 2]]
    return any(map(_IN_HAN.match, beside))


_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,:]\d+)*|[.,;:!?]")
_QUOTED = re.compile(r"[\"“«„][^\"“”«»„]*[\"”»“]|[「『][^」』]*[」』]")
_CUT = "; "
_ENDS, _PAUSES = frozenset(".;!?。！？；"), frozenset(",:，、")

# Scripts that tell the language, or a name for most that write in it; the first that fits.
_SCRIPTS = (
    ("ko", "Korean", "\uac00-\ud7af\u1100-\u11ff"),
    ("ru", "Russian", "\u0400-\u04ff"),
    ("", "Greek", "\u0370-\u03ff"),
    ("", "Arabic", "\u0600-\u06ff"),
    ("", "Hebrew", "\u0590-\u05ff"),
    ("", "Hindi", "\u0900-\u097f"),
    ("", "Thai", "\u0e00-\u0e7f"),
    ("", "Armenian", "\u0530-\u058f"),
    ("", "Bengali", "\u0980-\u09ff"),
    ("", "Punjabi", "\u0a00-\u0a7f"),
    ("", "Gujarati", "\u0a80-\u0aff"),
    ("", "Odia", "\u0b00-\u0b7f"),
    ("", "Tamil", "\u0b80-\u0bff"),
    ("", "Telugu", "\u0c00-\u0c7f"),
    ("", "Kannada", "\u0c80-\u0cff"),
    ("", "Malayalam", "\u0d00-\u0d7f"),
    ("", "Sinhala", "\u0d80-\u0dff"),
    ("", "Lao", "\u0e80-\u0eff"),
    ("", "Tibetan", "\u0f00-\u0fff"),
    ("", "Burmese", "\u1000-\u109f"),
    ("", "Georgian", "\u10a0-\u10ff"),
    ("", "Amharic", "\u1200-\u137f"),
    ("", "Khmer", "\u1780-\u17ff"),
    ("", "Mongolian", "\u1800-\u18af"),
)
_IN_SCRIPT = tuple((code, name, re.compile(f"[{chars}]")) for code, name, chars in _SCRIPTS)
_LETTER = re.compile(r"[^\W\d_]")
_SCRIPT_SHARE = 0.3
# What asks for nothing by itself.
_SAYS_NOTHING = frozenset({"api", "apis", "today", "tomorrow", "yesterday"})

# Addresses, paths and names in code are of no language.
_IN_CODE = re.compile(r"\S*(?:://|@|[{}<>=_]|\w\.[a-z]{2,})\S*|(?<!\S)/\S+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_LONGEST_ACRONYM = 3
# The letters that a language has beyond the plain ones; a word with others is not of it.
_OWN_LETTERS = {
    "de": "äöü",
    "es": "áéíóúüñ",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "it": "àèéìíîòóùú",
    "pt": "áâãàçéêíóôõúü",
}
# One word tells a language when no word has so much in common with it by chance.
_TELLS_ALONE = 5

Known = Callable[[str], bool]


def detect(text: str, is_english: Known, is_named: Known = lambda _: False) -> Language | None:
    """Return the language of a text, or None for English and where too little tells.

    What stands in quotation marks is data and does not count, unless there is nothing else.
    ``is_english`` knows single lower-case words, ``is_named`` those in the names of APIs: a text
    of such alone asks for these APIs, whatever their language.
    """
    bare = _QUOTED.sub(" ", text)
    text = bare if _LETTER.search(bare) else text
    return _by_script(text) or _by_words(_distinct_words(text), is_english, is_named)


def gloss(text: str, language: Language) -> str:
    """Return in English what is understood of a text, one clause per need; "" for nothing.

    Names, numbers and words that the glossary lacks stay as they are; small words go.
    """
    lexicon = glossaries().get(language.code)
    if lexicon is None:
        kept = re.findall(r"[A-Za-z0-9][\w.:-]*", text)
        return " ".join(kept)
    reader = gloss_unspaced if language.code in CODES else _gloss_spaced
    said = reader(text, lexicon)
    return re.sub(r"[\s;]*;[\s;]*", _CUT, " ".join(said)).strip("; ")


def has_content(said: str, language: Language) -> bool:
    """Say whether a gloss asks for anything: has more than numbers, times and its language's name."""
    idle = {*_SAYS_NOTHING, *STOP_WORDS, *language.name.lower().split()}
    return any(word not in idle and not word.isdigit() for word in words(said))


def english_word(word: str) -> str:
    """Return what a single foreign word means, in whichever language has it; "" for none."""
    form = (fold_accents(word),)
    for lexicon in glossaries().values():
        if found := lexicon.exact.get(form):
            return found
    return ""


def _by_script(text: str) -> Language | None:
    if text.isascii():
        return None
    least = _SCRIPT_SHARE * len(_LETTER.findall(text))
    if count_unspaced(text) > least:
        return unspaced_language(text)
    for code, name, pattern in _IN_SCRIPT:
        if len(pattern.findall(text)) > least:
            return Language(code, name)
    return None


def _distinct_words(text: str) -> dict[str, str]:
    """Return the distinct lower-case words of a text that may tell its language, also folded."""
    shouting = text.isupper()
    found = {}
    for token in _TOKEN.findall(_IN_CODE.sub(" ", unicodedata.normalize("NFC", text))):
        if not token[0].isalpha():
            continue
        acronym = token.isupper() and len(token) <= _LONGEST_ACRONYM and not shouting
        if not (acronym or (not token[1:].islower() and _CAMEL.search(token))):
            found[token.casefold()] = fold_accents(token)
    return found


def _by_words(words: dict[str, str], is_english: Known, is_named: Known) -> Language | None:
    """Compare words with each language's small words and notions, and with English.

    Two words tell a language; one does when it is unmistakable and nothing beside it is English.
    """
    best, signs = "", set[str]()
    forms, short = set(words.values()), len(words) <= LONGEST_PHRASE
    for code, lexicon in glossaries().items():
        if not short and forms.isdisjoint(lexicon.telling):
            continue
        own = [word for word in words if _spelt_in(word, code)]
        found = {word for word in own if words[word] in lexicon.telling}
        if found or short:
            found |= {w for w in own if lexicon.knows(words[w]) and not is_english(w)}
        if len(found) > len(signs):
            best, signs = code, found
    if not signs:
        return None
    lexicon = glossaries()[best]
    rest = [
        word
        for word, form in words.items()
        if not (_spelt_in(word, best) and (form in lexicon.telling or lexicon.knows(form)))
    ]
    plain = sum(word in STOP_WORDS for word in rest)
    # A list of English words holds many names and foreign words too, so these count half.
    half = sum(word not in STOP_WORDS and is_english(word) for word in rest)
    others = sum(not _spelt_in(word, best) for word in words)
    against = plain + half / 2 + others
    enough = len(signs) > 1 or (
        not against and all(_tells_alone(w, words[w], lexicon) for w in signs)
    )
    if len(signs) <= against or not enough or all(map(is_named, words)):
        return None
    return Language(best, lexicon.name)


def _spelt_in(word: str, code: str) -> bool:
    """Say whether a language has all the letters of a word."""
    return (
        word.isascii()
        or code not in _OWN_LETTERS
        or all(letter.isascii() or letter in _OWN_LETTERS[code] for letter in word)
    )


def _tells_alone(word: str, form: str, lexicon: Glossary) -> bool:
    """Say whether a word is unmistakable: by its own letters, or a long form of the glossary."""
    return not word.isascii() or len(lexicon.form(form)) >= _TELLS_ALONE


def _gloss_spaced(text: str, lexicon: Glossary) -> Iterator[str]:
    written = _TOKEN.findall(text)
    forms = [fold_accents(word) for word in written]
    at = 0
    while at < len(written):
        meaning, length = lexicon.meaning(forms[at : at + LONGEST_PHRASE])
        if meaning:
            yield meaning
        elif forms[at] in _ENDS or forms[at] in lexicon.joining:
            yield ";"
        elif forms[at] not in lexicon.dropped and forms[at] not in _PAUSES:
            yield written[at]
        at += length

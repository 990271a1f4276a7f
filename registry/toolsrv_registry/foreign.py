"""Texts in other languages than the catalog's English: which language, and what it means.

``detect`` names a text's language from its script and its small words; ``gloss`` says in English
as much as a small glossary can (``foreign_lexicon``), with names and numbers kept. It is no
translation: enough to bring the right APIs up, and the search says what it took the text for.

Pure; knows nothing about APIs or searching.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from toolsrv_registry import foreign_dense as dense
from toolsrv_registry.foreign_lexicon import LONGEST_PHRASE, Language, Lexicon, folded, lexicons
from toolsrv_registry.words import STOP_WORDS, words

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
    return _by_script(text) or _by_words(_written(text), is_english, is_named)


def gloss(text: str, language: Language) -> str:
    """Return in English what is understood of a text, one clause per need; "" for nothing.

    Names, numbers and words that the glossary lacks stay as they are; small words go.
    """
    lexicon = lexicons().get(language.code)
    if lexicon is None:
        kept = re.findall(r"[A-Za-z0-9][\w.:-]*", text)
        return " ".join(kept)
    reader = dense.gloss if language.code in dense.CODES else _spaced
    said = reader(text, lexicon)
    return re.sub(r"[\s;]*;[\s;]*", _CUT, " ".join(said)).strip("; ")


def asks(said: str, language: Language) -> bool:
    """Say whether a gloss asks for anything: has more than numbers, times and its language's name."""
    idle = {*_SAYS_NOTHING, *STOP_WORDS, *language.name.lower().split()}
    return any(word not in idle and not word.isdigit() for word in words(said))


def english_of(word: str) -> str:
    """Return what a single foreign word means, in whichever language has it; "" for none."""
    form = (folded(word),)
    for lexicon in lexicons().values():
        if found := lexicon.exact.get(form):
            return found
    return ""


def _by_script(text: str) -> Language | None:
    if text.isascii():
        return None
    least = _SCRIPT_SHARE * len(_LETTER.findall(text))
    if dense.characters(text) > least:
        return dense.language(text)
    for code, name, pattern in _IN_SCRIPT:
        if len(pattern.findall(text)) > least:
            return Language(code, name)
    return None


def _written(text: str) -> dict[str, str]:
    """Return the distinct lower-case words of a text that may tell its language, also folded."""
    shouting = text.isupper()
    found = {}
    for token in _TOKEN.findall(_IN_CODE.sub(" ", unicodedata.normalize("NFC", text))):
        if not token[0].isalpha():
            continue
        acronym = token.isupper() and len(token) <= _LONGEST_ACRONYM and not shouting
        if not (acronym or (not token[1:].islower() and _CAMEL.search(token))):
            found[token.casefold()] = folded(token)
    return found


def _by_words(words: dict[str, str], is_english: Known, is_named: Known) -> Language | None:
    """Compare words with each language's small words and notions, and with English.

    Two words tell a language; one does when it is unmistakable and nothing beside it is English.
    """
    best, signs = "", set[str]()
    forms, short = set(words.values()), len(words) <= LONGEST_PHRASE
    for code, lexicon in lexicons().items():
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
    lexicon = lexicons()[best]
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


def _tells_alone(word: str, form: str, lexicon: Lexicon) -> bool:
    """Say whether a word is unmistakable: by its own letters, or a long form of the glossary."""
    return not word.isascii() or len(lexicon.form(form)) >= _TELLS_ALONE


def _spaced(text: str, lexicon: Lexicon) -> Iterator[str]:
    written = _TOKEN.findall(text)
    forms = [folded(word) for word in written]
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

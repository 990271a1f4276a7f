"""Chinese and Japanese, whose scripts have no blanks between words: which of them, and what it means.

Kana tell Japanese. A text in Han characters alone is of the language whose glossary reads most of
it, and of one of the two, nobody knows which, where neither reads anything.

Pure but for the glossary; knows nothing about other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolsrv_registry.foreign_lexicon import Language, Lexicon, lexicons

CODES = ("zh", "ja")
_EITHER = Language("", "Chinese or Japanese")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IN_HAN, _IN_KANA = re.compile(f"[{_HAN}]"), re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_TOKEN = re.compile(rf"[{_HAN}\u3040-\u30ff]|[A-Za-z0-9][\w.:-]*|[。！？；，、.,;!?]")
_ENDS = frozenset(".;!?。！？；")
_LONGEST_RUN = 8
# Chinese characters that join others, and do not count when much or little of a text is read.
_PARTICLES = frozenset("的了吗呢吧啊是有在我你他她它们要请给和与及或也都很这那什么怎样哪个把到")


def characters(text: str) -> int:
    """Count the Han characters and kana of a text."""
    return len(_IN_HAN.findall(text)) + len(_IN_KANA.findall(text))


def language(text: str) -> Language:
    """Return the language of a text in these characters; Chinese where both read as much."""
    if _IN_KANA.search(text):
        return Language("ja", lexicons()["ja"].name)
    read = {code: _read(text, lexicons()[code]) for code in CODES}
    code = max(CODES, key=lambda one: read[one])
    return Language(code, lexicons()[code].name) if read[code] else _EITHER


def gloss(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield in English what is understood of a text, with ";" between needs."""
    for run, meaning in _runs(text, lexicon):
        if run.isascii() and run[0].isalnum():
            yield run
        elif run in _ENDS:
            yield ";"
        elif meaning:
            yield meaning


def _read(text: str, lexicon: Lexicon) -> int:
    """Count the Han characters that are understood; none where they are single ones and few."""
    runs = [run for run, meaning in _runs(text, lexicon) if meaning and _IN_HAN.match(run)]
    known = sum(map(len, runs))
    all_told = sum(character not in _PARTICLES for character in _IN_HAN.findall(text))
    return known if max(map(len, runs), default=0) > 1 or 2 * known > all_told else 0


def _runs(text: str, lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Yield the longest known runs of characters with their meaning, all others one by one."""
    units = _TOKEN.findall(text)
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

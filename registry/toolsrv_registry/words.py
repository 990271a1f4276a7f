"""Words of a text: tokens, stop words, light stems.

One tokeniser for tasks, API names and descriptions, so that both sides of a match agree. Pure;
knows nothing about storage or ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_RUN = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts without spaces between words: each character counts as a word.
_DENSE = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD_LIMIT = 40

_STOP_TEXT = """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each either few for from further
    get give given gives go had has have having he her here hers him his how however i if in into
    is it its itself just kindly know let like list lot make may me might mine more most must my
    need needed needs next no nor not now of off on once one only or other our ours out over own
    please really same shall she should show so some such tell than thank thanks that the their
    theirs them then there these they thing things this those through to too under until up us use
    used using very want wanted wants was we well were what when where whether which while who whom
    why will with within would yes you your yours
    d ll m re s t ve don doesn didn isn wasn won aren can couldn wouldn
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())


def words(text: str) -> list[str]:
    """Return the lower-case words of a text in order, with repeats.

    Letters and digits form words; ``_`` and punctuation separate them, and so does a change from
    lower to upper case (``getUserId``). A very long word is cut at 40 characters.
    """
    spaced = _CAMEL.sub(" ", text)
    if not spaced.isascii():
        spaced = _DENSE.sub(r" \1 ", spaced)
    return [run.casefold()[:_WORD_LIMIT] for run in _RUN.findall(spaced)]


def content_words(text: str) -> list[str]:
    """Return the distinct words that carry meaning; all words where nothing else is left."""
    return list(_content_words(text))


@lru_cache(maxsize=512)
def _content_words(text: str) -> tuple[str, ...]:
    """Return them; a search asks for those of each of its clauses several times."""
    distinct = tuple(dict.fromkeys(words(text)))
    return tuple(word for word in distinct if word not in STOP_WORDS) or distinct


def stems(found: Iterable[str]) -> frozenset[str]:
    """Return the light stems of words."""
    return frozenset(stem(word) for word in found)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a light English stem: plural, ``-ing``, ``-ed``, ``-er``, ``-ly`` and final ``e`` go.

    ``converting``, ``converts``, ``converter`` and ``convert`` meet; so do ``time`` and
    ``timing``. Words under four letters and words with digits stay as they are.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "er", "ly"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and any(letter in "aeiouy" for letter in rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word

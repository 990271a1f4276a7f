"""Text Insights: counting, comparing and judging text. Library: unicodedata, re, difflib.

Readability is Flesch's, for English; syllables are estimated from vowel groups.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError
from toolsrv_catalogs.offline.values.number import tidy, whole
from toolsrv_catalogs.offline.values.words import Line, Text, fold, text_up_to

tool = Endpoints()
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’)]*(?:\s|$)|(?<=[^\s.!?…\"'”’)])\s*$")
_STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "he",
        "i",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "she",
        "that",
        "the",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "will",
        "with",
        "you",
    ]
)
_GRADES = (
    (90, "very easy"), (80, "easy"), (70, "fairly easy"), (60, "plain English"),
    (50, "fairly difficult"), (30, "difficult"),
)  # fmt: skip


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _sentences(text: str) -> int:
    return max(1, len(_SENTENCE.findall(text)))


def _excerpt(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


@tool.get("/statistics")
def text_statistics(text: Text) -> Answer:
    words = _words(text)
    return {
        "text": _excerpt(text),
        "words": len(words),
        "characters": len(text),
        "characters_without_spaces": len(re.sub(r"\s", "", text)),
        "sentences": _sentences(text) if words else 0,
        "reading_seconds": round(len(words) / 220 * 60),
    }


@tool.get("/word_frequency")
def word_frequency(text: Text, top: Annotated[int, whole(1, 20)] = 5) -> Answer:
    counted = Counter(w for w in (w.casefold() for w in _words(text)) if w not in _STOP_WORDS)
    return {"text": _excerpt(text), "top_words": dict(counted.most_common(top))}


@tool.get("/readability")
def readability(text: Text) -> Answer:
    words = _words(text)
    if not words:
        raise ParameterError("text", "holds no words")
    per_sentence = len(words) / _sentences(text)
    per_word = sum(map(_syllables, words)) / len(words)
    score = 206.835 - 1.015 * per_sentence - 84.6 * per_word
    return {
        "text": _excerpt(text),
        "reading_ease": tidy(score, 1),
        "level": next((name for limit, name in _GRADES if score >= limit), "very difficult"),
        "school_grade": tidy(max(0.0, 0.39 * per_sentence + 11.8 * per_word - 15.59), 1),
    }


def _syllables(word: str) -> int:
    plain = fold(word)
    groups = len(re.findall(r"[aeiouy]+", plain))
    silent = plain.endswith("e") and not plain.endswith(("le", "ee", "ye")) and groups > 1
    return max(1, groups - silent)


@tool.get("/count")
def count_occurrences(text: Text, find: Line) -> Answer:
    return {
        "text": _excerpt(text),
        "find": find,
        "occurrences": text.casefold().count(find.casefold()),
    }


@tool.get("/palindrome")
def palindrome(text: Annotated[str, text_up_to(300)]) -> Answer:
    letters = [c for c in fold(text) if c.isalnum()]
    return {
        "text": _excerpt(text),
        "is_palindrome": bool(letters) and letters == letters[::-1],
        "reversed": _excerpt(text[::-1]),
    }


@tool.get("/anagram")
def anagram(first: Line, second: Line) -> Answer:
    one, two = (Counter(c for c in fold(text) if c.isalnum()) for text in (first, second))
    return {"first": first, "second": second, "are_anagrams": bool(one) and one == two}


@tool.get("/similarity")
def similarity(
    first: Annotated[str, text_up_to(500)], second: Annotated[str, text_up_to(500)]
) -> Answer:
    ratio = difflib.SequenceMatcher(None, first.casefold(), second.casefold(), autojunk=False)
    return {
        "first": _excerpt(first),
        "second": _excerpt(second),
        "similarity_percent": tidy(100 * ratio.ratio(), 1),
    }


@tool.get("/character")
def character_name(character: Annotated[str, text_up_to(8)]) -> Answer:
    first = character[0]
    return {
        "character": first,
        "unicode_name": unicodedata.name(first, "unnamed"),
        "code_point": f"U+{ord(first):04X}",
        "html_entity": f"&#{ord(first)};",
    }

"""Runs of words in a text that may be a value: what is quoted, names, codes, words with meaning.

Pure, linear in the text. Knows nothing about parameters beyond a vocabulary to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from toolsrv_runtime.planner.reading.announced import announced
from toolsrv_runtime.planner.reading.cues import stem

_LOOSE_WORDS = """
a an the of for in on at to from by with and or then is are was were be as into about please what
what's which who whose how when where why does do did it its it's that this these those there here
my your our me i i'm i'd you we us he she they them if can could would will should shall also any
some all many much more most than so just now right currently next last per his her between within
using use found result resulting same tell show give get find list look need want like know let
check calculate compute convert translate make create generate have has had long far old big e.g
into out up down off over under good looks called mean means today's am not no yes say says said go
goes put back fall come take takes because write written whether wants want anyone able belongs
everybody there's put
"""
_LOOSE = frozenset(_LOOSE_WORDS.split())
_ASKING_WORDS = """
calculate compute convert create generate make translate far old big long many much next last where
who whose when why mean means up down over under
"""
_ASKING = frozenset(_ASKING_WORDS.split())
_JOINING_WORDS = """
de da do dos das du di del la le les el al van von der den of y e the es am upon sur
"""
_JOINS = frozenset(_JOINING_WORDS.split())
_QUOTED = re.compile(
    r"[\"“”«»]([^\"“”«»]{1,20000})[\"“”«»]|(?<!\w)['‘’]([^'‘’]{1,20000})['‘’](?!\w)"
)
_WORD = re.compile(r"[^\s,;:!?()\"“”]+")
_LOUD_WORDS = re.compile(r"\b[A-Z]{2,}(?: [A-Z]{2,})+\b")
_URL = re.compile(r"https?://[^\s\"'<>]*[\w/=&%-]")
_CODE = re.compile(r"https?://\S+|\S*[^\W_]\S*")


def quoted(text: str) -> list[str]:
    """Return what stands in quotation marks, and texts that are announced without them."""
    return [
        *(a or b for a, b in _QUOTED.findall(text)),
        *(text[begin:end] for begin, end in announced(text)),
    ]


def address_alone(value: str, text: str) -> str:
    """Return a value that begins with an address without the words behind it, unless it is quoted."""
    address = _URL.match(value)
    if address is None or address.end() == len(value) or value in quoted(text):
        return value
    return address[0] if value[address.end()].isspace() else value


def codes(text: str, vocabulary: Collection[str] = (), *, joined: bool = False) -> list[str]:
    """Return words that are no plain words: digits among letters, inner signs, capitals only.

    ``joined``: words in capitals side by side are one, "NO TIME".
    """
    found = []
    together: list[str] = _LOUD_WORDS.findall(text) if joined and not text.isupper() else []
    if together:
        return together
    for match in _CODE.finditer(text):
        word = match[0].strip("\"'“”‘’()[]").rstrip(".,;:!?")
        plain = re.fullmatch(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[\d.,%$€£]+(?:st|nd|rd|th)?", word)
        loud = word.isupper() and len(word) > 1 and word.isalpha()
        if (not plain or loud) and len(word) > 1 and stem(word) not in vocabulary:
            found.append(word)
    return found


def content(text: str) -> set[str]:
    """Return the stems of the words that mean something of their own, numbers among them."""
    plain = re.findall(r"\w+(?:['’]\w+)?", text.lower().replace("’", "'"))
    return {stem(word) for word in plain if word not in _LOOSE or word in _ASKING}


def runs(text: str, vocabulary: Collection[str]) -> list[tuple[str, bool]]:
    """Return what is quoted, then maximal runs of words that mean something of their own.

    Loose words, numbers and the vocabulary (stems) break a run; but a capitalised word in the
    middle of a sentence is a name, whatever the vocabulary says. Names, marked True, come first.
    """
    found: list[tuple[str, bool]] = []
    start = end = previous = 0
    inside = named = False
    for match in [*_WORD.finditer(text), None]:
        word = match[0].strip(".'’") if match else ""
        broken = match is not None and re.search(r"[,;:!?()\"]", text[previous : match.start()])
        means = match is not None and _means(text, match, word, vocabulary)
        name = match is not None and means and _is_name(text, match, word)
        turns = named != name and not (named and word in _JOINS)
        turns = named != name and not (named and word in _JOINS)
        if inside and (broken or not means or turns):
            found.append((text[start:end], named))
            inside = False
        if match is not None and means:
            named = named if inside else name
            start = start if inside else match.start()
            end = match.start() + len(match[0].rstrip(".'’"))
            inside = True
        previous = match.end() if match else previous
    given = [(run, True) for run in (*quoted(text), *_URL.findall(text))]
    return sorted([*given, *found], key=lambda run: not run[1])


def _means(text: str, match: re.Match[str], word: str, vocabulary: Collection[str]) -> bool:
    if not word or word.lower() in _LOOSE or word[:1].isdigit() or len(word) == 1:
        return False
    known = stem(word) in vocabulary
    return not known or (_is_name(text, match, word) and not word.isupper())


def _is_name(text: str, match: re.Match[str], word: str) -> bool:
    """Whether a word is capitalised for its own sake, not because a sentence begins."""
    before = text[: match.start()].rstrip().rstrip("\"'(“‘")
    opens = not before or before.endswith((".", "?", "!", ":"))
    return not opens and word[:1].isupper() and len(word) > 1

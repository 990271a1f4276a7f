"""Split a task into clauses, and a clause into the subtasks that it lists.

"The news, a stock price and a joke" lists three. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsrv_registry.words import STOP_WORDS, words

TEXT_LIMIT = 4_000
CLAUSE_LIMIT = 12
_LEAST_WORDS = 2

_BLANKS = re.compile(r"[^\S\n\r\u2028\u2029]+")
_BREAKS = re.compile(r" ?[\n\r\u2028\u2029][\s]*")
# The text has single blanks and line breaks only, so no alternative can run away.
_JOINTS = re.compile(
    r"""
      \n
    | (?<=[.!?])(?<!\.[a-z]\.)(?<!\b(?:dr|mr|ms|st|vs|no)\.)(?<!\bmrs\.)["')\]]{0,3}[ ]
    | [\u3002\uff01\uff1f\uff1b]      # CJK full stop, exclamation and question mark, semicolon
    | [ ]?;[ ]?
    | ,?[ ](?:and[ ])?then[ ]
    | (?:,|,?[ ]and)[ ]also[ ]
    | ,?[ ](?:and[ ])?after[ ](?:that|this),?[ ]
    | ,?[ ](?:and[ ])?(?:additionally|afterwards|finally|furthermore|moreover|besides|lastly|next),[ ]
    | ,?[ ]as[ ]well[ ]as[ ]
    | ,?[ ]plus[ ]
    | ,[ ](?:and|but)[ ]
    | (?:,|[ ]and)[ ](?=(?:
        are|calculate|check|compute|convert|could|fetch|find|get|give|how|is|list|provide|recommend|
        retrieve|search|send|show|suggest|tell|translate|what|when
      )\b)
    | [ ]and[ ](?=(?:where|which|who)\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EDGES = " \t,.:;!?-–—•*·"


def clauses(text: str) -> list[str]:
    """Return the clauses of the first 4,000 characters, in order, at most twelve.

    Clauses keep every word but the joining ones ("and then", "also"); white space is evened out
    and punctuation at the edges dropped. A fragment of a single word joins the clause before it,
    or the one after when it comes first. Beyond twelve, the last clause takes all the rest.
    """
    text = _BREAKS.sub("\n", _BLANKS.sub(" ", text[:TEXT_LIMIT])).strip()
    found: list[str] = []
    for piece in filter(None, (part.strip(_EDGES) for part in _JOINTS.split(text))):
        if found and (_short(piece) or _short(found[-1]) or len(found) == CLAUSE_LIMIT):
            found[-1] = f"{found[-1]} {piece}"
        else:
            found.append(piece)
    return found


def with_clauses(text: str) -> list[str]:
    """Return a whole text, then its clauses when there are several."""
    found = clauses(text)
    return [text, *found] if len(found) > 1 else [text]


def _short(piece: str) -> bool:
    # Scripts without blanks have no short pieces by this measure, unless they are short.
    return len(piece.split()) < _LEAST_WORDS and len(piece) < 3 * _LEAST_WORDS + 6


_LIST_JOINTS = re.compile(r"(, and | and also |, plus |, |: | and | plus | & )", re.IGNORECASE)
# What a wish begins with.
_VERBS = re.compile(
    r"""(?:and[ ])?(?:please[ ]|also[ ])*(?:
      add|analy[sz]e|browse|calculate|check|compose|compute|convert|create|decode|define|describe|
      detect|download|encode|explain|extract|fetch|find|generate|get|give|grab|hash|identify|inform|
      list|locate|look[ ]up|look[ ]for|name|pick|pull|provide|read|recite|recommend|remind|retrieve|
      reverse|roll|say|scan|search|send|share|shorten|show|solve|suggest|summari[sz]e|tell|throw|
      translate|validate|verify|what|what's|when|where|which|who|how|is|are|will|i[ ]need|i[ ]want|
      i'd[ ]like|let[ ]me
    )[ ]\w""",
    re.VERBOSE | re.IGNORECASE,
)
_THINGS = re.compile(
    r"(?:an?|another|any|some|the|its|their|his|her|my|our|today's|tomorrow's|tonight's)[ ]\w",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"\b(?:about|around|at|between|by|for|from|in|into|near|of|on|than|to|with)\b", re.IGNORECASE
)
# Both sides of these are one need.
_TWO_SIDED = re.compile(
    r"\b(?:between|both|compare|compares|comparison|versus|vs|difference|distance|from)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"(?:(?:hi|hello|hey|well|so|as|since|because|while|if|today|currently)[, ]+)?"
    r"(?:i|we|he|she|they|my|our|i'm|i've|i'll|we're|we've|we'll|there)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:need|want|like|looking|interested|wonder|wondering|help|hoping|curious|give|tell|show)\b",
    re.IGNORECASE,
)
_LINKS = frozenset({"additionally", "finally", "furthermore", "lastly", "moreover", "besides"})
_SUBTASK_EDGES = " ,.:;!?-&"


def subtasks(clauses: Iterable[str]) -> list[str]:
    """Return the needs that the clauses state, in order, as they are written there."""
    return [need for clause in clauses for need in _split_list(clause)]


def _split_list(clause: str) -> list[str]:
    pieces = _LIST_JOINTS.split(clause)
    found = [pieces[0]]
    for joint, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        told = piece.strip()
        # What follows a colon may be a value; a wish is one of its own.
        if _VERBS.match(told) if joint == ": " else _begins(told, found[-1]):
            found.append(piece)
        else:
            found[-1] += joint + piece
    return [text for text in (piece.strip(_SUBTASK_EDGES) for piece in found) if _is_subtask(text)]


def _is_subtask(text: str) -> bool:
    talk = _SMALL_TALK.match(text) and not _REQUEST.search(text)
    return not talk and _says_something(text) and text.lower() not in _LINKS


def _begins(piece: str, before: str) -> bool:
    """Say whether a piece of a list is a need of its own, not the end of the one before it."""
    if _VERBS.match(piece):
        return True
    if _TWO_SIDED.search(before):
        return False
    if _THINGS.match(piece):
        return _says_something(piece)
    told = piece.split()
    if not told or told[0][:1].isdigit() or not (told[0][:1].islower() or told[-1][:1].islower()):
        # A name or a number: another value of what was said before.
        return False
    if not _says_something(piece) or told[0].lower() in STOP_WORDS:
        return False
    if _PREPOSITION.search(piece):
        return True
    # A bare word after "hotels in rome" is a second town, after "weather" a second thing.
    last = before.split()[-1:] or [""]
    return not _PREPOSITION.search(before) or len(told) > 1 or not last[0][:1].islower()


def _says_something(piece: str) -> bool:
    if len(piece.split()) == 1 and not piece.isalpha():
        # An address, a code, a number.
        return False
    return any(word not in STOP_WORDS and len(word) > 2 for word in words(piece))

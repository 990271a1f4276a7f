"""Split a task into clauses, so that each of its needs is searched for itself.

"Find hotels in Rome, and then convert 900 pounds to euros; also list museums" has three needs;
one vector for the whole sentence lies between them. Pure and linear in the text; knows nothing
about searching. A split too many does little harm: a clause that says nothing finds nothing, and
the whole text is searched as well.
"""

from __future__ import annotations

import re

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


def _short(piece: str) -> bool:
    # Scripts without blanks have no short pieces by this measure, unless they are short.
    return len(piece.split()) < _LEAST_WORDS and len(piece) < 3 * _LEAST_WORDS + 6

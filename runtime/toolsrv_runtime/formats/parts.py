"""The parts of a task that a thought may name: its clauses, without politeness and joining words.

Finer than the retriever's clauses, because a thought is about one call. Pure, linear in the text.
"""

from __future__ import annotations

import re

PART_LIMIT = 24
"""Parts of a task that are looked at."""

_BREAK = re.compile(
    r"(?:\s*[.;?!:]+\s+|\s*,\s+|\s+-\s+|\s+(?=(?:and|then|plus)\b))"
    r"(?:(?:and|then|also|plus|additionally|finally|next|after that|afterwards|as well as|"
    r"besides|lastly|secondly|first|second)\b[\s,]*)*"
    r"|\n+",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:(?:hi|hello|hey)\b[,.! ]*)?"
    r"(?:(?:please|kindly|also|then|and)\s+)*"
    r"(?:(?:can|could|would|will) you (?:please |also )?|"
    r"i(?:'d| would)? (?:need|want|like) (?:you )?(?:to (?:know )?)?|"
    r"i(?:'m| am) (?:curious|wondering)(?: about)? |help me (?:to )?|let me know |tell me )?"
    r"(?:please )?",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<!\w)‘[^’]*’(?!\w)")


def split(task: str) -> list[str]:
    """Return the task's parts in order; what stands in quotation marks is never split."""
    quoted = [match.span() for match in _QUOTED.finditer(task)]
    found: list[str] = []
    start = 0
    for match in _BREAK.finditer(task):
        if any(begin < match.end() - 1 and match.start() < end - 1 for begin, end in quoted):
            continue
        _append(found, task[start : match.start()])
        start = match.end()
    _append(found, task[start:].rstrip(" .?!;,\n"))
    return found[:PART_LIMIT]


def _append(found: list[str], text: str) -> None:
    polite = _POLITE.match(text)
    if polite and polite.end() < len(text):
        text = text[polite.end() :]
    if re.search(r"\w", text):
        found.append(text.strip())

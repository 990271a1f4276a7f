"""The parts of a task that a thought may name: its clauses, as character spans. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

CLAUSE_LIMIT = 24
"""Clauses of a task that are looked at."""

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


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of the task: ``text`` is ``task[start:end]``."""

    start: int
    end: int
    text: str


def split(task: str) -> list[Clause]:
    """Return the task's clauses in order, without joining words or politeness."""
    clauses: list[Clause] = []
    start = 0
    for match in [*_BREAK.finditer(task), None]:
        end = match.start() if match else len(task.rstrip(" .?!;,\n"))
        _append(clauses, task, start, end)
        start = match.end() if match else end
    return clauses[:CLAUSE_LIMIT]


def _append(clauses: list[Clause], task: str, start: int, end: int) -> None:
    polite = _POLITE.match(task, start, max(start, end))
    if polite and polite.end() < end:
        start = polite.end()
    text = task[start:end]
    if re.search(r"\w", text):
        clauses.append(Clause(start, end, text))

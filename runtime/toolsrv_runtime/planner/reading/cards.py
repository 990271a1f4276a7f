"""Questions in quotation marks that are the wish itself: cards of a quiz, a colleague's words. Pure.

Where nothing outside the marks asks for anything, what stands in them is no data to work on.
"""

from __future__ import annotations

import re

from toolsrv_runtime.planner.reading.parts import split

TEXT_LIMIT = 4_000
"""Characters of a task that are looked at."""

_QUESTION = re.compile(r"[\"“](?P<said>[^\"“”]{10,300}\?)[\"”]")
_VERB = re.compile(
    r"\b(?:count|translat\w*|encod\w*|revers\w*|hash\w*|spell\w*|writ\w*|convert\w*|words?|letters?|text|"
    r"sentences?|statistics|similar\w*|readab\w*|palindrome|upper|lower|morse|slug|qr|case)\b",
    re.IGNORECASE,
)


def unquoted(task: str) -> str:
    """Return a task with such questions without their marks, as it is where something else asks."""
    if len(task) > TEXT_LIMIT or not _QUESTION.search(task):
        return task
    around = _QUESTION.sub(" ", task)
    if "?" in around or _VERB.search(around) or any(part.asks for part in split(around)):
        return task
    return _QUESTION.sub(lambda one: one["said"], task)

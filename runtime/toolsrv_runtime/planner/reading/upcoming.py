"""Days that an answer tells besides what was asked: ``next_full_moon``, under a name that says so.

Such a day is meant where the task calls it by that name, and nowhere else. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsrv_runtime.values.facts import Fact, words

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NAME = re.compile(r"next (?P<what>\w+ \w[\w ]*)")


def meant(seen: Iterable[Fact], task: str) -> list[Fact]:
    """Return the facts of answers without the days of this kind that the task does not name."""
    return [one for one in seen if not (what := _what(one)) or _is_named(what, task)]


def told(part: str, seen: Iterable[Fact]) -> str:
    """Return the one day of this kind that a part names, else ""."""
    named = {one[1] for one in seen if (what := _what(one)) and _is_named(what, part)}
    return named.pop() if len(named) == 1 else ""


def _what(fact: Fact) -> str:
    """Return "full moon" of a fact whose name says that the next one is that day, "" of others."""
    name, value = fact
    match = _NAME.fullmatch(words(name)) if _DAY.fullmatch(value) else None
    return match["what"] if match else ""


def _is_named(what: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(what)}(?!\w)", text, re.IGNORECASE) is not None

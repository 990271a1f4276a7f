"""Where a task tells values of a parameter, each as its shortest words, as far as the matcher says so.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Slot
from toolsrv_runtime.planner.reading import spelling
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

MOST = 8
"""Values of one parameter that are looked at."""

ALIKE = 5.0
"""Nats behind some words within which shorter ones in them are as good."""

_RUNS = 60
_EDGES = " ,;:.!?\"'“”‘’()"
_APART = re.compile(r"[\s,;]")
_BEGINS, _ENDS = re.compile(r"(?<![\w)])"), re.compile(r"(?![\w(])")


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of the task that are a value, where they stand, how the API reads them, how likely."""

    begin: int
    end: int
    words: str
    read: str
    score: float

    def touches(self, other: Mention) -> bool:
        """Whether the two have words in common."""
        return self.begin < other.end and other.begin < self.end


def mentions(
    parameter: Parameter, api: Api, slot: Slot, task: str, *, behind: float
) -> list[Mention]:
    """Return the values that are at most ``behind`` nats behind the likeliest, as the task tells them.

    "Peru and Chile" where "Peru" and "Chile" are as likely is no value of its own. Empty where it
    is likelier that none is told.
    """
    likely = (
        _listed(parameter, slot, task) if parameter.enum else _pointed(parameter, api, slot, task)
    )
    found: list[Mention] = []
    for one in likely:
        best = found[0].score if found else one.score
        if one.score >= best - behind and not any(one.touches(other) for other in found):
            found.append(one)
    return sorted(found[:MOST], key=lambda one: one.begin)


def spelled(option: str, of: str = "") -> re.Pattern[str]:
    """Return what finds an allowed value as people write it: ``minor_seventh`` as two words.

    With the word that it is one ``of`` joined to it, too: ``camel`` of ``case`` in camelCase.
    """
    said = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", option)))
    tail = rf"(?:[_-]?{re.escape(of)})?" if of else ""
    return re.compile(rf"(?<!\w){said}{tail}(?!\w)", re.IGNORECASE)


def _pointed(parameter: Parameter, api: Api, slot: Slot, task: str) -> list[Mention]:
    """Return the likeliest runs of whole words without those that hold two values."""
    kind = kinds.value_kind(parameter, api)
    found = []
    for one in slot.best(_RUNS):
        words = "" if one.source else task[one.begin : one.end].strip(_EDGES)
        begin = task.find(words, one.begin)
        whole = words and _BEGINS.match(task, begin) and _ENDS.match(task, begin + len(words))
        if whole and one.score > slot.none and spelling.looks(kind, words, task):
            read = spelling.read(kind, words, task)
            found.append(Mention(begin, begin + len(words), words, read, one.score))
    return [one for one in found if not _holds_two(one, found, task)]


def _holds_two(one: Mention, others: Sequence[Mention], task: str) -> bool:
    """Whether words hold two values apart that are about as likely: "Peru and Chile".

    Not with a mere sign between them: "Asia/Kathmandu".
    """
    inside = [
        other
        for other in others
        if other != one
        and one.begin <= other.begin
        and other.end <= one.end
        and other.score >= one.score - ALIKE
    ]
    return any(
        a.end <= b.begin and _APART.search(task[a.end : b.begin]) for a in inside for b in inside
    )


def _listed(parameter: Parameter, slot: Slot, task: str) -> list[Mention]:
    """Return the allowed values that the task names, likeliest first, each with all its words."""
    of = words(parameter.name).rpartition(" ")[2]
    found = [
        one for at, score in slot.listed() for one in _named(parameter.enum[at], of, score, task)
    ]
    return [one for one in found if not any(_is_part(one, other) for other in found)]


def _is_part(one: Mention, other: Mention) -> bool:
    """Whether one value is only some words of another: "minor" of "minor seventh"."""
    inside = other.begin <= one.begin and one.end <= other.end
    return inside and other.end - other.begin > one.end - one.begin


def _named(option: str, of: str, score: float, task: str) -> Iterator[Mention]:
    for match in spelled(option, of).finditer(task):
        yield Mention(match.start(), match.end(), match[0], option, score)

"""Tracing an answer: which call result, or the task itself, says each thing that it states.

A number is supported where a source has its value, or a longer one of which it is the rounding,
with its sign ("fell by 12" and "12 below zero" have that of -12);
a date or a time where a source names the same day or minute in whatever spelling; a name or an
identifier where its words stand in a source, accents and capitals aside. A capitalised word that
opens a sentence is a name unless it is an ordinary word: a common one (``ordinary.py``), one that
the answer has in lower case too, or an inflection of a source's word. Where a value stands only
the last counts, and the few words that are never one (yes, none). What is calculated from a
response (a sum, a difference) is not in it and counts as unsupported: that is no proof of a
mistake, but nobody has said it. Asks no model; knows nothing of searches.

Cost: one pass over each source, O(characters of the sources) with at most ``SOURCE_LIMIT`` of each
and ``TOTAL_LIMIT`` of all looked at, ``CLAIMS_LIMIT`` claims of an answer, and O(log numbers) for
each rounded number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from toolsrv_runtime.evidence.claims import Clock, Day, Span, fold, stated, typed, weekday
from toolsrv_runtime.evidence.currencies import NAMES
from toolsrv_runtime.evidence.ordinary import CLOSED, forms, opens_sentences
from toolsrv_runtime.outcome import TASK_NODE, Claim, Support
from toolsrv_runtime.values.facts import said_by

SOURCE_LIMIT = 250_000
"""Characters of one source that are looked at."""

TOTAL_LIMIT = 1_000_000
"""Characters of all sources together that are looked at, the task and the first results first."""

CLAIMS_LIMIT = 400
"""Claims of one answer that are traced; of more it is only told how many."""

_CODE_DIGITS = 8
"""From so many digits on a whole number may as well be a code (a card, an ISBN)."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NUMERIC = re.compile(r"\d")
_WORD = re.compile(r"[^\W\d_]+")
_OF = " of "

Sources = set[int]
"""Ids of what says something: nodes of call results, ``TASK_NODE`` for the task."""


@dataclass(frozen=True, slots=True)
class Traced:
    """Everything an answer states, in order: what is supported, by which sources, and the rest.

    ``unread`` is how many claims beyond ``CLAIMS_LIMIT`` nobody looked at.
    """

    supported: tuple[Claim, ...] = ()
    unsupported: tuple[Claim, ...] = ()
    unread: int = 0


def trace(answer: str, task: str, results: Iterable[tuple[int, Any]]) -> Traced:
    """Trace an answer to its task and to call results: (node, response), errors as text."""
    spans = stated(answer)
    claims = spans[:CLAIMS_LIMIT]
    if not claims:
        return Traced()
    known = _Known(
        _phrases(claims),
        frozenset(_lower(answer)),
        frozenset(_halves(claims)),
        frozenset(fold(one.text) for one in claims if one.bare),
    )
    room = TOTAL_LIMIT
    for node, response in ((TASK_NODE, task), *results):
        text, counts = said_by(response, min(room, SOURCE_LIMIT))
        room -= len(text)
        known.learn(node, text, counts)
    known.close()
    supported, unsupported = [], []
    for span in claims:
        found = known.support(span)
        if found is None:
            unsupported.append(Claim(text=span.text, kind=span.kind, start=span.start))
        elif found.sources:
            supported.append(found.claim(span))
    return Traced(tuple(supported), tuple(unsupported), len(spans) - len(claims))


@dataclass(frozen=True, slots=True)
class _Found:
    """Why a span is supported; no sources at all: it states nothing after all."""

    how: Support
    sources: frozenset[int]
    text: str = ""

    def claim(self, span: Span) -> Claim:
        text = self.text or span.text
        return Claim(
            text=text,
            kind=span.kind,
            start=span.start + span.text.find(text),
            how=self.how,
            nodes=tuple(sorted(self.sources - {TASK_NODE})),
            in_task=TASK_NODE in self.sources,
        )


@dataclass(slots=True)
class _Known:
    """What the sources say, by meaning. ``phrases`` are the token runs to look out for.

    ``lower`` are the words that the answer has in lower case, ``halves`` the names on both sides of
    an "of"; ``whole`` says where such a one is all that a value says. ``runs`` are names in scripts
    that put no blanks between words or no capitals on names: ``held`` says whose text has them.
    """

    phrases: dict[str, list[tuple[str, ...]]]
    lower: frozenset[str]
    halves: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    held: dict[str, Sources] = field(default_factory=lambda: defaultdict(set))
    whole: dict[str, Sources] = field(default_factory=lambda: defaultdict(set))
    said: dict[tuple[str, ...], Sources] = field(default_factory=lambda: defaultdict(set))
    numbers: dict[Decimal, Sources] = field(default_factory=lambda: defaultdict(set))
    counts: dict[int, Sources] = field(default_factory=lambda: defaultdict(set))
    days: dict[Day, Sources] = field(default_factory=lambda: defaultdict(set))
    clocks: dict[Clock, Sources] = field(default_factory=lambda: defaultdict(set))
    codes: dict[str, Sources] = field(default_factory=lambda: defaultdict(set))
    weekdays: dict[str, Sources] = field(default_factory=lambda: defaultdict(set))
    ordered: list[Decimal] = field(default_factory=list)

    def learn(self, source: int, text: str, counts: Iterable[int]) -> None:
        """Take in one source."""
        for count in counts:
            self.counts[count].add(source)
        self._read(source, typed(text))
        for line in text.split("\n") if self.halves else ():
            if line in self.halves:
                self.whole[line].add(source)
        folded = fold(text)
        for run in self.runs:
            if run in folded:
                self.held[run].add(source)
        tokens = _TOKEN.findall(folded)
        for at, token in enumerate(tokens):
            for phrase in self.phrases.get(token, ()):
                if tuple(tokens[at : at + len(phrase)]) == phrase:
                    self.said[phrase].add(source)

    def close(self) -> None:
        """Order the numbers, when all sources are known."""
        self.ordered = sorted(self.numbers)

    def support(self, span: Span) -> _Found | None:
        """Return what supports a claim, None when nothing does."""
        if span.kind == "number":
            return self._number(span)
        if span.kind == "name":
            return self._name(span)
        sources = {one for day in span.days for one in self.days.get(day, ())}
        for clock in span.clocks:
            sources |= self.clocks.get(clock, set())
        if span.code:
            sources |= self.codes.get(span.code, set())
        sources |= self.said.get(_tokens(span.text), set())
        return _Found("said", frozenset(sources)) if sources else None

    def _read(self, source: int, spans: Iterable[Span]) -> None:
        for span in spans:
            for value, _ in span.numbers:
                self.numbers[value].add(source)
            for day in span.days:
                self._day(source, day)
            for clock in span.clocks:
                self.clocks[clock].add(source)
                self.clocks[*clock[:2], None].add(source)
            if span.code:
                self.codes[span.code].add(source)
            if len(code := span.code or _bare(span)) >= _CODE_DIGITS and code.isdecimal():
                self.codes[code].add(source)
                self.numbers[Decimal(code)].add(source)
            if any(map(str.isspace, span.text)):  # each part may be said alone
                for part in span.text.split():
                    if _NUMERIC.search(part):
                        self._read(source, typed(part))

    def _day(self, source: int, day: Day) -> None:
        year, month, number = day
        for known in {day, (year, month, None), (None, month, number)}:
            self.days[known].add(source)
        if year is not None:
            self.numbers[Decimal(year)].add(source)
        if name := weekday(day):
            self.weekdays[name].add(source)

    def _number(self, span: Span) -> _Found | None:
        said, rounded = set[int](), set[int]()
        for value, half in span.numbers:
            for one in (value, -value) if span.below else (value,):
                said |= self.numbers.get(one, set())
                at = bisect_left(self.ordered, one - half) if one else len(self.ordered)
                while not said and at < len(self.ordered) and self.ordered[at] <= one + half:
                    rounded |= self.numbers[self.ordered[at]]
                    at += 1
        if said:
            return _Found("said", frozenset(said))
        if rounded:
            return _Found("rounded", frozenset(rounded))
        for value, _ in span.numbers:
            if value == value.to_integral_value() and (lists := self.counts.get(int(value))):
                return _Found("counted", frozenset(lists))
        return self._parts(span)

    def _parts(self, span: Span) -> _Found | None:
        """Try the parts of what may be several numbers with blanks between."""
        parts = span.text.split()
        if len(parts) < 2:
            return None
        sources = set[int]()
        for part in parts:
            for one in typed(part):
                found = self.support(replace(one, below=span.below))
                if found is None:
                    return None
                sources |= found.sources
        return _Found("said", frozenset(sources)) if sources else None

    def _name(self, span: Span) -> _Found | None:
        if span.bare:
            held = self.held.get(fold(span.text))
            return _Found("said", frozenset(held)) if held else None
        if sources := self.said.get(_tokens(span.text)):
            return _Found("said", frozenset(sources))
        if sources := self.weekdays.get(fold(span.text)):
            return _Found("said", frozenset(sources))
        for name in NAMES.get(span.text, ()):
            if sources := self.said.get(_tokens(name)):
                return _Found("said", frozenset(sources))
        halves = [self._half(one) for one in span.text.split(_OF)]
        if len(halves) > 1 and all(halves):
            return _Found("said", frozenset(set[int]().union(*halves)))
        if not span.opens:
            return None
        first, rest = fold(span.text.partition(" ")[0]), _rest(span.text)
        if not self._is_ordinary(first, value=span.alone and not rest):
            return None
        if fold(rest) in CLOSED or not rest:
            return _Found("said", frozenset())
        sources = self.said.get(_tokens(rest))
        return _Found("said", frozenset(sources), rest) if sources else None

    def _half(self, name: str) -> Sources:
        """Return who says a name on one side of an "of": as a whole value, or the task anywhere."""
        task = self.said.get(_tokens(name), set()) & {TASK_NODE}
        return self.whole.get(name, set()) | task

    def _is_ordinary(self, word: str, *, value: bool) -> bool:
        """Whether a word has its capital from its place; ``value``: one where a value stands."""
        if word in CLOSED or any(_tokens(one) in self.said for one in forms(word)):
            return True
        return not value and (opens_sentences(word) or not self.lower.isdisjoint(forms(word)))


def _phrases(claims: Sequence[Span]) -> dict[str, list[tuple[str, ...]]]:
    """Return the token runs of all claims but numbers, by their first token."""
    runs = {
        _tokens(text)
        for one in claims
        if one.kind != "number"
        for text in (
            one.text,
            *(_ways(one.text) if one.opens else ()),
            *NAMES.get(one.text, ()),
            *(one.text.split(_OF) if _OF in one.text else ()),
        )
    }
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for run in runs:
        if run:
            found[run[0]].append(run)
    return found


def _halves(claims: Sequence[Span]) -> Iterator[str]:
    """Yield the names on both sides of an "of" ("Lima of Peru")."""
    for one in claims:
        if one.kind == "name" and _OF in one.text:
            yield from one.text.split(_OF)


def _bare(span: Span) -> str:
    """Return the digits of a number without its separators."""
    return re.sub(r"\D", "", span.text) if span.kind == "number" else ""


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(fold(text)))


def _lower(text: str) -> Iterator[str]:
    """Yield the words that stand in lower case, folded."""
    return (fold(word) for word in _WORD.findall(text) if word[0].islower())


def _ways(name: str) -> tuple[str, ...]:
    """Return what else a name that opens a sentence may rest on: its other words, its first."""
    return (_rest(name), *forms(fold(name.partition(" ")[0])))


def _rest(name: str) -> str:
    """Return a name without its first word and the small words behind that."""
    rest = name.partition(" ")[2]
    while rest and not rest[0].isupper():
        rest = rest.partition(" ")[2]
    return rest

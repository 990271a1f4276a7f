"""Trace an answer: which call result, or the task, supports each of its claims.

A number is supported where a source has its value, or a longer one that rounds to it, with its
sign; a date or time where a source names the same day or minute in any spelling; a name or
identifier where its words stand in a source, accents and case aside. A capitalised word that opens
a sentence is a name unless it is an ordinary word: a common one, one that the answer has in lower
case too, or an inflection of a source's word. Where a value stands only the last counts. A
calculated value is unsupported, which is no proof of a mistake. Calls no model; knows no searches.

Cost: one pass over each source, O(characters) with at most ``SOURCE_LIMIT`` of each and
``TOTAL_LIMIT`` of all, ``CLAIMS_LIMIT`` claims of an answer, and O(log numbers) for each rounded
number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from toolsrv_registry.words import STOP_WORDS
from toolsrv_runtime.evidence.claims import (
    ClaimSpan,
    Clock,
    Day,
    fold,
    stated_spans,
    typed_spans,
    weekday,
)
from toolsrv_runtime.outcome import TASK_NODE, Claim, Support
from toolsrv_runtime.values.facts import response_text

CURRENCY_NAMES: Mapping[str, tuple[str, ...]] = {
    "AUD": ("australian dollar", "australian dollars"),
    "BRL": ("brazilian real", "brazilian reais"),
    "CAD": ("canadian dollar", "canadian dollars"),
    "CHF": ("swiss franc", "swiss francs"),
    "CNY": ("chinese yuan", "renminbi"),
    "EUR": ("euro", "euros", "\u20ac"),
    "GBP": ("pound sterling", "pounds sterling", "british pound", "british pounds"),
    "INR": ("indian rupee", "indian rupees", "\u20b9"),
    "JPY": ("yen", "japanese yen"),
    "KRW": ("south korean won", "\u20a9"),
    "MXN": ("mexican peso", "mexican pesos"),
    "USD": ("us dollar", "us dollars", "united states dollar", "united states dollars"),
}
"""By ISO 4217's code, folded; what several currencies are called ("dollar", "$") is left out."""


_CLOSED_TEXT = """
    a an the this that these those it its he she they we you i my your his her our their and or but
    so yes no yeah yep nope ok okay sure none nothing nobody n/a na nil null unknown unavailable
    undefined true false correct incorrect right wrong valid invalid available done sorry thanks
    api apis
    answer answers result results response summary note notes conclusion details overview
    explanation example examples sources source steps total warning tip disclaimer important
    la el los las le les il lo gli un una une uno der die das ein eine de het een os
"""
_COMMON_TEXT = """
    able access accord account across action add address adjust adult afternoon afterwards age ago
    ahead aim airline airport allow almost along alongside already alternative although always
    among amount animal another anyone anything anyway apart apologise apologize appear apply area
    around arrange arrival article artist aside ask assume attend aunt author autumn average avoid
    away back bank base basic bear become bed begin beginning believe belong best better beyond bid
    big bill bird bit black block blue body book border bottom boy breakfast briefly bring brother
    brown budget build bus button buy calculate calendar call camera cannot capital car care case
    cat category certain chance change character chart cheap check cheers chess child children
    choose citizen city class clear click client climate clock close cloudy coat code coin cold
    colleague college color colour combine come common company compare complete compute computer
    concert confirm consider contact contain continue contrary conversely convert cook cool copy
    cost count country county course create cup currency customer cut daily dance data date day
    deal dear death decide decimal decode decrease default degree delete delivery demand density
    departure depend depth design desire desk despite detect determine device difference different
    digit dinner discount dish distance divide doctor dog domain door double download dozen dr
    dream dress drink drive driver dry due earlier early earnings earth ease easily east eastern
    easy eat edge edition effect egg electricity else email employ employee encode end energy
    engine enjoy enough ensure enter entire entry equal error estimate even event ever every
    everyone everything evidence exact exam except exchange exclude exercise exist expect expensive
    experience expiry explain export extra extract eye face fact factor fail fair family farm fast
    father fee female fetch field figure file fill film filter financial find finger fire first
    fish fix flight floor flower fly folder follow food foot force forecast form format formerly
    formula free fresh friend front fruit fuel full furthermore gain game gas generate gift girl
    glass goal gold good grade graph grass gray great green grey ground group grow guess guest
    guide hair half hand happen happily head health heart heat heavy height hello help hence hereby
    hi high highest hill history hit hold holiday home hope horse hospital hot hotel hour house
    human humidity hundred husband ice id idea ideal identify illness image improve inch include
    income increase indeed index indicate info input insert inside install instead insurance
    interest internal invest invite issue item jacket job journey judge jump keep key keyword kid
    kind king kitchen knowledge known lack lake land lane language large largest last late later
    latest latitude laugh law lead leader learn least leave left lend length lesson letter level
    library lie life lift light likewise limit line link little live load loan long longest
    longitude look lose low lowest luckily lunch machine mail main major male manage manager manner
    many map market mass master match matter maximum maybe mayor meal mean meanwhile measure media
    medicine meet member memory men mention menu merely message metal meter method middle midnight
    mild mile milk mind minimum minor minute miss mix mode model moment money month moon moreover
    morning mother mountain mouse mouth move movie mr mrs ms much multiple multiply music name
    nation native nature nearby nearest nearly necessarily neck neighbor neighbour neither network
    never nevertheless new newest night nonetheless noon north northern notice number nurse object
    occur ocean offer office official often oil old oldest open option optional orange order
    original otherwise output outside overall owner pack page paint pair paper parameter parcel
    parent park part particularly partner party passenger password past path pay payment peak pen
    people per percent percentage perfect perform perhaps period permit person pet phase phone
    photo phrase pick picture piece pilot pink place plan plane planet platform play player plus
    poem point police pool possible post postcode pot pound power practice practise prefer prepare
    president price primarily prime prince princess print private prize problem proceed process
    produce product prof professor profile profit program programme progress project proof properly
    protect prove provide provider public pull purchase purple push put quality quantity quarter
    queen query quick quite race radio rail rain rainy raise random range rank rate rather ratio
    reach react read reader real reason recall receive recent recommend record red reduce refer
    regarding regardless region regularly rely remain remark remedy remember remind remove rent
    repair repeat replace reply report represent request require research resident respect rest
    restaurant retrieve return revenue reverse rice ride ring rise risk river road rock role roof
    room root round route row rule run sail salary sale salt sample sand save say scale scene
    schedule school science score sea search season seat second secret section security seed seem
    seldom select send sentence separate series serve service session set several shape share ship
    shirt shoe shoot shop short shorten shortest shower side sight sign signal silence silver
    similar simply since sing single sir sister sit site size skill skin sky sleep slight slow
    small smallest smell smoke snow soft soil solve sometimes somewhere song soon sort sound soup
    south southern spare speak specific specify speed spell spend sport spot spring square staff
    stage stand standard star start state station status stay step still stock stone stop store
    storm story straight strategy street stress string strong structure student study subject
    subtract success suddenly sugar suggest suit sum summer sun sunny sunrise sunset supply support
    suppose surface surprise survey sweet swim switch symbol system table take talent talk target
    task taste tax taxi tea teach teacher team technology telephone temperature term test text
    theme theory therefore thick thin third though thought threat throughout throw thus ticket tie
    time timezone title today together tomato tomorrow tone tonight tool tooth top touch tour
    tourist toward town track trade traffic train transfer translate travel tree trial trip trouble
    truck trust truth try tune turn twice twilight type umbrella uncle understand unit unity
    universe university unless unlike update upload upper url usage useful user username validate
    valley value various vary vehicle verb verify version versus via video view visibility visit
    visitor volume vote wage wait walk wall war warm warn waste watch water wave way weak wealth
    wear weather website wed week weekday weekend weight welcome west western wet whatever wheel
    whenever whereas wherever white whoever whole whose wide width wife wild win window windy wine
    wing winner winter wire wish without woman women wonder wood word work worker world worldwide
    wrap write writer yard year yellow yesterday yet youth zero zone
"""
FUNCTION_WORDS = frozenset(_CLOSED_TEXT.split())
"""Words that state nothing even where a value stands, and as headings of an answer."""

_COMMON = FUNCTION_WORDS | STOP_WORDS | frozenset(_COMMON_TEXT.split())
_ENDINGS = re.compile(
    r"\w{3,}(?:ically|ately|ently|antly|ously|ingly|edly|ably|ibly|ually|fully|essly|ively|ally|tely)"
    r"|\w{4,}(?:tions?|sions?|ments?|ities)"
)


@lru_cache(maxsize=4096)
def word_forms(word: str) -> tuple[str, ...]:
    """Return a folded word as it is, as its plural and as what it may be an inflection of."""
    found = [word, f"{word}s"]
    for ending, instead in (
        ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""),
        ("ing", "e"), ("ly", ""),
    ):  # fmt: skip
        if word.endswith(ending) and len(word) - len(ending) > 2:
            found.append(word[: -len(ending)] + instead)
    return tuple(dict.fromkeys(found))


def is_ordinary(word: str) -> bool:
    """Whether a folded word owes a capital at the start of a sentence to that place alone."""
    if not word.isascii():
        return True
    parts = re.split(r"['\u2019]", word)[0].split("-")
    return all(_ENDINGS.fullmatch(one) or not _COMMON.isdisjoint(word_forms(one)) for one in parts)


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
    spans = stated_spans(answer)
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
        text, counts = response_text(response, min(room, SOURCE_LIMIT))
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

    def claim(self, span: ClaimSpan) -> Claim:
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
        self._read(source, typed_spans(text))
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

    def support(self, span: ClaimSpan) -> _Found | None:
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

    def _read(self, source: int, spans: Iterable[ClaimSpan]) -> None:
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
                        self._read(source, typed_spans(part))

    def _day(self, source: int, day: Day) -> None:
        year, month, number = day
        for known in {day, (year, month, None), (None, month, number)}:
            self.days[known].add(source)
        if year is not None:
            self.numbers[Decimal(year)].add(source)
        if name := weekday(day):
            self.weekdays[name].add(source)

    def _number(self, span: ClaimSpan) -> _Found | None:
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

    def _parts(self, span: ClaimSpan) -> _Found | None:
        """Try the parts of what may be several numbers with blanks between."""
        parts = span.text.split()
        if len(parts) < 2:
            return None
        sources = set[int]()
        for part in parts:
            for one in typed_spans(part):
                found = self.support(replace(one, below=span.below))
                if found is None:
                    return None
                sources |= found.sources
        return _Found("said", frozenset(sources)) if sources else None

    def _name(self, span: ClaimSpan) -> _Found | None:
        if span.bare:
            held = self.held.get(fold(span.text))
            return _Found("said", frozenset(held)) if held else None
        if sources := self.said.get(_tokens(span.text)):
            return _Found("said", frozenset(sources))
        if sources := self.weekdays.get(fold(span.text)):
            return _Found("said", frozenset(sources))
        for name in CURRENCY_NAMES.get(span.text, ()):
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
        if fold(rest) in FUNCTION_WORDS or not rest:
            return _Found("said", frozenset())
        sources = self.said.get(_tokens(rest))
        return _Found("said", frozenset(sources), rest) if sources else None

    def _half(self, name: str) -> Sources:
        """Return who says a name on one side of an "of": as a whole value, or the task anywhere."""
        task = self.said.get(_tokens(name), set()) & {TASK_NODE}
        return self.whole.get(name, set()) | task

    def _is_ordinary(self, word: str, *, value: bool) -> bool:
        """Whether a word has its capital from its place; ``value``: one where a value stands."""
        if word in FUNCTION_WORDS or any(_tokens(one) in self.said for one in word_forms(word)):
            return True
        return not value and (is_ordinary(word) or not self.lower.isdisjoint(word_forms(word)))


def _phrases(claims: Sequence[ClaimSpan]) -> dict[str, list[tuple[str, ...]]]:
    """Return the token runs of all claims but numbers, by their first token."""
    runs = {
        _tokens(text)
        for one in claims
        if one.kind != "number"
        for text in (
            one.text,
            *(_ways(one.text) if one.opens else ()),
            *CURRENCY_NAMES.get(one.text, ()),
            *(one.text.split(_OF) if _OF in one.text else ()),
        )
    }
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for run in runs:
        if run:
            found[run[0]].append(run)
    return found


def _halves(claims: Sequence[ClaimSpan]) -> Iterator[str]:
    """Yield the names on both sides of an "of" ("Lima of Peru")."""
    for one in claims:
        if one.kind == "name" and _OF in one.text:
            yield from one.text.split(_OF)


def _bare(span: ClaimSpan) -> str:
    """Return the digits of a number without its separators."""
    return re.sub(r"\D", "", span.text) if span.kind == "number" else ""


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(fold(text)))


def _lower(text: str) -> Iterator[str]:
    """Yield the words that stand in lower case, folded."""
    return (fold(word) for word in _WORD.findall(text) if word[0].islower())


def _ways(name: str) -> tuple[str, ...]:
    """Return what else a name that opens a sentence may rest on: its other words, its first."""
    return (_rest(name), *word_forms(fold(name.partition(" ")[0])))


def _rest(name: str) -> str:
    """Return a name without its first word and the small words behind that."""
    rest = name.partition(" ")[2]
    while rest and not rest[0].isupper():
        rest = rest.partition(" ")[2]
    return rest

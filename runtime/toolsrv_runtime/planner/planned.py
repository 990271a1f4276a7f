"""Which of the functions on offer a whole task needs, and for which of its words, in what order.

The matcher reads each function beside the whole task, without a clause in mind: whether any of it
asks for that function, which words do, and whether the values are stated or are still to be
answered by another call. So a need is found by what serves it, however it is put; rules that look
for questions and orders (``needs``) see only what is left. Pure but for the matcher.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Match, MatchRequest, Slot, Span
from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner import clues, conversions, costs, then
from toolsrv_runtime.planner.calculating import calculator
from toolsrv_runtime.planner.later import later
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.need import Need
from toolsrv_runtime.planner.purposes import may_serve
from toolsrv_runtime.planner.reading import grounding, spans
from toolsrv_runtime.planner.reading.parts import split
from toolsrv_runtime.planner.scene import Scene, about
from toolsrv_runtime.values import arithmetic
from toolsrv_runtime.values.facts import words

PLANNED = 1.0
"""The matcher's log-odds from which on a function is one that the task needs."""

SERVED = 0.0
"""The log-odds for the whole task and for the clause, together, from which on it is a need."""

LEFT = -6.0
"""Those below which words that no function found are no need either."""

ALSO = 2.5
"""Those for the whole task from which on a function is needed whose clause went to another."""

SAME = 0.5
"""Share of the shorter of two clauses in common from which on a function serves them at once."""

AGAIN = 6.0
"""Nats behind the likeliest clause of a function within which another one is a need as well."""

SURE = 12.0
"""Those of a conversion that the task spells out."""

OVER = -3.0
"""Those for the clause, with what is answered by now, below which a function is needed no more."""

PROVIDES = -2.0
"""Those for the whole task from which on a function may answer what the needs wait for."""

_KNOWN = (conversions.converter, costs.calculator, then.converter)
"""What tells the function of some words without the matcher."""

_EDGES = " ,;:.!?"
_NUMBER = re.compile(r"[\s(]+\d{1,2}$")
_THERE = re.compile(r"\bthere\b", re.IGNORECASE)


class Planned:
    """The needs of one scene as the matcher sees them; none where it cannot be used."""

    def __init__(self, scene: Scene, prior: Reranker) -> None:
        self._scene = scene
        self._prior = prior

    @cached_property
    def needs(self) -> list[Need]:
        """The needs in the order in which the task tells them.

        Each clause that some function asks for goes to the one that serves it best; a function that
        gets one twice, once with a few words more, is needed once, and the second clause has to ask
        for it alone. What is to be worked out or converted comes first: other words may be about
        the result; so may they be about a recipe's amount for more people. So does a need in the
        words of another one: "365 in the main language of Hungary".
        """
        sums = [*self._sums(), *(one.words for one in conversions.find(self._scene.task))]
        sums += costs.wishes(self._scene)
        told = [*self._clauses(), *then.wishes(self._scene.task), *sums]
        best = [self._best(words) for words in dict.fromkeys(told)]
        found: list[Need] = []
        for need in sorted((one for one in best if one), key=lambda one: -one.serves):
            twice = [one for one in found if one.function == need.function]
            whole = self.matches[need.function.api.id].serves
            least = SERVED + whole if twice and need.words not in sums else SERVED
            if need.serves >= least and not any(_share(need, one) >= SAME for one in twice):
                found.append(need)
        found = [one for one in found if not self._only_tells(one, found)]
        found = [one for one in found if not self._is_quotation(one)] or found
        found = [one for one in found if not self._cuts_a_sign(one)]
        ordered = sorted(
            [*found, *self._also(found)],
            key=lambda one: (one.words not in sums, not _scales(one), one.begin, one.end),
        )
        return sorted(
            ordered,
            key=lambda one: sum(self._is_within(one, other) for other in ordered),
            reverse=True,
        )

    def _only_tells(self, need: Need, needs: Sequence[Need]) -> bool:
        """Whether a need's words ask for nothing and others ask for the same function.

        "My brother lives in Perth and I'm in Berlin. If I call at 8, what time is it for him?"
        """
        others = [one for one in needs if one.function == need.function and one is not need]
        return not self._asks(need) and any(map(self._asks, others))

    def _is_quotation(self, need: Need) -> bool:
        """Whether a need's words are no more than a text in quotation marks: the value of another."""
        return need.words.strip("\"'“”‘’«»") in spans.quoted(self._scene.task)

    def _cuts_a_sign(self, need: Need) -> bool:
        """Whether all that a function would be called with is a piece of an account's number."""
        task = self._scene.task
        stated = [task[one.begin : one.end] for one in self._stated(need.function.api)]
        return bool(stated) and all(clues.cuts(one, task) for one in stated)

    def _asks(self, need: Need) -> bool:
        """Whether a need's words hold a question, an order, or what goes on with one."""
        if "?" in self._scene.task[need.begin : need.end + 2]:
            return True
        return any(begin < need.end and need.begin < end for begin, end in self._asking)

    @cached_property
    def _asking(self) -> list[tuple[int, int]]:
        """Where in the task the parts stand that ask for something."""
        found: list[tuple[int, int]] = []
        at = 0
        for part in split(self._scene.task):
            at = max(at, self._scene.task.find(part.text, at))
            if part.asks or (part.goes_on and found):
                found.append((at, at + len(part.text)))
            at += len(part.text)
        return found

    def next(self, passed: Collection[Need] = ()) -> Need | None:
        """Return the first need without a call that has all it takes, else the first one.

        ``passed`` were tried already and gave no call.
        """
        left = [
            need
            for need in self.needs
            if need not in passed and not self._is_called(need) and not self._is_over(need)
        ]
        left = [replace(one, late=True) if self._has_inner(one) else one for one in left]
        ready = next((need for need in left if not self.waits(need)), None)
        if left and ready is None:  # for an answer that another function may give
            ready = next((one for one in self._providers() if one not in passed), left[0])
        more = later(self, self._scene, self._prior)
        return ready or next((need for need in more if need not in passed), None)

    def _has_inner(self, need: Need) -> bool:
        """Whether a call was made for another need in its words: no other function is meant now."""
        made = {(about(step), step.move.function) for step in self._scene.path if step.ok}
        return any(
            (one.words, one.function.name) in made and self._is_within(one, need)
            for one in self.needs
        )

    def _is_within(self, one: Need, other: Need) -> bool:
        """Whether a need's words are some of another one's, and point at nothing in these.

        "There" is where an answer for words before both lies: "the number in the language there".
        """
        inside = other.begin <= one.begin and one.end <= other.end
        if not inside or len(one.words) >= len(other.words):
            return False
        if not grounding.refers(one.words):
            return True
        before = (self._scene.task.find(about(step)) for step in self._scene.path if step.ok)
        return bool(_THERE.search(one.words)) and any(0 <= at < other.begin for at in before)

    def _providers(self) -> list[Need]:
        """Return what might answer a value that needs wait for, the likeliest first.

        "The sunrise in the biggest city of Chile": as long as nobody knows that city, less says
        that its finder is meant too.
        """
        called = {step.move.function for step in self._scene.attempts}
        needed = {need.function.name for need in self.needs}
        found = []
        for function in (one.function for one in self._scene.offers):
            match = self.matches.get(function.api.id)
            words = self.clause(function.api)
            if match is None or not words or function.name in called | needed:
                continue
            need = Need(words, self._scene.task.find(words), function, match.serves)
            if match.serves >= PROVIDES and not self.waits(need):
                found.append(need)
        return sorted(found, key=lambda one: -one.serves)

    def may_serve(self, words: str) -> bool:
        """Whether some function may serve words that none has found; True where nothing is known."""
        best = self._best(words)
        return best is None or best.serves >= LEFT

    def is_extra(self, step: Step) -> bool:
        """Whether a step was made for what the words might ask besides, now that more is known."""
        if any(one.function.name == step.move.function for one in self.needs):
            return False
        before = [about(one) for one in self._scene.path if one.ok]
        asking = (
            self.clause(one.function.api)
            for one in self._scene.offers
            if one.function.name == step.move.function
        )
        return bool(before) and (about(step) in before or about(step) in asking)

    def clause(self, api: Api) -> str:
        """Return the likeliest words that ask for a function, "" where nothing is known."""
        match = self.matches.get(api.id)
        return next(map(self._words, _clauses(match.clause)[:1]), "") if match else ""

    def _is_called(self, need: Need) -> bool:
        """Whether a call was made for it on this path, or failed anywhere."""
        failed = (step for step in self._scene.attempts if not step.ok)
        made = (*self._scene.path, *failed)
        calls = [one for one in made if about(one) == need.words]
        same = sum(one.words == need.words for one in self.needs)
        named = [one for one in made if one.move.function == need.function.name]
        return len(calls) >= same or any(about(one) in need.words for one in named)

    def _is_over(self, need: Need) -> bool:
        """Whether words that had an answer ask no more for a function with a call of its own."""
        made = [step for step in self._scene.path if step.ok]
        called = any(step.move.function == need.function.name for step in made)
        if not called or not any(about(step) == need.words for step in made):
            return False
        return Matched(self._scene, need.words, self._prior).serves(need.function.api) < OVER

    def waits(self, need: Need) -> bool:
        """Whether a value that it must have is neither stated by the task nor answered yet."""
        known = (one(need.words, self._scene) for one in _KNOWN)
        if any(offer is not None and offer.function == need.function for offer in known):
            return False
        api = need.function.api
        slots = self.matches[api.id].parameters
        open_ = [
            one
            for one in api.required
            if one.name in slots and not one.enum and _told(slots[one.name]) is None
        ]
        if not open_:
            return False
        matched = Matched(self._scene, need.words, self._prior)
        return not all(matched.is_answered(api, one) for one in open_)

    def _also(self, found: Sequence[Need]) -> Iterator[Need]:
        """Yield what the task needs too, in words that go to another function.

        "Decode this and write it in Morse code": one clause and two calls. A function that would
        take what another one takes does not go with that one, it might stand in for it.
        """
        taken = [span for need in found for span in self._stated(need.function.api)]
        chosen = {need.function.name for need in found}
        for offer in self._scene.offers:
            api = offer.function.api
            match = self.matches.get(api.id)
            if match is None or match.serves < ALSO or offer.function.name in chosen:
                continue
            stated = self._stated(api)
            if not api.required or any(a.touches(b) for a in stated for b in taken):
                continue
            for clause in filter(None, map(self._words, _clauses(match.clause)[:1])):
                if costs.calculator(clause, self._scene) or not may_serve(clause, api):
                    continue
                if stated or all(one.words != clause for one in found):
                    begin = self._scene.task.find(clause)
                    yield Need(clause, begin, offer.function, match.serves)

    def _stated(self, api: Api) -> list[Span]:
        """Return the likeliest words of the values that the task states for a function."""
        slots = self.matches[api.id].parameters if api.id in self.matches else {}
        found = [_told(slots[one.name]) for one in api.required if one.name in slots]
        return [one for one in found if one is not None]

    def _clauses(self) -> Iterator[str]:
        """Yield the words that functions find to ask for them."""
        for match in self.matches.values():
            if match.serves >= PLANNED:
                yield from filter(None, map(self._words, _clauses(match.clause)))

    def _sums(self) -> list[str]:
        """Return the words of what is to be worked out: no function has to find those."""
        task = self._scene.task
        return [
            task[one.begin : one.end] for one in arithmetic.find_arithmetic(task) if one.is_plain
        ]

    def _words(self, span: Span) -> str:
        """Return the words of a clause, without the number in "2)" where the next one begins."""
        task = self._scene.task
        words = task[span.begin : span.end].strip(_EDGES)
        if task[span.end : span.end + 1] == ")":
            words = _NUMBER.sub("", words).strip(_EDGES)
        return words

    def _best(self, words: str) -> Need | None:
        """Return some words with the function that serves them best; None where nothing is known."""
        matched = Matched(replace(self._scene, seen=()), words, self._prior)
        begin = self._scene.task.find(words)
        found = []
        for api, function in ((one.function.api, one.function) for one in self._scene.offers):
            if api.id in self.matches and may_serve(words, api):
                serves = self.matches[api.id].serves + matched.serves(api)
                found.append(Need(words, begin, function, serves))
        if units := conversions.converter(words, self._scene):
            return Need(words, begin, units.function, SURE, late=True)
        if zones := then.converter(words, self._scene):
            return Need(words, begin, zones.function, SURE, late=True)
        if product := costs.calculator(words, self._scene):
            return Need(words, begin, product.function, SURE, late=True)
        if sums := calculator(words, self._scene):
            return Need(words, begin, sums.function, max([SERVED, *(n.serves for n in found)]))
        return max(found, key=lambda one: one.serves, default=None)

    @cached_property
    def matches(self) -> dict[str, Match]:
        """API's id -> the matcher's view of it beside the whole task."""
        apis: Sequence[Api] = [offer.function.api for offer in self._scene.offers]
        found = self._prior.match(MatchRequest(self._scene.task), apis)
        return {api.id: match for api, match in zip(apis, found, strict=False)}


def _clauses(slot: Slot) -> list[Span]:
    """Return the likeliest clause, and others that are nearly as likely and do not touch it."""
    found: list[Span] = []
    for span in slot.best():
        apart = not any(span.touches(one) for one in found)
        if apart and (not found or span.score >= found[0].score - AGAIN):
            found.append(span)
    return found


def _scales(need: Need) -> bool:
    """Whether a function tells an amount for another number of people or pieces."""
    names = {words(one.name) for one in need.function.api.required}
    return any(f"wanted {name}" in names for name in names)


def _told(slot: Slot) -> Span | None:
    """Return the likeliest words, None where it is likelier that there are none."""
    best = slot.best(1)
    return best[0] if best and best[0].score > slot.none else None


def _share(one: Need, other: Need) -> float:
    both = min(one.end, other.end) - max(one.begin, other.begin)
    return max(0, both) / min(len(one.words), len(other.words))

"""What of a task still asks for a call: a second look at what a small model copied, or left out.

A model that copies one need at a time runs two together now and then, or ends too early. The rules
of ``parts`` find what asks for something, the retriever and the matcher say whether any function
serves it, the matcher alone whether a call has answered it. Pure but for these two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.purposes import is_bound, may_serve
from toolsrv_runtime.planner.reading import spans
from toolsrv_runtime.planner.reading.measures import origins
from toolsrv_runtime.planner.reading.parts import Part, split
from toolsrv_runtime.planner.readout import asks_what_it_says, reads
from toolsrv_runtime.planner.scene import Scene, about, news
from toolsrv_runtime.planner.totals import asks_what_it_comes_to, tells_a_price

NEED = 0.35
"""Prior from which on a part that asks for nothing in words is a need all the same."""

ASKED = 0.20
"""Prior from which on a part that asks for something is a need that some function serves."""

SERVED = 2.0
"""The matcher's log-odds from which on a part is a need, whatever its words are."""

PART_SHARE = 0.5
"""Share of the prior that comes from the part itself; the rest from what leads up to it."""

_COVERED = 0.5
_ENOUGH = 24
"""Characters of a long need, one with a quotation in it, that cover it."""

_NEXT = 12
"""Characters between what is told and the question about it: a stop and a joining word."""

_LIST = 4
"""Words of a need below which what follows it is more of a list than another need."""

_NUMBER = re.compile(r"\d+")
_ANOTHER = re.compile(
    r"(?:(?:and|or|but|then)\s+)?(?:(?:what|how) about\s+)?(?:(?:with|in|at|for|over|of|to|by)\s+)?"
    r"[^\w\s]?\d[\d.,]*(?:\s?%|\s?[^\W\d]+)?(?:\s+instead)?",
    re.IGNORECASE,
)
_SIGN = re.compile(r"\d|[^\w\s.,;:!?'’\"-]")
_IS_IT = re.compile(
    r"(?:is|are|was|were|does|do|would|will|can) (?:it|that|this|they|these|those)\b(?:\s+[^\W\d]+){1,5}",
    re.IGNORECASE,
)
_WHICH = re.compile(
    r"(?:(?:and|so|but)\s+)?(?:(?:in|on|at|from|to)\s+)?(?:which|what)\s+(?P<field>[^\W\d]+)\s+"
    r"(?:is|are|am|was|were|do|does|did|has|have|will|would)\s+"
    r"(?:i|you|he|she|it|we|they|this|that|these|those|my|our|his|her|its|their)\b[^\d\"“”:+#@/]*",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?:double[- ])?check (?:my|our|his|her|their|the|these|those) (?:[^\W\d]+ )?"
    r"(?:answers?|facts|sums|figures|work|homework|notes|results)\b[^\d\"“”:+#@/]*"
    r"|(?:(?:just|only) )?(?:(?:i )?(?:want|need) )?(?:to )?(?:be|make) (?:quite |really )?sure\b[^\d\"“”:+#@/]*"
    r"|(?:it|this|that|them|these|those) (?:on|for|at|by|before|when|because|so)\b[^\d\"“”:+#@/]*"
    r"|(?:does|do|did) (?:it|this|that|they) (?:really |actually )?(?:say|mean|read|spell) (?:that|so|it)\b[^\d\"“”:+#@/]*"
    r"|say [#+]?\d[\w.,:/%-]*"
    r"|(?:give|show|tell) me the (?:figures?|numbers?|proof|results?)(?: to (?:prove|show|settle|back)\b[^\d\"“”:+#@/]*)?"
    r"|where (?:do|does|will|would) (?:we|i|it|that|you|they) (?:land|end up|wind up)"
    r"|(?:which(?: one)?|what|who) (?:is|are|was|were) "
    r"(?:it|this|that|they|these|those|his|hers|theirs|mine|ours|yours)\b",
    re.IGNORECASE,
)
"""What only leads up to a wish, or says what it is for: "check my answers", "I want it on the cake"."""

_THIS = re.compile(r"\b(?:this|that|these|following|it)\b", re.IGNORECASE)
_UNDO = re.compile(r"(?:undo|revert)\b", re.IGNORECASE)
_IF = re.compile(
    r"(?:if|since|because|given|as|when (?:he|she|it|we|you|they|i) (?:keeps?|stays?|goes|drives?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A part of the task and where it stands."""

    part: Part
    begin: int
    end: int


class Needs:
    """The needs of one scene as rules, retriever and matcher see them."""

    def __init__(self, scene: Scene, prior: Reranker) -> None:
        self._scene = scene
        self._prior = prior
        self._placed = self._place()
        self._wanted = self._find()

    def first(self, words: str) -> str:
        """Return the words without what begins a second need in them."""
        begin = self._scene.task.find(words) if words else -1
        inside = _within(self._wanted, begin, begin + len(words))
        if begin < 0 or len(inside) < 2:
            return words
        if not inside[1].part.asks and len(inside[0].part.text.split()) < _LIST:
            return words  # the items of a list
        return self._scene.task[begin : inside[0].end]

    def next(self, words: str, taken: Collection[str]) -> str:
        """Return what is to be served next where a model copied ``words``; "" for nothing.

        Words that were taken already are not taken again, and a need that stands before them and
        was passed over comes first.
        """
        words = self._whole(self.first(words))
        begin = self._scene.task.find(words) if words else -1
        if begin < 0 or self._covered(begin, begin + len(words), taken) or self.is_answered(words):
            return self.left(taken)
        return self.left(taken, before=begin) or words

    def all_left(self, taken: Collection[str]) -> list[str]:
        """Return all that is left to be served, whether a function serves it or not, in turn."""
        found = list(taken)
        while (words := self.left(found)) and words not in found:
            found.append(words)
        left = found[len(taken) :]
        return [*left, *(words for words in self.open(found) if words not in left)]

    def open(self, taken: Collection[str]) -> list[str]:
        """Return what asks for something that no taken words cover, nothing polite.

        In a list of wishes also an item with a number that no call was made with, and a question
        that is no more than such a number: "And with 200?".
        """
        return [
            one.part.text
            for one in self._placed
            if self._is_left(one, taken)
            or self._is_passed_over(one, taken)
            or self._is_another_value(one, taken)
        ]

    def _is_left(self, one: _Placed, taken: Collection[str]) -> bool:
        return (
            one.part.asks
            and not one.part.is_polite
            and not _IF.match(one.part.text)
            and not self._covered(one.begin, one.end, taken)
            and not self.is_answered(one.part.text)
            and not (taken and self.adds_nothing(one.part.text, taken))
            and not self.is_yes_or_no(one.part.text)
        )

    def is_yes_or_no(self, words: str) -> bool:
        """Whether words ask no more than what a call for a mere statement has said yes or no to.

        "They sent us the number 5493. Before I type it in: is it a proper one?"
        """
        told = [step for step in self._scene.path if step.ok and not self.asks(about(step))]
        answers = {value.lower() for step in told for _, value in news(step)}
        return bool(_IS_IT.fullmatch(words)) and not answers.isdisjoint({"true", "false"})

    def _is_passed_over(self, one: _Placed, taken: Collection[str]) -> bool:
        """Whether an item of a list has numbers of its own and no call took any: "350 F in C".

        Words around it that were served do not make up for that.
        """
        made = self._numbers()
        items = [other for other in self._placed if other.part.goes_on]
        told = set(_NUMBER.findall(one.part.text)) if one in items else set()
        listed = any(made & set(_NUMBER.findall(other.part.text)) for other in items)
        return bool(told) and listed and not told & made and one.part.text not in taken

    def _is_another_value(self, one: _Placed, taken: Collection[str]) -> bool:
        """Whether a question only names another number, and no call was made with that."""
        told = set(_NUMBER.findall(one.part.text))
        asked = self._scene.task[one.end :].lstrip().startswith("?")
        left = asked and self._scene.path and _ANOTHER.fullmatch(one.part.text)
        return bool(left) and not told & self._numbers() and one.part.text not in taken

    def _numbers(self) -> set[str]:
        """Return the whole numbers that calls were made with, also as the task tells them."""
        made = [step for step in self._scene.path if step.ok]
        told = [text for step in made for text in (step.move.arguments, *self._origins(step))]
        return {number for text in told for number in _NUMBER.findall(text)}

    def _origins(self, step: Step) -> Iterator[str]:
        """Yield the numbers of the task that a call was made with in other units."""
        offers = (one for one in self._scene.offers if one.function.name == step.move.function)
        given = json.loads(step.move.arguments)
        for offer in offers:
            for key, parameter in offer.function.parameters.items():
                if key in given:
                    yield from origins(parameter, str(given[key]), self._scene.task)

    def is_open(self, words: str, taken: Collection[str]) -> bool:
        """Whether words that no function serves ask for something that no call has answered."""
        return (
            self.asks(words)
            and not self.is_answered(words)
            and not (taken and self.adds_nothing(words, taken))
            and not self.is_yes_or_no(words)
        )

    def adds_nothing(self, words: str, taken: Collection[str]) -> bool:
        """Whether all that words say stands in what was taken: "What's that?", "List the blocks"."""
        said = spans.content(" ".join(taken))
        return not _SIGN.search(words) and spans.content(words) <= said

    def asks(self, words: str) -> bool:
        """Whether the words ask for something, by the rules alone."""
        begin = self._scene.task.find(words)
        return any(one.part.asks for one in self._inside(begin, begin + len(words)))

    def is_talk(self, words: str, missing: Collection[str]) -> bool:
        """Whether words only lead up to wishes that nothing serves: then no call is made for them.

        "I found a book without its cover, only 978-0-14-143951-8 is left. Who wrote it?"
        ``missing`` are the words that nothing has served so far.
        """
        begin = self._scene.task.find(words)
        inside = self._inside(begin, begin + len(words))
        if any(one.part.asks or one.part.goes_on for one in inside):
            return False
        asking = [one.part.text for one in self._placed if one.part.asks and not one.part.is_polite]
        apis = [offer.function.api for offer in self._scene.offers]
        unserved = (
            is_bound(one) and not any(may_serve(one, api) for api in apis) for one in asking
        )
        return bool(missing) or (bool(asking) and all(unserved))

    def is_answered(self, words: str) -> bool:
        """Whether a call that was made serves the words best, and they state nothing of their own.

        "Is it a holiday, and if so, which one?" Or whether they only ask what a text says that one
        of them has decoded.
        """
        called = self._called()
        if not called or words not in self._scene.task or _UNDO.match(words) or is_bound(words):
            return False
        if any(_says_no_more(words, step) for step in self._scene.path if step.ok):
            return True
        if self._is_read_out(words) or self._is_told(words) or self._announces(words):
            return True
        if self._is_a_field(words) or _ASIDE.fullmatch(words):
            return True
        before = self._scene.task[: self._scene.task.find(words) + len(words)]
        alone, whole = (Matched(self._scene, one, self._prior) for one in (words, before))
        best = max(
            self._scene.offers,
            key=lambda one: alone.serves(one.function.api) + whole.serves(one.function.api),
            default=None,
        )
        return (
            best is not None
            and best.function.name in called
            and whole.serves(best.function.api) > 0
            and not alone.is_told_by(best.function.api)
        )

    def _called(self) -> set[str]:
        """Return the functions that answered, and those that are down with a call in their place."""
        made = [step for step in self._scene.path if step.ok]
        served = {about(step) for step in made}
        down = [step for step in self._scene.attempts if step.down and about(step) in served]
        return {step.move.function for step in (*made, *down)}

    def _is_read_out(self, words: str) -> bool:
        """Whether words ask no more than what a text says, and a call has decoded one."""
        task = self._scene.task
        apis = {offer.function.name: offer.function.api for offer in self._scene.offers}
        return asks_what_it_says(words, task[: task.find(words)]) and any(
            reads(step, apis[step.move.function], task)
            for step in self._scene.path
            if step.ok and step.move.function in apis
        )

    def _is_told(self, words: str) -> bool:
        """Whether words only ask what it comes to, and calls for what the task says have told that."""
        made = [step for step in self._scene.path if tells_a_price(step)]
        return asks_what_it_comes_to(words) and any(about(step) != words for step in made)

    def _is_a_field(self, words: str) -> bool:
        """Whether words only ask which of something a thing is in, and the last answer has that.

        "It was last seen at LIR. Which country is my suitcase in?"
        """
        match = _WHICH.fullmatch(words)
        names = (
            re.findall(r"(?<!^)\b[^\W\d_]*[A-Z]", words[match.start("field") :]) if match else []
        )
        made = [step for step in self._scene.path if step.ok]
        if match is None or names or not made:
            return False
        return match["field"].lower() in {name for name, _ in news(made[-1])}

    def _announces(self, words: str) -> bool:
        """Whether words only point at what stands behind their colon, and a call was made with that.

        "Can you read this for me: .... .."
        """
        behind = self._scene.task[self._scene.task.find(words) + len(words) :].lstrip()
        given = (
            str(value)
            for step in self._scene.path
            if step.ok
            for value in json.loads(step.move.arguments).values()
        )
        text = behind.lstrip(": \n\"'“‘")
        points = behind.startswith(":") and _THIS.search(words)
        return bool(points) and any(len(one) > 1 and text.startswith(one) for one in given)

    def _whole(self, words: str) -> str:
        """Return words that only tell something together with the question right behind them."""
        begin = self._scene.task.find(words) if words else -1
        end = begin + len(words)
        if begin < 0 or any(one.part.asks for one in self._inside(begin, end)):
            return words
        after = next((one for one in self._placed if one.begin >= end), None)
        if after is None or not after.part.asks or after.begin - end > _NEXT:
            return words
        return self._scene.task[begin : after.end]

    def _inside(self, begin: int, end: int) -> list[_Placed]:
        return _within(self._placed, begin, end)

    def left(self, taken: Collection[str], *, before: int | None = None) -> str:
        """Return the first need that no taken words cover, "" where all are.

        ``before`` is where in the task it has to end.
        """
        for one in self._placed:
            if before is not None and one.end > before:
                continue
            if self._is_passed_over(one, taken):
                return one.part.text
            covered = one not in self._wanted or self._covered(one.begin, one.end, taken)
            if not covered and not self.is_answered(one.part.text):
                return one.part.text
        return ""

    def _covered(self, begin: int, end: int, taken: Collection[str]) -> bool:
        spans = [(self._scene.task.find(words), len(words)) for words in taken]
        inside = sum(
            max(0, min(end, at + length) - max(begin, at)) for at, length in spans if at >= 0
        )
        return inside >= min(_COVERED * (end - begin), _ENOUGH)

    def _place(self) -> list[_Placed]:
        placed: list[_Placed] = []
        at = 0
        for part in split(self._scene.task):
            at = self._scene.task.find(part.text, at)
            placed.append(_Placed(part, at, at + len(part.text)))
            at += len(part.text)
        return placed

    def _find(self) -> list[_Placed]:
        """Return the parts that ask for something that an offered function serves.

        What is asked for in words is a need, so is what continues such a wish and fits another
        function, and so is whatever the matcher is sure of.
        """
        wanted: list[_Placed] = []
        before = -1
        for one in self._placed:
            if _IF.match(one.part.text):
                continue
            fit = self._fit(one.part)
            best = max(range(len(fit)), key=fit.__getitem__, default=-1)
            if best < 0:
                continue
            if one.part.asks:
                is_need = fit[best] >= ASKED
            else:
                other = best != before or one.part.text[:1].isdigit()
                is_need = one.part.goes_on and bool(wanted) and other and fit[best] >= NEED
            if is_need or (self._stands_alone(one) and self._serves(one.part) >= SERVED):
                wanted.append(one)
                before = best
        return wanted

    def _stands_alone(self, one: _Placed) -> bool:
        """Whether a part is not what leads up to a question: one itself, or behind the last."""
        asked = self._scene.task[one.end :].lstrip(" \"'”)").startswith("?")
        return asked or not any(
            other.part.asks and other.begin > one.begin for other in self._placed
        )

    def _serves(self, part: Part) -> float:
        """Return the log-odds that some function on offer serves a part; no answer changes it."""
        matched = Matched(replace(self._scene, seen=()), part.text, self._prior)
        apis = [offer.function.api for offer in self._scene.offers]
        return max(map(matched.serves, apis), default=0.0)

    def _fit(self, part: Part) -> list[float]:
        apis = [offer.function.api for offer in self._scene.offers]
        own = self._prior.scores(part.text, apis)
        if part.context == part.text:
            return list(own)
        around = self._prior.scores(part.context, apis)
        return [PART_SHARE * o + (1 - PART_SHARE) * a for o, a in zip(own, around, strict=True)]


def _says_no_more(words: str, step: Step) -> bool:
    """Whether words say what a call was about and what it was made with, and nothing else."""
    given = " ".join(map(str, json.loads(step.move.arguments).values()))
    return about(step) in words and spans.content(words) <= spans.content(f"{about(step)} {given}")


def _within(placed: Sequence[_Placed], begin: int, end: int) -> list[_Placed]:
    """Return what lies between two places for its larger part."""
    return [
        one
        for one in placed
        if min(one.end, end) - max(one.begin, begin) > _COVERED * (one.end - one.begin)
    ]

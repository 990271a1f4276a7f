"""Episodes: a task, the thoughts and calls that solve it, what the APIs answered, the end.

The teacher knows which API each need is for and what a person said of its values. Tasks are errands
(``instructions.errands``), or needs put side by side. The teacher makes the
mistakes worth learning from: an API fails and another does the same, nothing offered fits, a later
need refers to an earlier result. Text and layout are those of the compact format
(``toolsrv_runtime.planner.layout``), piece by piece, so that a model reads in use what it learnt.
Seeded; knows nothing about tokens.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolsrv_lab.instructions.compose import opening, tell
from toolsrv_lab.instructions.errands import Errand, ErrandStep, sources, swapped
from toolsrv_lab.nano.needs import Invented, Needs, ValuedNeed
from toolsrv_lab.nano.world import Answer, World
from toolsrv_lab.twins import does_the_same, twin_of
from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_runtime.planner import layout
from toolsrv_runtime.values import facts

OBSERVATION_LIMIT = 320
"""Characters of an observation, as in the compact profile."""

_CLAUSE_WORDS = 28
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_CHAINED, _UNSERVED = 0.25, 0.1
# A call fails this often where nothing else does the same, and where a twin does: what can be
# mended is to be learnt, not only giving up. Of the latter so many are mended.
_FAILS, _TWIN_FAILS, _MENDED = 0.06, 0.5, 0.75
# Lists with a twin of one of their APIs.
_TWINS = 0.35
# Errands keep their values, and begin without an opening of ours, this often.
_SWAPPED, _OPENED = 0.5, 0.15
_EPISODES, _ERRANDS = 4, 3
# A solve offers as many functions as the format numbers; half of the rows do.
_FULL = 0.5
# A function that a task needs is not offered: that need is left open.
_MISSED = 0.06
_REFERENCES = ("that {}", "this {}", "the {} you find", "the same {}", "the {} from that", "its {}")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of an episode.

    ``learned``: the model is to write it. ``markers``: it is layout, not text from outside, and
    may hold the format's markers.
    """

    text: str
    learned: bool = False
    markers: bool = False


@dataclass(frozen=True, slots=True)
class Episode:
    """The segments, the task's second, and for each need that is served its clause and number."""

    segments: tuple[Segment, ...]
    aims: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One list of functions and episodes that share it."""

    functions: tuple[Segment, ...]
    episodes: tuple[Episode, ...]


@dataclass(slots=True)
class _Wish:
    """A need on its way into a task: its functions in the order they are tried."""

    told: ValuedNeed
    numbers: list[int]
    answer: Answer | None
    failures: int = 0

    @property
    def said(self) -> list[str]:
        """The values that the task holds: no enumeration's and none of an earlier result."""
        listed = {one.name for one in self.told.api.parameters if one.enum}
        return [
            said
            for name, (_, said) in self.told.values.items()
            if name not in listed | self.told.referred
        ]


class Teacher:
    """Writes rows over the needs of some APIs."""

    def __init__(
        self,
        needs: Needs | Invented,
        world: World,
        near: Mapping[str, Sequence[Api]],
        weights: Sequence[float],
        errands: Sequence[Errand] = (),
        errand_share: float = 0.0,
        *,
        most: int = layout.MAX_FUNCTIONS,
    ) -> None:
        """Take the APIs with their needs, and ``most``: how many functions are offered."""
        self._errands = errands
        self._errand_share = errand_share if errands else 0.0
        self._needs = needs
        self._apis = needs.apis
        self._known = {api.id: api for api in self._apis}
        self._weights = weights
        self._world = world
        self._near = near
        self._most = most

    def row(self, rng: random.Random) -> Row | None:
        """Return a list of functions with up to four episodes, None where one did not work out."""
        errands: list[Errand] = []
        if rng.random() < self._errand_share:
            errands = self._some_errands(rng)
            golds = [self._known[one] for errand in errands for one in errand.apis]
            golds = golds or rng.choices(self._apis, self._weights, k=3)
        else:
            golds = rng.choices(self._apis, self._weights, k=rng.choice((1, 2, 3, 3)))
        offered = self._offered(golds, rng)
        functions = list(FunctionList(offered))
        if len(functions) != len(offered):
            return None
        lines = [Segment(layout.SYSTEM, markers=True)]
        lines += [Segment(layout.line(at, one)) for at, one in enumerate(functions, start=1)]
        told = [self._run(errand, functions, rng) for errand in errands]
        told += [self._episode(functions, rng) for _ in range(_EPISODES - len(told))]
        episodes = tuple(one for one in told if one is not None)
        return Row(tuple(lines), episodes) if episodes else None

    def _some_errands(self, rng: random.Random) -> list[Errand]:
        """Return errands that one list of functions serves."""
        chosen: list[Errand] = []
        needed: set[str] = set()
        for errand in rng.choices(self._errands, k=_ERRANDS):
            if len(needed | {*errand.apis}) <= self._most:
                chosen.append(errand)
                needed |= {*errand.apis}
        return chosen

    def _offered(self, golds: Sequence[Api], rng: random.Random) -> list[Api]:
        most = self._most
        found = {api.id: api for api in golds[:most]}
        if len(found) > 2 and rng.random() < _MISSED:
            del found[rng.choice(list(found))]
        least = min(most, max(2, len(found)))
        wanted = most if rng.random() < _FULL else rng.randrange(least, most + 1)
        doubled = rng.random() < _TWINS and len(found) < most
        for _ in range(4 * wanted):
            if len(found) >= wanted - doubled:
                break
            near = self._near.get(rng.choice(golds).id, ())
            other = rng.choice(near) if near and rng.random() < 0.75 else rng.choice(self._apis)
            found.setdefault(other.id, other)
        if doubled:
            twin = twin_of(rng.choice(golds), rng)
            found.setdefault(twin.id, twin)
        offered = list(found.values())
        rng.shuffle(offered)
        return offered

    def _episode(self, functions: Sequence[Function], rng: random.Random) -> Episode | None:
        own = [one for one in functions if one.api.id in {api.id for api in self._apis}]
        if not own:
            return None
        count = min(rng.choice((1, 1, 1, 2, 2, 3)), len(own))
        wishes: list[_Wish] = []
        for function in rng.sample(own, count):
            wish = self._wish(function, functions, wishes[-1] if wishes else None, rng)
            if wish is None:
                return None
            wishes.append(wish)
        if rng.random() < _UNSERVED:
            stranger = rng.choice(self._apis)
            related = {api.id for one in functions for api in self._near.get(one.api.id, ())}
            if stranger.id not in related | {one.api.id for one in functions}:
                at = rng.randrange(len(wishes) + 1)
                wish = _Wish(self._needs.tell(stranger, rng), [], None)
                # Alone now and then: a task that nothing serves.
                wishes = [wish] if rng.random() < 0.5 else [*wishes[:at], wish, *wishes[at:]]
        text = tell([one.told.text for one in wishes], wishes[0].told.api.category, rng).text
        task = layout.shown(text)
        clauses = [_clause(one.told.text, task) for one in wishes]
        if len(set(clauses)) < len(clauses):
            return None
        return self._complete_episode(task, wishes, clauses, functions, rng)

    def _run(
        self, errand: Errand, functions: Sequence[Function], rng: random.Random
    ) -> Episode | None:
        """Return the episode of an errand, with values of its own or others."""
        told = swapped(errand, self._needs.pools, _SWAPPED, rng)
        wishes = self._wishes(told, functions, rng)
        if wishes is None:
            told, wishes = errand, self._wishes(errand, functions, rng)
        if wishes is None:
            return None
        text = told.task
        if rng.random() < _OPENED:
            text = f"{opening('any', rng)} {text}"
        task = layout.shown(text)
        clauses = [_clause(step.words, task) for step in told.steps]
        return self._complete_episode(task, wishes, clauses, functions, rng)

    def _wishes(
        self, errand: Errand, functions: Sequence[Function], rng: random.Random
    ) -> list[_Wish] | None:
        """Return the steps with their answers, None where an API takes other values."""
        wishes: list[_Wish] = []
        seen: list[facts.Fact] = []
        for step in errand.steps:
            if not step.api:
                wishes.append(_Wish(ValuedNeed(self._apis[0], step.words, {}), [], None))
                continue
            if not {value.key for value in step.arguments.values()} <= {"", *dict(seen)}:
                return None  # it needs the result of a step that nothing serves
            told = _as_need(step, self._known[step.api], seen)
            wish = self._called(told, functions, rng)
            if wish is None:
                return None
            wishes.append(wish)
            if wish.answer is not None:
                found = facts.facts(wish.answer.response, limit=OBSERVATION_LIMIT)
                seen = [*found, *seen]
            elif wish.numbers:  # it fails, and the task with it
                return wishes
        return wishes

    def _complete_episode(
        self,
        task: str,
        wishes: Sequence[_Wish],
        clauses: Sequence[str],
        functions: Sequence[Function],
        rng: random.Random,
    ) -> Episode | None:
        """Return the episode of a task, None where a need or a value is not in its words."""
        clauses = clauses[: len(wishes)]
        if not all(clauses):
            return None
        if any(said not in task for one in wishes for said in one.said):
            return None  # typed otherwise: nothing to copy
        head = [
            Segment(layout.USER, markers=True),
            Segment(task),
            Segment(layout.THOUGHT, markers=True),
        ]
        aims = [
            (clause, one.numbers[0])
            for one, clause in zip(wishes, clauses, strict=True)
            if one.numbers
        ]
        solved = self._solved(wishes, clauses, functions, rng)
        return Episode((*head, *solved), tuple(aims))

    def _wish(
        self,
        function: Function,
        functions: Sequence[Function],
        before: _Wish | None,
        rng: random.Random,
    ) -> _Wish | None:
        told = self._needs.tell(function.api, rng)
        if before is not None and rng.random() < _CHAINED:
            told = self._referring(told, before, rng)
        return self._called(told, functions, rng)

    def _called(
        self, told: ValuedNeed, functions: Sequence[Function], rng: random.Random
    ) -> _Wish | None:
        """Return the need with what its call answers, None where the call is refused."""
        arguments = {name: value for name, (value, _) in told.values.items()}
        numbers = [
            at for at, one in enumerate(functions, start=1) if does_the_same(one.api, told.api)
        ]
        numbers.sort(key=lambda at: functions[at - 1].api.id != told.api.id)
        if not numbers:
            return _Wish(told, [], None)
        failures = 0
        if len(numbers) > 1 and rng.random() < _TWIN_FAILS:
            failures = 1 if rng.random() < _MENDED else len(numbers)
        elif len(numbers) == 1 and rng.random() < _FAILS:
            failures = 1
        if failures >= len(numbers):
            return _Wish(told, numbers, None, failures)
        answer = self._world.call(told.api, arguments, rng)
        return None if answer.error else _Wish(told, numbers, answer, failures)

    def _referring(self, told: ValuedNeed, before: _Wish, rng: random.Random) -> ValuedNeed:
        """Return the need with one value put as a reference to the result before it, if it can."""
        response = before.answer.response if before.answer else None
        found = facts.facts(response, limit=OBSERVATION_LIMIT)
        for name, (_, said) in told.values.items():
            parameter = next((one for one in told.api.parameters if one.name == name), None)
            fact = next((one for one in found if parameter and _meant(name, one[0])), None)
            if parameter is None or parameter.enum or fact is None or told.text.count(said) != 1:
                continue
            spoken = rng.choice(_REFERENCES).format(facts.words(fact[0]))
            values = {**told.values, name: (fact[1], fact[1])}
            text = told.text.replace(said, spoken)
            return ValuedNeed(told.api, text, values, frozenset({name}))
        return told

    def _solved(
        self,
        wishes: Sequence[_Wish],
        clauses: Sequence[str],
        functions: Sequence[Function],
        rng: random.Random,
    ) -> list[Segment]:
        out: list[Segment] = []
        groups: list[list[facts.Fact]] = []
        for wish, clause in zip(wishes, clauses, strict=True):
            if not wish.numbers:
                out += [Segment(clause, True), Segment(f"{layout.NOTHING}. ", True, True)]
                continue
            tried = 0
            for number in wish.numbers:
                if tried:
                    out.append(Segment(f"#{wish.numbers[tried - 1]} failed. ", True, True))
                failed = tried < wish.failures
                answer = wish.answer
                if failed or answer is None:
                    answer = self._world.failure(rng)
                out += _call(clause, number, functions[number - 1], wish.told)
                out += [
                    Segment(layout.OBSERVATION, markers=True),
                    Segment(_observation(answer)),
                    Segment(layout.THOUGHT, markers=True),
                ]
                tried += 1
                if not failed:
                    groups.append(facts.facts(answer.response, limit=OBSERVATION_LIMIT))
                    break
            if tried and tried <= wish.failures:
                out.append(Segment(f"#{wish.numbers[tried - 1]}{layout.GIVE_UP}", True, True))
                return out + _finish(layout.QUIT)
        if not groups:
            return out + _finish(layout.QUIT)
        out.append(Segment(layout.DONE, True, True))
        return out + _finish(layout.ANSWER, "; ".join(facts.sentence(one) for one in groups))


def _as_need(step: ErrandStep, api: Api, seen: Sequence[facts.Fact]) -> ValuedNeed:
    """Return a step as a need; what it takes from earlier answers, last first, is read there."""
    taken = sources(step.arguments, [name for name, _ in seen])
    values = {name: (one.value, one.said) for name, one in step.arguments.items()}
    values |= {name: (seen[at][1], seen[at][1]) for name, at in taken.items()}
    referred = frozenset(name for name, one in step.arguments.items() if one.key)
    return ValuedNeed(api, step.words, values, referred)


def _call(clause: str, number: int, function: Function, told: ValuedNeed) -> list[Segment]:
    out = [
        Segment(clause, True),
        Segment(f"{layout.USE}{number}", True, True),
        Segment(f"{layout.ACTION}{function.name}{layout.INPUT}", True, True),
        Segment("{", True, True),
    ]
    first = True
    for key, parameter in function.parameters.items():
        if parameter.name not in told.values:
            continue
        value, said = told.values[parameter.name]
        shown = facts.plain(value if parameter.enum else said)[: facts.VALUE_LIMIT].strip()
        if not shown:
            continue
        out.append(Segment(("" if first else ", ") + f'"{key}": "', True, True))
        out += [Segment(shown, True), Segment('"', True, True)]
        first = False
    return [*out, Segment("}", True, True)]


def _finish(text: str, answer: str = "") -> list[Segment]:
    out = [Segment(f"{layout.ACTION}Finish{layout.INPUT}{text}", True, True)]
    return [*out, Segment(answer, True), Segment('"}', True, True)] if answer else out


def _observation(answer: Answer) -> str:
    found = facts.facts(answer.response, limit=OBSERVATION_LIMIT)
    if answer.error and not any(name == "error" for name, _ in found):
        found.insert(0, ("error", facts.plain(answer.error)[: facts.VALUE_LIMIT]))
    return json.dumps(dict(found), ensure_ascii=False)


def _clause(text: str, task: str) -> str:
    """Return the words of the task that tell a need, its last sentence where it is a long story."""
    core = layout.shown(text).rstrip(" .?!")
    if len(core.split()) > _CLAUSE_WORDS:
        core = _SENTENCE.split(core)[-1]
    at = task.lower().find(core.lower())
    if at < 0 or not len(core) >= 2 or len(core.split()) > 2 * _CLAUSE_WORDS:
        return ""
    return task[at : at + len(core)]


def _meant(parameter: str, fact: str) -> bool:
    asked, has = facts.words(parameter), facts.words(fact)
    return bool(asked) and (asked == has or has.endswith(f" {asked}") or asked.endswith(f" {has}"))

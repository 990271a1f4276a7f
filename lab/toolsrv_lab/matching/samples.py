"""What the matcher learns from: a text, a clause of it, the API that serves it, where its values are.

Texts are the needs and whole tasks that were written for the catalogs (``instructions.written``,
``instructions.errands``), alone or side by side, with their own values or others of the same
parameter. Calls of the catalog that ships are made, so that a value that an earlier call answers is
known to stand there. Seeded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.instructions.compose import tell
from toolsrv_lab.instructions.errands import Errand, Step, errands, sources, swapped
from toolsrv_lab.nano.told import Needs, Told
from toolsrv_lab.nano.world import World
from toolsrv_lab.twins import does_the_same
from toolsrv_registry import pairing
from toolsrv_registry.api import Api
from toolsrv_runtime.formats import days, facts

Span = tuple[int, int, int]
"""Where a value stands: 0 for the text or the number of a fact, first and last character."""


class Sample(BaseModel):
    """A text and the API that serves one clause of it; ``api`` is "" where none does.

    ``clause`` is where it stands; ``facts`` are names and values that earlier calls answered.
    ``spans`` says of each parameter where its value stands, None where it has none; parameters
    that are not in it teach nothing. ``listed`` says of parameters with allowed values which of
    them is meant, the texts' own words or not. ``others`` are ids of APIs that do not serve the clause, the
    most telling first. ``whole``: the clause is not given but to be found, there are no facts,
    and ``others`` serve no clause of the text.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    clause: tuple[int, int]
    api: str
    spans: dict[str, Span | None] = {}
    listed: dict[str, str] = {}
    facts: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    whole: bool = False


class Plan(NamedTuple):
    """How many texts are made of each need, and of each errand, and how many needs share a text."""

    rounds: int = 2
    own_rounds: int = 2
    errand_rounds: int = 2
    joined: float = 0.5
    others: int = 8
    seed: int = 0


Near = Mapping[str, Sequence[str]]
"""API id -> ids of APIs like it, the nearest first."""

Nearest = Callable[[str], Sequence[str]]
"""Returns ids of the APIs nearest to a text."""


def need_samples(
    apis: Sequence[Api], near: Near, plan: Plan, *, rounds: int, progress: Callable[[int], None]
) -> Iterator[Sample]:
    """Yield samples of needs told alone or with up to two others, each API's once a round.

    ``progress`` is called with the number of needs done meanwhile.
    """
    rng = random.Random(f"{plan.seed}/needs/{rounds}")
    needs = Needs(apis)
    for _ in range(rounds):
        queue = needs.apis
        rng.shuffle(queue)
        while queue:
            count = rng.choice((2, 2, 3)) if rng.random() < plan.joined else 1
            chosen = [queue.pop() for _ in range(min(count, len(queue)))]
            told = [_dated(needs.tell(api, rng), rng) for api in chosen]
            yield from _joined(told, near, plan, rng)
            progress(len(chosen))


def errand_samples(
    apis: Sequence[Api],
    near: Near,
    nearest: Nearest,
    plan: Plan,
    *,
    progress: Callable[[int], None],
) -> Iterator[Sample]:
    """Yield samples of whole tasks over the catalog that ships; its calls are made.

    ``progress`` is called with the number of tasks done meanwhile.
    """
    known = {api.id: api for api in apis}
    pools = Needs(apis).pools
    told = [one for one in errands() if set(one.apis) <= known.keys()]
    with World(apis) as world:
        for number in range(plan.errand_rounds):
            for at, errand in enumerate(told):
                # Of its own: what an API answers now must not move what is drawn for the next.
                rng = random.Random(f"{plan.seed}/errands/{number}/{at}")
                variant = swapped(errand, pools, 0.6, rng) if number else errand
                yield from _steps(variant, known, world, near, nearest, plan, rng)
                yield from _whole_task(variant, known, near, nearest, plan, rng)
                progress(1)


def _dated(told: Told, rng: random.Random) -> Told:
    """Return a need with its one day told, now and then, by its distance from today.

    Where the words stand can be learnt of such a day, though not what is answered for it.
    """
    dated = [name for name, (value, _) in told.values.items() if _ISO.fullmatch(value)]
    if len(dated) != 1 or rng.random() > _RELATIVE:
        return told
    said = told.values[dated[0]][1]
    places = re.findall(rf"(?:\b(?:on|for|from|at) )?(?<!\w){re.escape(said)}(?!\w)", told.text)
    if len(places) != 1:
        return told
    word = rng.choice(days.NEAR)
    kept = "" if places[0].lower().startswith(("on ", "at ")) else places[0][: -len(said)]
    text = told.text.replace(places[0], kept + word)
    return replace(told, text=text, values={**told.values, dated[0]: (word, word)})


def _joined(told: Sequence[Told], near: Near, plan: Plan, rng: random.Random) -> Iterator[Sample]:
    whole = tell([one.text for one in told], told[0].api.category, rng).text
    at = 0
    for one in told:
        begin = whole.lower().find(one.text.lower().rstrip(" .?!"), at)
        if begin < 0:
            continue
        end = at = begin + len(one.text.rstrip(" .?!"))
        sample = Sample(
            text=whole,
            clause=(begin, end),
            api=one.api.id,
            spans={
                parameter.name: _span(whole, one.values[parameter.name][1], (begin, end))
                if parameter.name in one.values
                else None
                for parameter in one.api.parameters
                if parameter.name not in one.values
                or _span(whole, one.values[parameter.name][1], (begin, end))
            },
            listed=_listed(one.api, {name: value for name, (value, _) in one.values.items()}),
            others=_others(one.api.id, [o.api.id for o in told if o is not one], near, plan, rng),
        )
        yield sample
        asked = {o.api.id for o in told}
        others = tuple(other for other in sample.others if other not in asked)
        yield sample.model_copy(update={"whole": True, "others": others})


def _steps(
    errand: Errand,
    known: Mapping[str, Api],
    world: World,
    near: Near,
    nearest: Nearest,
    plan: Plan,
    rng: random.Random,
) -> Iterator[Sample]:
    seen: list[tuple[str, str]] = []
    answered: list[tuple[str, str]] = []
    for step in errand.steps:
        begin = errand.task.find(step.words)
        if begin < 0:
            return
        clause = _blurred(errand.task, (begin, begin + len(step.words)), rng)
        rest = [one for one in errand.apis if one != step.api]
        if not step.api:
            some = [one for one in nearest(step.words) if one not in rest]
            yield Sample(
                text=errand.task,
                clause=clause,
                api="",
                facts=tuple(seen),
                others=tuple([*rest, *some][: plan.others]),
            )
            continue
        api = known[step.api]
        arguments = {name: one.value for name, one in step.arguments.items() if not one.key}
        taken = sources(step.arguments, [name for name, _ in answered])
        arguments |= {name: answered[at][1] for name, at in taken.items()}
        yield Sample(
            text=errand.task,
            clause=clause,
            api=api.id,
            spans=_step_spans(step, api, errand.task, clause, seen, arguments),
            listed=_meant(step, api),
            facts=tuple(seen),
            others=_others(api.id, rest, near, plan, rng),
        )
        if len(arguments) < len(step.arguments):
            return
        answer = world.call(api, arguments, rng)
        if answer.error:
            return
        told = {
            name: text[: facts.VALUE_LIMIT] for name, text in facts.whole(answer.response).items()
        }
        # No news to the matcher, and still what a later call takes: a number that is drawn may
        # be one of the bounds that were given.
        answered = [*told.items(), *answered]
        given = set(arguments.values())
        seen = [*(one for one in told.items() if one[1] not in given), *seen][:_SEEN]


def _whole_task(
    errand: Errand,
    known: Mapping[str, Api],
    near: Near,
    nearest: Nearest,
    plan: Plan,
    rng: random.Random,
) -> Iterator[Sample]:
    """Yield a sample of each step with the task as it is read before any call.

    Beside it stand what a search for the task or a step finds and the task does not ask for.
    """
    asked = [known[one] for one in errand.apis]
    wide = [*nearest(errand.task)[: plan.others]]
    for words in (step.words for step in errand.steps if not step.api):
        wide += nearest(words)[: plan.others // 2]
    steps = [step for step in errand.steps if step.api] or errand.steps[:1]
    for step in steps:
        begin = errand.task.find(step.words)
        if begin < 0:
            continue
        clause = (begin, begin + len(step.words))
        beside = [one for one in [*near.get(step.api, ())[:4], *wide] if one not in errand.apis]
        rng.shuffle(beside)
        yield Sample(
            text=errand.task,
            clause=clause,
            api=step.api,
            spans=_told_spans(step, known[step.api], errand.task, clause) if step.api else {},
            listed=_meant(step, known[step.api]) if step.api else {},
            others=tuple(
                one
                for one in dict.fromkeys(beside)
                if not any(does_the_same(known[one], other) for other in asked)
            )[: plan.others],
            whole=True,
        )


_SEEN = 24
_RELATIVE = 0.3
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_EDGE = re.compile(r"[.?!;]\s|\n")


def _meant(step: Step, api: Api) -> dict[str, str]:
    return _listed(api, {n: one.value for n, one in step.arguments.items() if not one.key})


def _listed(api: Api, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are among their parameter's allowed ones, as far as these are read."""
    return {
        one.name: values[one.name]
        for one in api.parameters
        if values.get(one.name) in one.enum[: pairing.LISTED]
    }


def _told_spans(step: Step, api: Api, task: str, clause: tuple[int, int]) -> dict[str, Span | None]:
    """Return where the task states values: nowhere, where an earlier call is to answer them."""
    spans = _step_spans(step, api, task, clause, (), {})
    answered = [name for name, value in step.arguments.items() if value.key]
    return spans | dict.fromkeys(answered)


def _step_spans(
    step: Step,
    api: Api,
    task: str,
    clause: tuple[int, int],
    seen: Sequence[tuple[str, str]],
    given: Mapping[str, str],
) -> dict[str, Span | None]:
    spans: dict[str, Span | None] = {}
    taken = sources(step.arguments, [name for name, _ in seen])
    for parameter in api.parameters:
        value = step.arguments.get(parameter.name)
        if value is None:
            spans[parameter.name] = None
        elif value.key:
            at = taken.get(parameter.name)
            if at is not None and seen[at][1] == given.get(parameter.name):
                spans[parameter.name] = _whole(at + 1, seen[at][1])
        else:
            found = _span(task, value.said, clause)
            if found:
                spans[parameter.name] = found
    return spans


def _whole(number: int, value: str) -> Span:
    """Return where a fact's value stands, without the blanks around it: a value is words."""
    return number, len(value) - len(value.lstrip()), len(value.rstrip())


def _span(text: str, said: str, clause: tuple[int, int]) -> Span | None:
    """Return where a value stands: in the clause, else the nearest one before it, else after."""
    if not said.strip():
        return None
    places = [
        match.span()
        for match in re.finditer(rf"(?<!\w){re.escape(said)}(?!\w)", text, re.IGNORECASE)
    ]
    if not places:
        return None

    def far(place: tuple[int, int]) -> tuple[int, int]:
        if clause[0] <= place[0] and place[1] <= clause[1]:
            return 0, place[0]
        return (1, clause[0] - place[1]) if place[1] <= clause[0] else (2, place[0])

    begin, end = min(places, key=far)
    return 0, begin, end


def _blurred(text: str, clause: tuple[int, int], rng: random.Random) -> tuple[int, int]:
    """Return the clause, or what another reader of the text might have taken for it."""
    chance = rng.random()
    begin, end = clause
    if chance < 0.55:
        return clause
    if chance < 0.8:  # from where its sentence begins
        edges = [match.end() for match in _EDGE.finditer(text, 0, begin)]
        return (edges[-1] if edges else 0), end
    if chance < 0.9:  # to where it ends
        after = _EDGE.search(text, end)
        return begin, after.start() if after else len(text)
    return 0, len(text)


def _others(
    api: str, rest: Iterable[str], near: Near, plan: Plan, rng: random.Random
) -> tuple[str, ...]:
    close = [one for one in near.get(api, ()) if one != api]
    some = close[:4] + rng.sample(close[4:], min(len(close[4:]), plan.others))
    return tuple(dict.fromkeys([*(one for one in rest if one != api), *some]))[: plan.others]

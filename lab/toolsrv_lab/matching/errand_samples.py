"""Samples of needs and of whole tasks over the shipped catalog, step by step. Seeded."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from toolsrv_lab.instructions.compose import tell
from toolsrv_lab.instructions.errands import Errand, ErrandStep, errands, sources, swapped
from toolsrv_lab.matching.samples import (
    LATEST,
    Near,
    Nearest,
    Plan,
    Sample,
    Span,
    blurred,
    listed,
    others_like,
    span,
    whole,
)
from toolsrv_lab.nano.needs import Needs, ValuedNeed
from toolsrv_lab.nano.world import World
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api
from toolsrv_runtime.values import dates, facts

_RELATIVE = 0.3
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


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


def _dated(told: ValuedNeed, rng: random.Random) -> ValuedNeed:
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
    word = rng.choice(dates.NEAR_DAYS)
    kept = "" if places[0].lower().startswith(("on ", "at ")) else places[0][: -len(said)]
    text = told.text.replace(places[0], kept + word)
    return replace(told, text=text, values={**told.values, dated[0]: (word, word)})


def _joined(
    told: Sequence[ValuedNeed], near: Near, plan: Plan, rng: random.Random
) -> Iterator[Sample]:
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
                parameter.name: span(whole, one.values[parameter.name][1], (begin, end))
                if parameter.name in one.values
                else None
                for parameter in one.api.parameters
                if parameter.name not in one.values
                or span(whole, one.values[parameter.name][1], (begin, end))
            },
            listed=listed(one.api, {name: value for name, (value, _) in one.values.items()}),
            others=others_like(
                one.api.id, [o.api.id for o in told if o is not one], near, plan, rng
            ),
        )
        yield sample
        asked = {o.api.id for o in told}
        others = tuple(other for other in sample.others if other not in asked)
        yield sample.model_copy(update={"whole": True, "others": others})


_SEEN = 24
# So many clauses come again with their answer: nothing else is asked for then.
_ANSWERED = 0.5


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
        for number in range(plan.errand_rounds * (LATEST if plan.latest else 1)):
            for at, errand in enumerate(told):
                if number >= plan.errand_rounds and at < len(told) - plan.latest:
                    continue
                # Of its own: what an API answers now must not move what is drawn for the next.
                rng = random.Random(f"{plan.seed}/errands/{number}/{at}")
                variant = swapped(errand, pools, 0.6, rng) if number else errand
                yield from _steps(variant, known, world, near, nearest, plan, rng)
                yield from _whole_task(variant, known, near, nearest, plan, rng)
                progress(1)


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
        clause = blurred(errand.task, (begin, begin + len(step.words)), rng)
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
            others=others_like(api.id, rest, near, plan, rng),
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
        news = [one for one in told.items() if one[1] not in given] or [*told.items()]
        seen = [*news, *seen][:_SEEN]
        if rng.random() < _ANSWERED and told and not _is_shared(errand, step):
            beside = [*near.get(api.id, ())[: plan.others], *nearest(step.words)[: plan.others]]
            rng.shuffle(beside)
            wrong = [one for one in dict.fromkeys(beside) if one not in errand.apis]
            yield Sample(
                text=errand.task,
                clause=clause,
                api="",
                facts=tuple(seen),
                others=tuple(one for one in wrong if not does_the_same(known[one], api))[
                    : plan.others
                ],
            )


def _is_shared(errand: Errand, step: ErrandStep) -> bool:
    """Whether words of a step are words of another one: their answer leaves something open."""
    begin = errand.task.find(step.words)
    end = begin + len(step.words)
    for one in errand.steps:
        at = errand.task.find(one.words)
        if one is not step and at < end and begin < at + len(one.words):
            return True
    return False


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
            spans=_stated_spans(step, known[step.api], errand.task, clause) if step.api else {},
            listed=_meant(step, known[step.api]) if step.api else {},
            others=tuple(
                one
                for one in dict.fromkeys(beside)
                if not any(does_the_same(known[one], other) for other in asked)
            )[: plan.others],
            whole=True,
        )


def _meant(step: ErrandStep, api: Api) -> dict[str, str]:
    return listed(api, {n: one.value for n, one in step.arguments.items() if not one.key})


def _stated_spans(
    step: ErrandStep, api: Api, task: str, clause: tuple[int, int]
) -> dict[str, Span | None]:
    """Return where the task states values: nowhere, where an earlier call is to answer them."""
    spans = _step_spans(step, api, task, clause, (), {})
    answered = [name for name, value in step.arguments.items() if value.key]
    return spans | dict.fromkeys(answered)


def _step_spans(
    step: ErrandStep,
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
                spans[parameter.name] = whole(at + 1, seen[at][1])
        else:
            found = span(task, value.said, clause)
            if found:
                spans[parameter.name] = found
    return spans

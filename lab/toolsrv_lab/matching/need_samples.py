"""Samples of needs, told alone or side by side, with their own values or others. Seeded."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from toolsrv_lab.instructions.compose import tell
from toolsrv_lab.matching.places import listed, span
from toolsrv_lab.matching.samples import Near, Plan, Sample, others_like
from toolsrv_lab.nano.told import Needs, Told
from toolsrv_registry.api import Api
from toolsrv_runtime.values import dates

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
    word = rng.choice(dates.NEAR_DAYS)
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

"""What a teacher is given: a task with the calls that serve it.

Errands are whole tasks with their calls (``instructions.errands``); others are composed from needs
whose values are marked (``nano.told``). Seeded: an assignment depends on the seed and its number
alone. Knows nothing of files (``task_files``) or of how a task is solved.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from toolsrv_lab.instructions.compose import tell
from toolsrv_lab.instructions.errands import Step, Value, errands
from toolsrv_lab.nano.told import Needs, Told
from toolsrv_registry.api import Api

_SIZES = (1, 1, 1, 2, 2, 3)
_TAIL = " .?!"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task, the ``steps`` that serve it in their order, and what is offered besides their APIs.

    ``fails`` are ids of APIs that are down. ``unknown`` says why the steps are not known, empty
    where they are; then only a model can solve the task.
    """

    id: str
    task: str
    steps: tuple[Step, ...]
    candidates: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def apis(self) -> list[str]:
        """The ids of the APIs that are needed, once each."""
        return list(dict.fromkeys(step.api for step in self.steps if step.api))


def from_errands(known: Collection[str], seed: int) -> Iterator[Assignment]:
    """Yield the errands that APIs of these ids serve, in a drawn order."""
    told = list(enumerate(errands(), start=1))
    random.Random(f"{seed}/errands").shuffle(told)
    for number, one in told:
        if all(api_id in known for api_id in one.apis):
            yield Assignment(f"errand-{number}", one.task, one.steps)


def from_needs(apis: Sequence[Api], seed: int) -> Iterator[Assignment]:
    """Yield tasks of one to three needs over APIs that needs were written for, without end.

    Every API leads a task once per round; nothing where needs were written for none.
    """
    needs = Needs(apis)
    order: list[Api] = []
    number = 0
    while needs.apis:
        if not order:
            order = list(needs.apis)
            random.Random(f"{seed}/{number}/order").shuffle(order)
        number += 1
        yield _composed(needs, order.pop(), number, random.Random(f"{seed}/{number}"))


def taken(assignments: Iterator[Assignment], count: int | None) -> list[Assignment]:
    """Return the first ``count`` of them, all where that is None."""
    return list(islice(assignments, count))


def located(words: str, task: str) -> str:
    """Return the words as they stand in the task, without final punctuation."""
    core = words.strip().rstrip(_TAIL)
    at = task.lower().find(core.lower())
    return task[at : at + len(core)] if core and at >= 0 else core


def _composed(needs: Needs, first: Api, number: int, rng: random.Random) -> Assignment:
    known = needs.apis
    found = {first.id: first}
    for _ in range(rng.choice(_SIZES) - 1):
        near = [api for api in known if api.category == first.category]
        other = rng.choice(near if rng.random() < 0.5 else known)
        found.setdefault(other.id, other)
    told = [needs.tell(api, rng) for api in found.values()]
    task = tell([one.text for one in told], first.category, rng).text
    steps = tuple(_step(one, task) for one in told)
    return Assignment(f"need-{number}", task, steps)


def _step(told: Told, task: str) -> Step:
    values = {name: Value(value, said) for name, (value, said) in told.values.items()}
    return Step(located(told.text, task), told.api.id, values)

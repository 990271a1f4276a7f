"""What of a task no call has served, where calls do not say what they are for.

The needs of the task are found as the compact format finds them (``needs``). The matcher says
which of them a call's function serves. One that states a value ("the currency of Chile") was
served by a call with that value, and by none with another need's. Pure but for retriever and
matcher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.contract.hints import MadeCall
from toolsrv_runtime.planner.matched import Matched, holds
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.scene import Offer, Scene

SERVES = 0.0
"""The matcher's log-odds from which on a function serves a need."""


def unserved(
    task: str, functions: Sequence[Function], results: Iterable[MadeCall], prior: Reranker
) -> tuple[str, ...]:
    """Return the needs of ``task`` that no successful call served, in its words and order.

    ``functions`` are all that were on offer. None where the task says nothing that a rule knows as
    a need.
    """
    needs = _needs(_scene(task, functions), prior)
    made = [one for one in results if one.ok]
    called = [one for one in functions if any(one.api.id == call.api_id for call in made)]
    scene = _scene(task, called)
    found = []
    for need in needs:
        matched = Matched(scene, need, prior)
        states = {
            one.api.id: matched.is_told_by(one.api)
            for one in called
            if matched.serves(one.api) >= SERVES
        }
        if not any(
            not states[one.api_id] or _may_be_for(one, need, needs)
            for one in made
            if one.api_id in states
        ):
            found.append(need)
    return tuple(found)


def _scene(task: str, functions: Sequence[Function]) -> Scene:
    offers = tuple(Offer(number, one) for number, one in enumerate(functions, start=1))
    return Scene(task, offers, (), (), ())


def _needs(scene: Scene, prior: Reranker) -> list[str]:
    """Return what the task asks for, whether a function serves it or not."""
    return sorted(Needs(scene, prior).all_left(()), key=scene.task.find)


def _may_be_for(call: MadeCall, need: str, needs: Sequence[str]) -> bool:
    """Whether a need has a value of a call in its words, or none has: it may be put another way."""
    values = list(_texts(call.arguments))
    having = [one for one in needs if any(holds(one, value) for value in values)]
    return not having or need in having


def _texts(value: Any) -> Iterator[str]:
    """Yield the single values of arguments as a task would write them: 15.0 as 15."""
    match value:
        case dict():
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case str():
            yield value
        case bool() | None:
            pass
        case float():
            yield f"{value:g}"
        case _:
            yield str(value)

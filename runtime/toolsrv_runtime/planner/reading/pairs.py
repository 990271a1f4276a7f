"""Two things that are compared, the first and the second as the task tells them. Pure.

"How alike are 'red car, big' and 'big red car'?": each quotation whole, in its order.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import spans
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds as patterns
from toolsrv_runtime.values.facts import words

_ORDERED = (("first", "second"), ("1", "2"), ("a", "b"))


def keys(api: Api) -> tuple[Parameter, Parameter] | None:
    """Return the two parameters of a function that are one as the other, but for their order."""
    if len(api.required) != 2:
        return None
    first, second = api.required
    names = [words(one.name).lower().replace("text", "").strip() for one in (first, second)]
    kinds = {patterns.value_kind(one, api) for one in (first, second)}
    alike = len(kinds) == 1 or kinds == {"text", ""}
    return (first, second) if alike and tuple(names) in _ORDERED else None


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the quotation for one of two texts where the part, or else the task, has just two."""
    pair = keys(api)
    if (
        pair is None
        or patterns.value_kind(parameter, api) not in {"text", ""}
        or parameter not in pair
    ):
        return ""
    for text in (wish.part, wish.task):
        quotations = list(dict.fromkeys(spans.quoted(text)))
        if len(quotations) == 2:
            return quotations[pair.index(parameter)]
    return ""


def ordered(api: Api, arguments: Mapping[str, str], task: str) -> dict[str, str]:
    """Return a call's arguments with the two things in the task's order, where it has each once."""
    pair = keys(api)
    names = [one.name for one in pair] if pair else []
    values = [arguments.get(one, "") for one in names]
    if len(values) != 2 or any(task.count(one) != 1 for one in values):
        return dict(arguments)
    return {**arguments, **dict(zip(names, sorted(values, key=task.find), strict=True))}

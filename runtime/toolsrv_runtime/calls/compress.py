"""A response as a model reads it: JSON within a budget of the model's tokens, or of characters.

What fits is shown whole. Else the part that the API's response schema names is taken, if there is
one (paper, A.2: compress what is longer than the limit, then cut), and what is still too long is
shortened by rules of our own (``shorten``). The whole response stays with the call's evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolsrv_runtime.calls.by_schema import by_schema
from toolsrv_runtime.calls.shorten import shortened
from toolsrv_runtime.calls.sizes import size

_TRIES = 8
"""Times that a text is shortened further, in proportion, before it is simply cut."""


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``most`` of what ``measure`` counts in a text, each worth ``reach`` characters or less."""

    most: int
    measure: Callable[[str], int] = len
    reach: int = 1

    def holds(self, text: str) -> bool:
        """Whether a text is short enough."""
        return self.measure(text) <= self.most


def compressed(value: Any, budget: Budget, schema: Any = None) -> str:
    """Return a JSON value as text within a budget; JSON unless the budget is below 40 characters.

    ``schema`` says which keys of an object are worth keeping; one that names none is passed over.
    """
    room = budget.most * budget.reach
    if size(value, room) <= room:
        whole = shortened(value, room)
        if budget.holds(whole):
            return whole
    if schema and isinstance(value, dict):
        value = by_schema(value, schema) or value
    return _within(value, budget)


def _within(value: Any, budget: Budget) -> str:
    room = budget.most * budget.reach
    for _ in range(_TRIES):
        text = shortened(value, room)
        if budget.holds(text):
            return text
        room = min(room, len(text)) * budget.most * 9 // (budget.measure(text) * 10)
    while text and not budget.holds(text):
        text = text[: len(text) // 2]
    return text

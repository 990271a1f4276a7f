"""Which words of a task are a call's arguments: the matcher's reading, as a hint to the model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked
from toolsrv_runtime.formats.base import Prior

LIKELY = 0.5
"""Probability from which on a value is taken to stand in the task."""

MOST_FUNCTIONS = 3
"""Functions for which words are named; more confuse a small model."""


def words(task: str, function: Function, prior: Prior) -> dict[str, str]:
    """Return argument key -> the words of the task that the matcher takes for its value."""
    matches = prior.match(Asked(task), [function.api])
    if not matches:
        return {}
    slots = matches[0].parameters
    found = {}
    for key, parameter in function.parameters.items():
        slot = slots.get(parameter.name)
        if slot is None or parameter.enum or math.exp(slot.none) > 1 - LIKELY:
            continue
        spans = slot.best(1)
        if spans and not spans[0].source:
            found[key] = task[spans[0].begin : spans[0].end].strip()
    return {key: text for key, text in found.items() if text}


def hint(task: str, functions: Sequence[Function], prior: Prior) -> str:
    """Return one line for each function: its name and the words for its arguments."""
    lines = []
    for function in functions[:MOST_FUNCTIONS]:
        if found := words(task, function, prior):
            pairs = ", ".join(
                f"{key} from {json.dumps(text, ensure_ascii=False)}" for key, text in found.items()
            )
            lines.append(f"{function.name}: {pairs}")
    return "\n".join(lines)

"""What the words of a task are as a value that an API reads: with what stands behind or beside them.

Pure.
"""

from __future__ import annotations

import re

from toolsrv_runtime.planner.reading import ranges
from toolsrv_runtime.values import arithmetic, kinds

# "64 degrees north, 21.95 west", "3 semitones down": what follows a value makes it less.
_LESS = re.compile(
    r"\s?°?\s?(?:[WS]\b|(?:degrees )?(?:west|south)\b|semitones? (?:down|lower)\b"
    r"|(?:days?|weeks?|months?|years?) (?:before|ago|earlier|back)\b)"
)


def read(kind: str, said: str, task: str) -> str:
    """Return words of ``task`` as an API reads a value of their kind (``kinds.value_kind``)."""
    if kind in {"number", "coordinate"}:
        at = task.find(said)
        behind = _LESS.match(task, at + len(said)) if at >= 0 else None
        if behind:
            said += behind[0]
    if kind == "date":
        said = ranges.completed(said, task)
    return kinds.normalise_value(kind, said)


def looks(kind: str, said: str, task: str) -> bool:
    """Whether words read as a value of a typed kind; of the others all do."""
    if kind in kinds.LOOSE_KINDS:
        return True
    if kind == "expression" and (sums := arithmetic.find_arithmetic(task)):
        return any(said == task[one.begin : one.end] for one in sums)
    value = read(kind, said, task)
    return value in kinds.find_values(kind, value)

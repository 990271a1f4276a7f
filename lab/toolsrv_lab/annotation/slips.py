"""The mistakes that a teacher makes on purpose, drawn so that the search has room to mend them.

``function``: another function that is on offer is called first. ``missing``, ``argument``: a
required argument is left out, or has another value. ``failing``: the API is down, with or without
another that does the same. ``unoffered``: the function is not offered at first. After a mistake the
teacher goes on below it, or leaves the branch (``quits``), as models do both. Pure and seeded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolsrv_lab.instructions.errands import Step
from toolsrv_registry.api import Api

Kind = Literal["function", "missing", "argument", "failing", "unoffered"]

NODES_OF_A_CALL = 3
"""A reply with a thought and a call is three nodes of the tree."""

_KINDS: tuple[tuple[Kind, float], ...] = (
    ("function", 0.3), ("missing", 0.15), ("argument", 0.2), ("failing", 0.27), ("unoffered", 0.08),
)  # fmt: skip
_QUITS, _TWIN = 0.5, 0.65


@dataclass(frozen=True, slots=True)
class Slip:
    """One mistake. ``twin``: an API that does the same is offered beside the one that fails."""

    kind: Kind
    quits: bool = False
    twin: bool = False


def rounds(depth: int) -> int:
    """Return how many replies with a call a path of ``depth`` nodes has room for."""
    return -(-depth // NODES_OF_A_CALL)


def needed_rounds(steps: Sequence[Step]) -> int:
    """Return how many replies solve a task without a mistake, Finish included."""
    return sum(bool(step.api) for step in steps) + 1


def drawn(
    steps: Sequence[Step],
    apis: Mapping[str, Api],
    share: float,
    *,
    width: int,
    depth: int,
    rng: random.Random,
) -> dict[int, Slip]:
    """Return step -> mistake for about this share of the steps, where the search can mend it."""
    found: dict[int, Slip] = {}
    spare = rounds(depth) - needed_rounds(steps)
    before = 0  # replies on the path above the step
    for at, step in enumerate(steps):
        if not step.api:
            continue
        slip = _drawn(step, apis[step.api], rng) if rng.random() < share else None
        room = before + 2 <= rounds(depth)  # the mistake and the give-up
        if slip is not None and not _is_silent(slip):
            if slip.quits and (width < 2 or not room):
                slip = Slip(slip.kind, twin=slip.twin)
            if not slip.quits and spare < 1:
                slip = Slip(slip.kind, quits=True, twin=slip.twin) if room and width > 1 else None
            if slip is not None and not slip.quits:
                spare -= 1
                before += 1
        if slip is not None:
            found[at] = slip
        before += 1
    # An API that fails, fails for each step that calls it: a mistake of another kind would come on top.
    failing = {steps[at].api for at, slip in found.items() if slip.kind == "failing"}
    return {
        at: slip
        for at, slip in found.items()
        if slip.kind == "failing" or steps[at].api not in failing
    }


def _drawn(step: Step, api: Api, rng: random.Random) -> Slip:
    kinds, weights = zip(*_KINDS, strict=True)
    kind: Kind = rng.choices(kinds, weights)[0]
    given = {name for name in step.arguments if name in {one.name for one in api.required}}
    if (kind == "missing" and not given) or (kind == "argument" and not step.arguments):
        kind = "function"
    return Slip(kind, quits=rng.random() < _QUITS, twin=rng.random() < _TWIN)


def _is_silent(slip: Slip) -> bool:
    """Whether the mistake is the catalog's and costs no reply."""
    return slip.kind == "unoffered"

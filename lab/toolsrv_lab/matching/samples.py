"""What the matcher learns from: a text, a clause of it, the API that serves it, where its values are.

Texts are the needs and whole tasks that were written for the catalogs (``instructions.written``,
``instructions.errands``): ``need_samples`` and ``errand_samples`` make samples of them. Here is what
they have in common.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

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


LATEST = 4


class Plan(NamedTuple):
    """How many texts are made of each need, and of each errand, and how many needs share a text.

    ``latest`` of the errands, the last ones, are told ``LATEST`` times as often: a matcher that
    goes on from another one has seen the rest.
    """

    rounds: int = 2
    own_rounds: int = 2
    errand_rounds: int = 2
    latest: int = 0
    joined: float = 0.5
    others: int = 8
    seed: int = 0


Near = Mapping[str, Sequence[str]]
"""API id -> ids of APIs like it, the nearest first."""

Nearest = Callable[[str], Sequence[str]]
"""Returns ids of the APIs nearest to a text."""


def others_like(
    api: str, rest: Iterable[str], near: Near, plan: Plan, rng: random.Random
) -> tuple[str, ...]:
    """Return APIs that do not serve what ``api`` does: ``rest``, and some like it."""
    close = [one for one in near.get(api, ()) if one != api]
    some = close[:4] + rng.sample(close[4:], min(len(close[4:]), plan.others))
    return tuple(dict.fromkeys([*(one for one in rest if one != api), *some]))[: plan.others]

"""Samples that the matcher learns from: text, clause, serving API, and places of its values. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_registry import pairing
from toolsrv_registry.api import Api

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


_EDGE = re.compile(r"[.?!;]\s|\n")


def listed(api: Api, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are among their parameter's allowed ones, as far as these are read."""
    return {
        one.name: values[one.name]
        for one in api.parameters
        if values.get(one.name) in one.enum[: pairing.LISTED]
    }


def whole(number: int, value: str) -> Span:
    """Return where a fact's value stands, without the blanks around it: a value is words."""
    return number, len(value) - len(value.lstrip()), len(value.rstrip())


def span(text: str, said: str, clause: tuple[int, int]) -> Span | None:
    """Return where a value stands: in the clause, else the nearest one before it, else after."""
    if not said.strip():
        return None
    places = [
        match.span()
        for match in re.finditer(rf"(?<!\w){re.escape(said)}(?!\w)", text, re.IGNORECASE)
    ]
    if not places:
        return None

    def far(place: tuple[int, int]) -> tuple[int, int]:
        if clause[0] <= place[0] and place[1] <= clause[1]:
            return 0, place[0]
        return (1, clause[0] - place[1]) if place[1] <= clause[0] else (2, place[0])

    begin, end = min(places, key=far)
    return 0, begin, end


def blurred(text: str, clause: tuple[int, int], rng: random.Random) -> tuple[int, int]:
    """Return the clause, or what another reader of the text might have taken for it."""
    chance = rng.random()
    begin, end = clause
    if chance < 0.55:
        return clause
    if chance < 0.8:  # from where its sentence begins
        edges = [match.end() for match in _EDGE.finditer(text, 0, begin)]
        return (edges[-1] if edges else 0), end
    if chance < 0.9:  # to where it ends
        after = _EDGE.search(text, end)
        return begin, after.start() if after else len(text)
    return 0, len(text)

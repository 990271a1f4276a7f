"""Where in a text, or in the answer of a call, a value of a sample stands. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from toolsrv_lab.matching.samples import Span
from toolsrv_registry import pairing
from toolsrv_registry.api import Api

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

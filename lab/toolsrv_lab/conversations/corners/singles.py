"""Episodes with one call: dates, numbers, options, texts."""

from __future__ import annotations

from random import Random
from typing import Any

from toolsrv_lab.conversations.corners.catalog import FAMILIES, Family
from toolsrv_lab.conversations.corners.tasks import Corner, carried, offer, step_of
from toolsrv_lab.conversations.episode import Episode


def single(corner: Corner, family: Family, **more: Any) -> Episode:
    """Return an episode with one call."""
    need = corner.need(family, **more)
    need.respond()
    task, found = corner.task([carried(need.kind, need.fragment, "0", corner.rng)])
    sentence = need.sentence()
    step = step_of(need, found, sentence=sentence)
    functions = offer([need.drawn.offered], [family], corner.style, corner.rng)
    return corner.episode(task, functions, [step], sentence)


def families_with(*kinds: str) -> list[Family]:
    """Return the families that have a parameter of one of these kinds."""
    return [
        f for f in FAMILIES.values() if any(p.kind.split()[0] in kinds for p in f.params.values())
    ]


_DATED = families_with(
    "date", "pdate", "rs", "prs", "dt", "dts", "time", "weekday", "month", "year"
)

_NUMBERED = families_with(
    "int",
    "num",
    "pct",
    "money",
    "cur",
    "country",
    "lang",
    "qty",
    "dur_min",
    "dur_s",
    "mass_g",
    "len_cm",
)

_OPTIONAL = [f for f in FAMILIES.values() if f.says]

_TEXTS = [
    f
    for f in FAMILIES.values()
    if any(p.kind.startswith("@@") or p.kind in {"email", "url"} for p in f.params.values())
    or any("@file" in p.kind or p.kind.startswith("code") for p in f.params.values())
]


def dates(rng: Random) -> Episode:
    """Dates and times in the format of the schema."""
    return single(Corner(rng), rng.choice(_DATED), told=0.35)


def numbers(rng: Random) -> Episode:
    """Numbers, money, units, codes of countries and languages."""
    return single(Corner(rng), rng.choice(_NUMBERED), told=0.3)


def optional(rng: Random) -> Episode:
    """Optional arguments: set where the task has a value, left out otherwise."""
    return single(Corner(rng), rng.choice(_OPTIONAL), told=rng.choice((0.0, 0.5, 1.0)))


def texts(rng: Random) -> Episode:
    """Values copied as they stand."""
    return single(Corner(rng), rng.choice(_TEXTS), told=0.5)

"""Game Table: dice, coins, lots and star signs. Library: random (seeded on request)."""

from __future__ import annotations

import random
import re
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, ParameterError, quoted
from toolsrv_catalogs.offline.values.day import Date
from toolsrv_catalogs.offline.values.number import Seed, whole
from toolsrv_catalogs.offline.values.words import items, text_up_to
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_SIGNS = (
    (1, 20, "Capricorn"), (2, 19, "Aquarius"), (3, 21, "Pisces"), (4, 20, "Aries"),
    (5, 21, "Taurus"), (6, 21, "Gemini"), (7, 23, "Cancer"), (8, 23, "Leo"), (9, 23, "Virgo"),
    (10, 23, "Libra"), (11, 22, "Scorpio"), (12, 22, "Sagittarius"), (12, 32, "Capricorn"),
)  # fmt: skip
_ANIMALS = [
    "Monkey",
    "Rooster",
    "Dog",
    "Pig",
    "Rat",
    "Ox",
    "Tiger",
    "Rabbit",
    "Dragon",
    "Snake",
    "Horse",
    "Goat",
]
Bound = Annotated[int, whole(-(10**12), 10**12)]


def _source(seed: int | None) -> random.Random:
    return random.Random(seed)  # noqa: S311 - games, not secrets


def _dice(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{0,3})\s*[dDwW]\s*([0-9]{1,4})", text.strip())
    count, sides = (int(match[1] or 1), int(match[2])) if match else (0, 0)
    if not (1 <= count <= 100 and 2 <= sides <= 1000):
        raise UsageError(f"{quoted(text)} is not dice; write it like 2d6, up to 100d1000")
    return count, sides


@tool.get("/dice")
def roll_dice(
    dice: Annotated[tuple[int, int], Field(_dice)] = (1, 6), seed: Seed | None = None
) -> Answer:
    source = _source(seed)
    rolls = [source.randint(1, dice[1]) for _ in range(dice[0])]
    return {"dice": f"{dice[0]}d{dice[1]}", "rolls": rolls[:20], "total": sum(rolls)}


@tool.get("/coin")
def flip_coin(times: Annotated[int, whole(1, 1000)] = 1, seed: Seed | None = None) -> Answer:
    source = _source(seed)
    flips = [source.choice(("heads", "tails")) for _ in range(times)]
    return {
        "flips": times,
        "first": flips[0],
        "heads": flips.count("heads"),
        "tails": flips.count("tails"),
    }


@tool.get("/number")
def random_number(minimum: Bound, maximum: Bound, seed: Seed | None = None) -> Answer:
    if maximum < minimum:
        raise ParameterError("maximum", "must not be smaller than minimum")
    number = _source(seed).randint(minimum, maximum)
    return {"minimum": minimum, "maximum": maximum, "random_number": number}


@tool.get("/pick")
def pick_one(options: Annotated[str, text_up_to(500)], seed: Seed | None = None) -> Answer:
    listed = [part.strip() for item in items(options) for part in re.split(r"\bor\b", item)]
    listed = [item for item in listed if item]
    if not listed:
        raise ParameterError("options", "give some options with commas between them")
    return {"options": len(listed), "picked": _source(seed).choice(listed)}


@tool.get("/zodiac")
def zodiac(birth_date: Date) -> Answer:
    sign = next(s for m, d, s in _SIGNS if (birth_date.month, birth_date.day) < (m, d))
    return {
        "birth_date": str(birth_date),
        "zodiac_sign": sign,
        "chinese_zodiac_of_year": _ANIMALS[birth_date.year % 12],
    }

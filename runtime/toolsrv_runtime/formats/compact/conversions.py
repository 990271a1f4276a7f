"""Times in other units: "how many minutes is 3.5 hours", "90 days in weeks". Pure.

Documents of unit converters name lengths and weights; what they say of times is too little for a
small model, and a task that says so much needs none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats.compact.scene import Offer, Scene
from toolsrv_runtime.reading import readings
from toolsrv_runtime.reading.facts import words
from toolsrv_runtime.reading.number_words import TO_TWELVE
from toolsrv_runtime.reading.wish import Wish

CONVERTER = "convert an amount between units"
"""What a converter is looked for with."""

TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_UNITS = "milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?"
_NUMBER = (
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?|\.\d+|an?|{TO_TWELVE}|half an?|a dozen|a hundred|"
    r"a thousand|a million"
)
_ASKED = re.compile(
    rf"\bhow many (?P<to>{_UNITS})(?: (?:is|are|in|make(?: up)?|does|do|has|have|would|be|there|go into))+"
    rf" (?P<amount>{_NUMBER}) (?P<unit>{_UNITS})\b(?! (?:ago|before|after|from|until|and)\b)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    rf"(?<![\w.,-])(?P<amount>{_NUMBER}) (?P<unit>{_UNITS}) (?:in|to|into|as) (?P<to>{_UNITS})\b",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """Words that ask for a conversion, where they begin, and the three values as they are said."""

    words: str
    begin: int
    amount: str
    unit: str
    wanted: str


@lru_cache(maxsize=256)
def find(text: str) -> tuple[Found, ...]:
    """Return the conversions of times that a text asks for, in order."""
    text = text[:TEXT_LIMIT]
    found = [
        Found(match[0], match.start(), match["amount"], match["unit"], match["to"])
        for pattern in (_ASKED, _TOLD)
        for match in pattern.finditer(text)
        if match["unit"].lower().rstrip("s") != match["to"].lower().rstrip("s")
    ]
    return tuple(sorted(found, key=lambda one: one.begin))


def converter(found: str, scene: Scene) -> Offer | None:
    """Return the unit converter on offer for words that ``find`` has found; None for others."""
    if not any(one.words == found for one in find(scene.task)):
        return None
    return next((one for one in scene.offers if len(_roles(one.function.api)) == len(_ROLES)), None)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return what is stated for a parameter of a converter by a part with one conversion, else ""."""
    found = find(wish.part)
    if len(found) != 1:
        return ""
    roles = _roles(api)
    values = {"amount": readings.read("number", found[0].amount)}
    values |= {"from": found[0].unit, "to": found[0].wanted}
    return next((values[role] for role, one in roles.items() if one == parameter), "")


_ROLES = {
    "amount": re.compile(r"amount|value|quantity|number"),
    "from": re.compile(r"from unit|unit from|source unit|from"),
    "to": re.compile(r"to unit|unit to|target unit|to"),
}


def _roles(api: Api) -> dict[str, Parameter]:
    """Return the parameters of a converter of units by what they take; fewer of any other API."""
    if "unit" not in f"{words(api.name)} {api.description} {words(api.tool)}".lower():
        return {}
    return {
        role: one
        for one in api.required
        for role, name in _ROLES.items()
        if name.fullmatch(words(one.name)) and not one.enum
    }

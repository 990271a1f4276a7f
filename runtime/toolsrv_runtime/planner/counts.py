"""How many of a thing are wanted, where a function makes one: "3 random numbers". Pure.

What is short of the number is told, as a call that is made twice on a path is answered from there.
"""

from __future__ import annotations

import json
import re

from toolsrv_registry.api import Api
from toolsrv_runtime.planner.scene import Scene, about, news
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import normalise_value
from toolsrv_runtime.values.lexicon import TO_TWELVE

_MAKES = re.compile(r"(?:generate|create|invent|draw|make)\b", re.IGNORECASE)
_COUNTS = re.compile(r"\b(?:count|number|limit|times|quantity|how many)\b")
_TOLD = re.compile(r"(?:^|_)(?:count|total|quantity|how_many)")
_PLURALS = {"person": "people|persons", "address": "addresses", "company": "companies"}


def too_few(scene: Scene) -> list[str]:
    """Return the words for several things of which calls have made fewer, in the order of the path."""
    apis = {offer.function.name: offer.function.api for offer in scene.offers}
    made = [step for step in scene.path if step.ok and step.move.function in apis]
    found = []
    for step in made:
        api = apis[step.move.function]
        wanted = _wanted(about(step), api)
        if wanted is None:
            continue
        count = normalise_value("number", wanted["count"])
        arguments = json.loads(step.move.arguments)
        given = [str(one) for key, one in arguments.items() if _COUNTS.search(words(key))]
        told = [value for name, value in news(step) if _TOLD.search(name)]
        calls = sum(one.move.function == step.move.function for one in made)
        if count not in (*given, *told) and calls < int(count):
            found.append(wanted[0])
    return list(dict.fromkeys(found))


def _wanted(part: str, api: Api) -> re.Match[str] | None:
    """Return the words of a part for several of what a function makes one of."""
    if not _MAKES.match(api.description):
        return None
    things = "|".join(_PLURALS.get(one, f"{re.escape(one)}s") for one in words(api.name).split())
    return re.search(
        rf"(?<![\w.,-])(?P<count>[2-9]|[1-9]\d|{TO_TWELVE}) (?:[a-z-]+ ){{0,2}}?(?:{things})\b",
        part,
        re.IGNORECASE,
    )

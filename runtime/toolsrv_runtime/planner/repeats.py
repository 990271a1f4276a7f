"""Calls that a path has already: the same arguments, or with what is meant anyway left out. Pure."""

from __future__ import annotations

import json
import re

from toolsrv_registry.api import Parameter
from toolsrv_runtime.contract.format import Action
from toolsrv_runtime.planner import conversions, formulas
from toolsrv_runtime.planner.calculating import is_told_twice
from toolsrv_runtime.planner.inverse import put_back, wants_back
from toolsrv_runtime.planner.scene import Offer, Scene, news


def repeats(move: Action, scene: Scene, *, asks: bool) -> bool:
    """Whether the path already has this very call: the part it is for is served then.

    So has it where words that ask for nothing only put a function's own answer into it again, where
    an amount that was answered would be converted to the unit that it has, where an answer would be
    worked out with the numbers once more that led to it, and where a function would undo another
    one's answer that nobody wants back.
    ``asks``: the words that the call is for ask for something.
    """
    made = [step for step in scene.path if step.ok and step.move.function == move.function]
    offer = next((one for one in scene.offers if one.function.name == move.function), None)
    if offer is not None and any(step.ok for step in scene.path) and _is_idle(move, offer, scene):
        return True
    if not made or offer is None:
        return False
    given = _told_values(move, offer)
    if any(_told_values(step.move, offer) == given for step in made):
        return True
    if asks:
        return False
    answers = {value for step in made for _, value in news(step)}
    return any(value in answers and value not in scene.task for value in given.values())


def _is_idle(move: Action, offer: Offer, scene: Scene) -> bool:
    """Whether a call would tell no more than what is known: "2.5 km in km", a Roman numeral's number."""
    given: dict[str, object] = json.loads(move.arguments)
    if conversions.is_idle(offer.function.api, given):
        return True
    if conversions.is_answered_so(given, scene.path):
        return True
    expression = formulas.expression(offer.function.api, given)
    if expression and is_told_twice(expression, scene):
        return True
    back = put_back(offer.function, scene)
    return (
        not wants_back(scene.task) and bool(given) and {str(one) for one in given.values()} <= back
    )


def _told_values(move: Action, offer: Offer) -> dict[str, str]:
    """Return a call's arguments without optional ones that say what is meant anyway."""
    given = {key: str(value) for key, value in json.loads(move.arguments).items()}
    optional = {
        key: one
        for key, one in offer.function.parameters.items()
        if one in offer.function.api.optional
    }
    return {
        key: value
        for key, value in given.items()
        if key not in optional or not _is_usual(value, optional[key])
    }


def _is_usual(value: str, parameter: Parameter) -> bool:
    """Whether a value is what a parameter has anyway: "Language, English by default"."""
    said = rf"\b{re.escape(value)} by default\b|\bdefault(?:s to|:)? {re.escape(value)}\b"
    usual = str(parameter.default).lower() == value.lower()
    return usual or bool(re.search(said, parameter.description, re.IGNORECASE))

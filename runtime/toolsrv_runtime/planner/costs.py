"""What an amount costs at a price per unit: "how many litres is that, and what would they cost at 1.85 each".

The amount is what a call answered in that unit; a calculator multiplies. Pure.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner import formulas
from toolsrv_runtime.planner.reading.measures import unit_written
from toolsrv_runtime.planner.reading.parts import split
from toolsrv_runtime.planner.scene import Offer, Scene, news
from toolsrv_runtime.values.facts import words

_MONEY = r"(?:[€$£¥₹]\s?|(?:usd|eur|gbp)\s)?"
_COSTS = re.compile(
    r"\b(?:cost|costs|pay|come to|set me back|price|charge)\b[^.?!;]{0,60}?"
    rf"\b(?:at|for|with)\s+{_MONEY}(?P<price>\d+(?:\.\d+)?)\s?(?:dollars?|euros?|pounds?|[€$£])?\s?"
    r"(?:/\s?|per\s+|an?\s+|the\s+|each\s+)(?P<unit>[^\W\d_]+)",
    re.IGNORECASE,
)
TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def expression(part: str, scene: Scene) -> str:
    """Return an answered amount times the price that a part tells for its unit; "" for none."""
    match = _COSTS.search(part)
    if match is None or _DIGIT.search(part[: match.start("price")] + part[match.end("price") :]):
        return ""  # or an amount of its own: "for 780 km with it, at 1.62 a litre"
    for step in reversed(scene.path):
        amount = _amount(step, match["unit"]) if step.ok else ""
        if amount:
            return f"{amount} * {match['price']}"
    return ""


def asks(task: str) -> bool:
    """Whether a task asks what something costs at a price per unit."""
    return bool(_COSTS.search(task[:TEXT_LIMIT]))


def wishes(scene: Scene) -> list[str]:
    """Return the parts of a task that ask what an answered amount costs."""
    if not scene.path or not asks(scene.task):
        return []
    return [one.text for one in split(scene.task) if expression(one.text, scene)]


def calculator(part: str, scene: Scene) -> Offer | None:
    """Return the calculator on offer for a part that asks what an answered amount costs, else None."""
    if not expression(part, scene):
        return None
    return next((o for o in scene.offers if formulas.takes_expression(o.function.api, "")), None)


def told(parameter: Parameter, api: Api, part: str, scene: Scene) -> str:
    """Return the expression for a calculator's parameter, "" for any other."""
    named = formulas.takes_expression(api, "")
    return expression(part, scene) if named and named == parameter.name else ""


def _amount(step: Step, unit: str) -> str:
    """Return the last number of an answer in a unit: its name tells that, or the value before it."""
    unit_is = unit_written(unit)
    found, told = "", ""
    if not unit_is:
        return ""
    for name, value in news(step):
        if _NUMBER.fullmatch(value):
            here = {unit_written(one) for one in words(name).split()}
            found = value if unit_is in here or told == unit_is else found
        else:
            told = unit_written(value) or told
    return found

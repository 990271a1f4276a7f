"""A calculator for what words ask to work out, and in place of a function that is down.

Such a function has to do no more than arithmetic (``formulas``).
"""

from __future__ import annotations

import json
import re

from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner import formulas
from toolsrv_runtime.planner.forced import forced
from toolsrv_runtime.planner.scene import Offer, Scene, about, news
from toolsrv_runtime.planner.turn import Turn
from toolsrv_runtime.values import arithmetic

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


SUM = 0.5
"""Share of some words from which on they are arithmetic, whatever else they resemble."""

_FILLER = re.compile(
    r"(?:[\W_]|\b(?:and|the|of|is|are|equals?|please|thanks?|what'?s?|how much|tell me|for me|"
    r"work out|calculate|compute)\b)*",
    re.IGNORECASE,
)


def calculator(words: str, scene: Scene) -> Offer | None:
    """Return the calculator on offer for words that are arithmetic; None for other words.

    Also for what is left of it: "and 25 please" of "add 17 and 25 please".
    """
    offers = scene.offers
    sums = next((o for o in offers if formulas.takes_expression(o.function.api, "")), None)
    if sums is None or arithmetic.arithmetic_share(words) >= SUM:
        return sums
    begin = scene.task.find(words)
    end = begin + len(words)
    for one in arithmetic.find_arithmetic(scene.task):
        if one.is_plain and one.begin < end and begin < one.end:
            rest = scene.task[begin : max(begin, one.begin)] + scene.task[min(end, one.end) : end]
            if _FILLER.fullmatch(rest):
                return sums
    return None


def operands(scene: Scene) -> set[str]:
    """Return the numbers that the task tells only to have them worked out, once that is done.

    "Twelve times 7 in Roman numerals" is about neither of the two.
    """
    made = {_expression(step, scene) for step in scene.path if step.ok}
    done = [one for one in arithmetic.find_arithmetic(scene.task) if one.expression in made]
    rest, found = scene.task, set()
    for one in reversed(done):
        words = scene.task[one.begin : one.end]
        rest = f"{rest[: one.begin]} {rest[one.end :]}"
        found |= {*_NUMBER.findall(one.expression), *_NUMBER.findall(words)}
    return found - set(_NUMBER.findall(rest))


def is_down(function: Function, scene: Scene) -> bool:
    """Whether a function was called and is down."""
    return any(step.down and step.move.function == function.name for step in scene.attempts)


def worked_out(scene: Scene, step: Step) -> str:
    """Return what a function that is down would have worked out, as an expression; else ""."""
    offered = {offer.function.name: offer.function.api for offer in scene.offers}
    api = offered.get(step.move.function) if step.down else None
    return formulas.expression(api, json.loads(step.move.arguments), about(step)) if api else ""


def is_told_twice(expression: str, scene: Scene) -> bool:
    """Whether an expression only puts an answer back into what it was worked out with.

    "My agent keeps 18 % of the fee. It was 2,450, what is her slice?" tells one need in two
    clauses: 18 % of the answer is not asked for. With a share of its own ("and 5 % of that") it
    would be.
    """
    numbers = set(_NUMBER.findall(expression))
    for step in scene.path:
        known = set(_NUMBER.findall(_expression(step, scene))) if step.ok else set()
        answers = {value for _, value in news(step)} if known else set()
        if numbers & answers and numbers - answers <= known:
            return True
    return False


def _expression(step: Step, scene: Scene) -> str:
    """Return what a calculator was called with; "" for a call of anything else."""
    api = next(
        (o.function.api for o in scene.offers if o.function.name == step.move.function), None
    )
    key = formulas.takes_expression(api, "") if api else ""
    return str(json.loads(step.move.arguments).get(key, "")) if key else ""


def calculated(turn: Turn, part: str, scene: Scene, expression: str) -> Action | None:
    """Return the call of a calculator on offer for a part; None without one, or with nothing new."""
    for offer in scene.offers if expression and not is_told_twice(expression, scene) else ():
        function = offer.function
        key = formulas.takes_expression(function.api, expression)
        if key and not is_down(function, scene) and not scene.spent(part, function.name):
            return forced(turn, part, offer, json.dumps({key: expression}))
    return None

"""A calculator in place of a function that is down and only does arithmetic (``formulas``)."""

from __future__ import annotations

import json
import re

from toolsrv_registry.functions import Function
from toolsrv_runtime.formats import formulas
from toolsrv_runtime.formats.base import Move, Step
from toolsrv_runtime.formats.forced import forced
from toolsrv_runtime.formats.scene import Scene, about, news
from toolsrv_runtime.formats.turn import Turn

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


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

    "My agent keeps 18 % of the fee. It was 2,450, what is her slice?" tells one need in two clauses:
    18 % of the answer is not asked for. With a share of its own ("and 5 % of that") it would be.
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


def calculated(turn: Turn, part: str, scene: Scene, expression: str) -> Move | None:
    """Return the call of a calculator on offer for a part; None without one, or with nothing new."""
    for offer in scene.offers if expression and not is_told_twice(expression, scene) else ():
        function = offer.function
        key = formulas.takes_expression(function.api, expression)
        if key and not is_down(function, scene) and not scene.spent(part, function.name):
            return forced(turn, part, offer, json.dumps({key: expression}))
    return None

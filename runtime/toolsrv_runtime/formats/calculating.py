"""A calculator in place of a function that is down and only does arithmetic (``formulas``)."""

from __future__ import annotations

import json

from toolsrv_registry.functions import Function
from toolsrv_runtime.formats import formulas, layout
from toolsrv_runtime.formats.base import Move, Step
from toolsrv_runtime.formats.scene import Scene, about
from toolsrv_runtime.formats.turn import Turn


def is_down(function: Function, scene: Scene) -> bool:
    """Whether a function was called and is down."""
    return any(step.down and step.move.function == function.name for step in scene.attempts)


def worked_out(scene: Scene, step: Step) -> str:
    """Return what a function that is down would have worked out, as an expression; else ""."""
    offered = {offer.function.name: offer.function.api for offer in scene.offers}
    api = offered.get(step.move.function) if step.down else None
    return formulas.expression(api, json.loads(step.move.arguments), about(step)) if api else ""


def calculated(turn: Turn, part: str, scene: Scene, expression: str) -> Move | None:
    """Return the call of a calculator on offer for a part; None without one, or with nothing new."""
    for offer in scene.offers if expression else ():
        function = offer.function
        key = formulas.takes_expression(function.api, expression)
        if key and not is_down(function, scene) and not scene.spent(part, function.name):
            text = json.dumps({key: expression})
            turn.force(layout.shown(part), data=True)
            turn.force(f"{layout.USE}{offer.number}{layout.ACTION}{function.name}")
            thought = turn.text().partition(layout.ACTION)[0]
            turn.force(f"{layout.INPUT}{text}")
            return Move(thought, function.name, text, turn.pieces(), part)
    return None

"""A call that is known whole, written into a turn without asking the model."""

from __future__ import annotations

from toolsrv_runtime.contract.format import Action
from toolsrv_runtime.planner import layout
from toolsrv_runtime.planner.dates import iso_dates
from toolsrv_runtime.planner.scene import Offer
from toolsrv_runtime.planner.turn import Turn


def forced(
    turn: Turn, part: str, offer: Offer, arguments: str, missing: tuple[str, ...] = ()
) -> Action:
    """Return the call of a function on offer for a part of the task; ``arguments`` are JSON."""
    name = offer.function.name
    turn.force(layout.shown(part), data=True)
    turn.force(f"{layout.USE}{offer.number}{layout.ACTION}{name}")
    thought = turn.text().partition(layout.ACTION)[0]
    turn.force(f"{layout.INPUT}{arguments}")
    arguments = iso_dates(offer.function, arguments)
    return Action(thought, name, arguments, turn.pieces(), part, missing)

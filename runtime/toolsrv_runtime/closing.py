"""The end of a search that has to end: one answer with what is known, in one step of the model.

Where nothing is known there is nothing to say, and a stop by the user is obeyed at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from toolsrv_runtime import events
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.formats.base import Format, Interrupted, Move, View
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.state import State
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.waiting import off_loop

TOKENS = 512
"""Tokens that the answer may have beyond the budget."""

LEAST_S = 1.0
"""Seconds that it may take beyond the budget; more where a step of the solve took more."""


async def close(state: State, form: Format, view: Callable[[Node], View], reason: str) -> None:
    """Have the model answer below the best node, if the search has none and may have one.

    ``reason`` says which budget ended the search; without one it came to its own end, which is
    left alone where the model gave up.
    """
    ledger = state.ledger
    found, best = ledger.findings, ledger.best()
    if not state.options.close_search or found.answers or best is None or state.outer.is_set():
        return
    if not reason and found.give_ups:
        return
    move = await _ask(state, form, view(best))
    if move is None or not ledger.close(best, move) or ledger.closing is None:
        return
    state.tell(
        events.ThoughtEvent(
            seconds=state.seconds(),
            node=ledger.closing.id,
            parent=best.id,
            depth=len(ledger.closing.calls()),
            text=move.thought or "",
        )
    )
    state.tell_budget()


async def _ask(state: State, form: Format, view: View) -> Move | None:
    """Return the answer; None where time, context or engine do not allow one."""
    deadline = time.monotonic() + max(LEAST_S, state.budget.longest)
    stop = Stop(parent=state.outer, deadline=deadline)
    try:
        with state.step():
            return await off_loop(
                lambda: form.finish(view, max_tokens=TOKENS, stop=stop, meter=state.meter), stop
            )
    except (Interrupted, ContextError, GrammarError, ModelError):
        return None

"""How a solve ended: status, answer and reason, from what the search left behind. Pure."""

from __future__ import annotations

from toolsrv_runtime import outcome as out
from toolsrv_runtime.formats.base import Move
from toolsrv_runtime.ledger import final_answer, versions
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.state import State


def conclude(state: State, reason: str, *, model: str, form: str) -> out.Outcome:
    """Return the outcome; ``reason`` says why the search was ended from outside, or is empty."""
    status, why, node, answer = _ending(state, reason)
    ledger, options = state.ledger, state.options
    used = {n.id for n in node.calls()} if node else set()
    return out.Outcome(
        task=state.task,
        status=status,
        answer=answer,
        reason=why,
        evidence=tuple(ledger.evidence(used)),
        candidates=tuple(f.api.id for f in state.offer.all),
        searches=tuple(state.offer.searches),
        tree=tuple(ledger.nodes()),
        usage=state.usage(),
        limits=options.limits,
        strategy=options.strategy,
        width=options.width,
        depth=options.depth,
        chains=options.most_chains,
        model=model,
        format=form,
        seed=options.seed,
        versions=versions(),
    )


def _ending(state: State, reason: str) -> tuple[out.Status, str, Node | None, str]:
    """Return status, reason, the node of the answer and the answer."""
    ledger = state.ledger
    found = ledger.findings
    if found.answers:
        node = found.answers[0]
        missing = node.move.missing if isinstance(node.move, Move) else ()
        if missing:
            why = "nothing was found for: " + "; ".join(missing)
            return "partial", why, node, final_answer(node)
        return "answered", "the model finished", node, final_answer(node)
    best = ledger.best()
    partial = ledger.partial(best)
    if reason:
        return "cancelled" if state.outer.is_set() else "partial", reason, best, partial
    why = "the model gave up" if found.give_ups else "nothing that was tried led to an answer"
    failure = ledger.failure()
    if failure and not ledger.results:
        why = failure
    elif not ledger.results and not state.offer.fits:
        why = _nothing(state.offer)
    return "gave_up", why, best, partial


def _nothing(offer: Offer) -> str:
    """Say that the catalog has nothing for the task, and what is near or left out."""
    why = "no API in the catalog fits this task, read as English"
    if near := ", ".join(offer.nearest):
        why += f"; the nearest categories are {near}"
    if dead := offer.dead_left_out:
        why += f"; {dead} left out that failed when last checked"
    return why

"""How a solve ended: status, answer and reason, from what the search left behind. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from toolsrv_runtime import outcome as out
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.formats.base import Move
from toolsrv_runtime.ledger import final_answer, versions
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.state import State

TASK_LIMIT = 200
"""Characters of a task that are told where all of it is missing."""


def conclude(state: State, reason: str, *, model: str, form: str) -> out.Outcome:
    """Return the outcome; ``reason`` says why the search was ended from outside, or is empty."""
    end = _ending(state, reason)
    ledger, options = state.ledger, state.options
    used = {n.id for n in end.node.calls()} if end.node else set()
    evidence = tuple(ledger.evidence(used))
    results = [(one.node, {"response": one.response, "error": one.error}) for one in evidence]
    traced = trace(end.answer, state.task, results)
    return out.Outcome(
        task=state.task,
        status=end.status,
        answer=end.answer,
        reason=end.reason,
        missing=end.missing,
        evidence=evidence,
        notes=tuple(state.meter.notes),
        supported=traced.supported,
        unsupported=traced.unsupported,
        unread=traced.unread,
        opinions=tuple(state.opinions),
        candidates=tuple(f.api.id for f in state.offer.all),
        searches=tuple(state.offer.searches),
        tree=tuple(ledger.nodes()),
        costs=tuple(ledger.costs),
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


@dataclass(frozen=True, slots=True)
class _Ending:
    status: out.Status
    reason: str
    node: Node | None
    answer: str
    missing: tuple[str, ...] = ()


def _ending(state: State, reason: str) -> _Ending:
    ledger = state.ledger
    if ledger.findings.answers:
        node = ledger.findings.answers[0]
        if missing := _left_open(node):
            why = "nothing was found for: " + "; ".join(missing)
            return _Ending("partial", why, node, final_answer(node), missing)
        return _Ending("answered", "the model finished", node, final_answer(node))
    if ledger.closing is not None:
        missing = _left_open(ledger.closing) or tuple(ledger.unserved())
        why = reason or "the search came to its end without an answer"
        return _partial(state, why, ledger.closing, final_answer(ledger.closing), missing)
    best = ledger.best()
    facts, missing = ledger.partial(best), tuple(ledger.unserved())
    if state.rejected is not None:
        best, facts = state.rejected, final_answer(state.rejected)
        missing = _left_open(best)
    if reason:
        if state.outer.is_set():
            return _Ending("cancelled", reason, best, facts, missing)
        return _partial(state, reason, best, facts, missing)
    return _Ending("gave_up", _why_given_up(state), best, facts, missing)


def _partial(
    state: State, why: str, node: Node | None, answer: str, missing: tuple[str, ...]
) -> _Ending:
    """Return the end of a search that had to end, which names what is missing.

    Where nothing was found nothing of the task is done: its parts that were tried are missing, or
    all of it.
    """
    if not answer.strip():
        missing = missing or (_shortened(state.task),)
        open_parts = "; ".join(missing)
        why = f"nothing was found before the search ended: {why}; still open: {open_parts}"
    elif missing:
        why = f"{why}; nothing was found for: {'; '.join(missing)}"
    return _Ending("partial", why, node, answer, missing)


def _shortened(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= TASK_LIMIT else f"{line[: TASK_LIMIT - 1]}…"


def _left_open(node: Node) -> tuple[str, ...]:
    """Return what an answer says that it leaves open."""
    return node.move.missing if isinstance(node.move, Move) else ()


def _why_given_up(state: State) -> str:
    ledger = state.ledger
    failure = ledger.failure()
    if failure and not ledger.results:
        return failure
    if not ledger.results and not state.offer.fits:
        return _nothing(state.offer)
    if ledger.findings.give_ups:
        return "the model gave up"
    return "nothing that was tried led to an answer"


def _nothing(offer: Offer) -> str:
    """Say that the catalog has nothing for the task, and what is near or left out."""
    why = "no API in the catalog fits this task, read as English"
    if near := ", ".join(offer.nearest):
        why += f"; the nearest categories are {near}"
    if dead := offer.dead_left_out:
        why += f"; {dead} left out that failed when last checked"
    return why

"""Kept runs as a task that goes on from them knows them. Pure; who keeps them gives them."""

from __future__ import annotations

from collections.abc import Callable

from toolsrv.run_record import RunRecord
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.contract.earlier import Earlier, EarlierCall

MOST_RUNS = 4
"""Runs of a chain, each of which went on from the one before, that are known to the next."""


def earlier_runs(get: Callable[[str], RunRecord], run_id: str) -> tuple[Earlier, ...]:
    """Return a run and those that it went on from in turn, oldest first.

    ``get`` returns a run by its id; of those further back one that is not kept any more ends the
    chain.

    Raises:
        NotFoundError: the run itself is not kept.
        UsageError: it found nothing and answered nothing.
    """
    found: dict[str, Earlier] = {}
    while run_id and len(found) < MOST_RUNS:
        try:
            record = get(run_id)
        except NotFoundError:
            if not found:
                raise
            break
        if record.id in found:
            break
        found[record.id] = _earlier(record)
        run_id = record.outcome.continues if record.outcome else ""
    first = next(iter(found.values()))
    if not first.calls and not first.answer:
        raise UsageError(
            f"{first.run_id} found nothing that a task could go on from",
            hint="give the whole task in words of its own",
        )
    return tuple(reversed(found.values()))


def _earlier(record: RunRecord) -> Earlier:
    outcome = record.outcome
    if outcome is None:
        return Earlier(record.task, "", run_id=record.id)
    calls = tuple(
        EarlierCall(one.api_id, one.function, one.arguments, one.response)
        for one in outcome.evidence
        if one.ok
    )
    return Earlier(record.task, outcome.answer, calls, record.id)

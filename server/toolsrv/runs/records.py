"""Finished runs as typed data: the record, a page of a response, the runs that a run continues.

Knows nothing of where runs and responses are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import clean_task
from toolsrv.runs.queue import Run, RunStatus
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.options import EarlierCall, EarlierRun
from toolsrv_runtime.outcome import Evidence, Outcome


class RunRecord(BaseModel):
    """One finished run. ``outcome`` is None when it failed or was stopped before it began.

    ``interrupted``: its process ended first, and ``outcome`` is what it had found until then.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    task: str
    status: RunStatus
    ended: datetime = Field(default_factory=lambda: datetime.now(UTC))
    error: str = ""
    hint: str = ""
    outcome: Outcome | None = None

    def evidence(self, node: int) -> Evidence | None:
        """Return the call of a node, or the same call made elsewhere in the run: it is told once.

        None where the node made no call or there is no such node.
        """
        if self.outcome is None:
            return None
        for one in self.outcome.evidence:
            if one.node == node:
                return one
        made = next((one for one in self.outcome.tree if one.id == node and one.api_id), None)
        if made is None:
            return None
        same = (
            one
            for one in self.outcome.evidence
            if one.api_id == made.api_id and one.arguments == made.arguments
        )
        return next(same, None)


def record_of(run: Run) -> RunRecord:
    """Return the record of a run that has ended."""
    outcome = run.outcome and run.outcome.model_copy(update={"run_id": run.id})
    return RunRecord(
        id=run.id,
        task=run.task,
        status=run.status,
        ended=run.ended or datetime.now(UTC),
        error=run.error,
        hint=run.hint,
        outcome=outcome,
    )


def response_text(evidence: Evidence) -> str:
    """Return a whole response as text: JSON on many lines, or the text that it is.

    Where no response came it is the error.
    """
    response = evidence.response
    if response is None or isinstance(response, str):
        return response or evidence.error
    return json.dumps(response, ensure_ascii=False, indent=1, default=str)


def continued_task(record: RunRecord, said: str) -> str:
    """Return the task of a run that needs input, with a person's answer to its questions.

    Raises:
        UsageError: the run asks nothing, or task and answer are empty or too long.
    """
    questions = record.outcome.questions if record.outcome is not None else ()
    if not questions:
        raise UsageError(
            f"{record.id} ended as {record.status} and asks nothing",
            hint="give the whole task in words of its own",
        )
    names = " and ".join(dict.fromkeys(one.parameter.replace("_", " ") for one in questions))
    return clean_task(f"{record.task}\n{names}: {clean_task(said)}")


def interrupted_task(record: RunRecord) -> str:
    """Return the task of an interrupted run, for one that goes on with it as it is.

    Raises:
        UsageError: the run came to its end.
    """
    if record.status != "interrupted":
        raise UsageError(
            f"{record.id} ended as {record.status}, and there is no task to go on with",
            hint="give a task beside it",
        )
    return record.task


class ResponsePage(BaseModel):
    """A page of one call's response, in characters. ``next_offset`` is None on the last page.

    ``kept_whole`` is False where the response was longer than what is kept.
    """

    run_id: str
    node: int
    api_id: str
    status: int
    source: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None
    kept_whole: bool


def response_page(
    run_id: str, node: int, found: Evidence, text: str, offset: int, kept: int, characters: int
) -> ResponsePage:
    """Return a page: ``text`` from ``offset`` on, of ``kept`` of all ``characters``."""
    end = offset + len(text)
    return ResponsePage(
        run_id=run_id,
        node=node,
        api_id=found.api_id,
        status=found.status,
        source=found.source,
        text=text,
        offset=offset,
        total_characters=characters,
        next_offset=end if end < kept else None,
        kept_whole=kept == characters,
    )


def no_response(record: RunRecord, node: int) -> NotFoundError:
    """Return the error that a node of a run made no call, with the nodes that did."""
    calls = [one.node for one in record.outcome.evidence] if record.outcome else []
    made = ", ".join(map(str, calls[:20])) or "none"
    return NotFoundError(
        f"node {node} of {record.id} has no response", hint=f"nodes with a response: {made}"
    )


MOST_RUNS = 4
"""Runs of a chain, each of which went on from the one before, that are known to the next."""


def earlier_runs(get: Callable[[str], RunRecord], run_id: str) -> tuple[EarlierRun, ...]:
    """Return a run and those that it went on from in turn, oldest first.

    ``get`` returns a run by its id; of those further back one that is not kept any more ends the
    chain.

    Raises:
        NotFoundError: the run itself is not kept.
        UsageError: it found nothing and answered nothing.
    """
    found: dict[str, EarlierRun] = {}
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
    if not any(one.calls or one.answer for one in found.values()):
        raise UsageError(
            f"{first.run_id} found nothing that a task could go on from",
            hint="give the whole task in words of its own",
        )
    return tuple(reversed(found.values()))


def _earlier(record: RunRecord) -> EarlierRun:
    outcome = record.outcome
    if outcome is None:
        return EarlierRun(record.task, "", run_id=record.id)
    calls = tuple(
        EarlierCall(one.api_id, one.function, one.arguments, one.response, one.status, one.source)
        for one in outcome.evidence
        if one.ok
    )
    interrupted = record.status == "interrupted"
    return EarlierRun(record.task, outcome.answer, calls, record.id, interrupted)

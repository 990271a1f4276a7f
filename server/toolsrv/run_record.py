"""A finished run as it is kept: what was asked, how it ended, and everything on the way.

Typed data only; ``run_store`` keeps it, ``shown`` tells of it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import clean_task
from toolsrv.runs import Run, RunStatus
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.outcome import Evidence, Outcome


class RunRecord(BaseModel):
    """One finished run. ``outcome`` is None when it failed or was stopped before it began."""

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
    return RunRecord(
        id=run.id,
        task=run.task,
        status=run.status,
        ended=run.ended or datetime.now(UTC),
        error=run.error,
        hint=run.hint,
        outcome=run.outcome,
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

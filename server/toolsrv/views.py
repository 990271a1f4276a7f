"""What toolsrv tells about APIs, calls and runs: one typed shape for ``--json`` and for MCP.

Text from catalogs and APIs is made plain here. Built from the rooms' own types; nothing here
searches, calls or solves; ``search_view`` tells of searches.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from toolsrv.plain import compact_json, one_line, plain
from toolsrv.run_record import RunRecord, record_of
from toolsrv.runs import Run, RunStatus
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.result import Consent, Kind
from toolsrv_runtime.outcome import Claim, Evidence, Opinion, Source, Usage

if TYPE_CHECKING:
    from toolsrv_runtime.calls.caller import CallResult

Detail = Literal["names", "summary", "full"]
SUMMARY_LIMIT = 300
RESPONSE_LIMIT = 40_000
EVIDENCE_LIMIT = 4_000
CLAIMS_SHOWN = 20


class ParameterView(BaseModel):
    """One parameter of an API."""

    name: str
    type: str
    required: bool
    description: str
    default: Any = Field(default="", description="Empty when there is none.")
    allowed: tuple[str, ...] = Field(default=(), description="The only values, when limited.")


class ApiView(BaseModel):
    """One API with all that a caller needs."""

    id: str = Field(description="Pass it to call_api as it is.")
    name: str
    tool: str
    category: str
    description: str
    tool_description: str
    method: str
    parameters: tuple[ParameterView, ...]
    example: dict[str, Any] = Field(description="Arguments of a call, to start from.")


class MissingView(BaseModel):
    """An id that no API has."""

    id: str
    error: str
    hint: str


class DescribeView(BaseModel):
    """The APIs asked for, in that order, and the ids that do not exist."""

    apis: tuple[ApiView, ...]
    not_found: tuple[MissingView, ...]


class CallView(BaseModel):
    """What one call of an API brought. ``response`` is JSON, or text where it is not JSON."""

    id: str
    arguments: dict[str, Any]
    ok: bool = Field(description="Whether the API answered with success (2xx).")
    status: int = Field(description="HTTP status; 0 when no response came.")
    response: Any = None
    error: str = ""
    source: Source = Field(description="Where the response comes from.")
    seconds: float
    kind: Kind = Field(default="ok", description="What came of the call, from a closed list.")
    hint: str = Field(default="", description="What to do next, when it did not go well.")
    page: str = Field(default="", description="Where a person subscribes to the API.")
    retry_after: float | None = Field(default=None, description="Seconds to leave the host alone.")
    consent: Consent | None = Field(
        default=None, description="The call that a person would have to allow; no model can."
    )
    truncated: bool = Field(default=False, description="The response was cut.")


class RunView(BaseModel):
    """A run: how far it is, or how it ended."""

    run_id: str
    status: RunStatus = Field(
        description="queued and working: not ended yet, ask again with get_run. answered: done. "
        "partial: a budget ended first. gave_up, cancelled, failed: ended without a full answer."
    )
    answer: str = Field(default="", description="The answer, or the best partial one.")
    reason: str = Field(default="", description="Why it ended as it did.")
    evidence: tuple[Evidence, ...] = Field(
        default=(), description="The calls made; used=true: the answer rests on it."
    )
    notes: tuple[str, ...] = Field(default=(), description="What prompts had no room for.")
    supported: tuple[Claim, ...] = Field(
        default=(), description="Of the answer: what a response or the task says, and which."
    )
    unsupported: tuple[Claim, ...] = Field(
        default=(), description="Of the answer: what no response says, nor the task. Check it."
    )
    opinions: tuple[Opinion, ...] = Field(
        default=(), description="With verify: what the model said of answers on a second reading."
    )
    phase: str = Field(default="", description="What a run that has not ended does now.")
    queue_position: int = Field(default=0, description="Runs that come first.")
    usage: Usage = Usage()
    next_step: str = Field(default="", description="What to do now.")


def parameter_view(name: str, parameter: Parameter, *, required: bool) -> ParameterView:
    """Return the view of a parameter under the name that a call gives it."""
    return ParameterView(
        name=name,
        type=parameter.type,
        required=required,
        description=plain(parameter.description),
        default=parameter.default,
        allowed=parameter.enum,
    )


def parameter_views(api: Api) -> tuple[ParameterView, ...]:
    """Return the views of an API's parameters, required ones first."""
    return tuple(
        parameter_view(name, one, required=one in api.required)
        for name, one in parameter_keys(api).items()
    )


def api_view(api: Api) -> ApiView:
    """Return the view of an API."""
    return ApiView(
        id=api.id,
        name=plain(api.name),
        tool=plain(api.tool),
        category=api.category,
        description=plain(api.description),
        tool_description=plain(api.tool_description),
        method=api.method,
        parameters=parameter_views(api),
        example={
            name: example_value(one)
            for name, one in parameter_keys(api).items()
            if one in api.required
        },
    )


def example_value(parameter: Parameter) -> Any:
    """Return a value of the right type: the default, an allowed one, or a plain stand-in."""
    if parameter.default not in ("", None):
        return parameter.default
    if parameter.enum:
        return parameter.enum[0]
    kind = parameter.type.upper()
    return {"NUMBER": 1, "INTEGER": 1, "BOOLEAN": True, "ARRAY": [], "OBJECT": {}}.get(kind, "…")


def call_view(result: CallResult) -> CallView:
    """Return the view of a call; a very long response is cut to text."""
    response, cut = shorten(result.response, RESPONSE_LIMIT)
    return CallView(
        id=result.api_id,
        arguments=result.arguments,
        ok=result.ok,
        status=result.status,
        response=response,
        error=plain(result.error),
        source=result.source,
        seconds=round(result.seconds, 4),
        kind=result.kind,
        hint=plain(result.hint),
        page=plain(result.page),
        retry_after=result.retry_after,
        consent=result.consent,
        truncated=cut,
    )


def run_view(run: Run, position: int) -> RunView:
    """Return the view of a run as it is now."""
    if not run.live:
        return record_view(record_of(run)).model_copy(update={"usage": run.usage})
    return RunView(
        run_id=run.id,
        status=run.status,
        usage=run.usage,
        queue_position=position,
        phase=phase(run, position),
        next_step=f'call get_run with run_id "{run.id}" to wait for the answer',
    )


def record_view(record: RunRecord) -> RunView:
    """Return the view of a run that has ended, of today or kept since long."""
    view = RunView(run_id=record.id, status=record.status)
    if outcome := record.outcome:
        view.usage = outcome.usage
        view.answer, view.reason = plain(outcome.answer), plain(outcome.reason)
        view.evidence = tuple(_short_evidence(one) for one in outcome.evidence)
        view.supported, view.unsupported = outcome.supported, outcome.unsupported
        view.opinions, view.notes = outcome.opinions, outcome.notes
        if outcome.status != "answered":
            view.next_step = _NEXT_STEPS[outcome.status]
    else:
        view.reason = plain(record.error) or "stopped before it began"
        view.next_step = record.hint
    return view


_NEXT_STEPS = {
    "partial": "raise the budget (max_seconds, max_calls, ...), or go on with call_api",
    "gave_up": "rephrase the task, or use search_apis and call_api step by step",
    "cancelled": "start again with solve_task if the answer is still needed",
}


def phase(run: Run, position: int) -> str:
    """Say in one line what a run does now."""
    if run.status == "queued":
        return f"waiting: {position} run{'s' * (position != 1)} first"
    for event in reversed(run.events):
        match event.kind:
            case "thought":
                return f"thinking: {one_line(event.text, 120)}"
            case "call":
                return f"calling {event.api_id}"
            case "observation":
                return f"reading an answer (status {event.status})"
            case "backtrack":
                return f"trying another way: {one_line(event.reason, 80)}"
            case "opinion":
                return f"the answer was {_SAID[event.opinion.verdict]}"
            case "candidates":
                return f"thinking with {len(event.api_ids)} APIs at hand"
            case _:
                continue
    return "loading the catalog and the model"


def returned(evidence: Evidence) -> str:
    """Return what a call brought as text: the error, the response, or both."""
    response = evidence.response
    if response not in (None, "") and not isinstance(response, str):
        response = compact_json(response)
    return ": ".join(part for part in (evidence.error, response) if part)


def unsupported_line(claims: Sequence[Claim]) -> str:
    """Return on one line what of an answer nothing supports; "" when there is nothing."""
    if not claims:
        return ""
    told = [one_line(one.text, 80) for one in claims[:CLAIMS_SHOWN]]
    told += [f"{len(claims) - CLAIMS_SHOWN} more"] * (len(claims) > CLAIMS_SHOWN)
    return "No response says: " + ", ".join(dict.fromkeys(told))


_SAID = {
    "accepted": "read again and accepted",
    "rejected": "read again and rejected",
    "none": "not read again",
}


def opinion_line(opinion: Opinion) -> str:
    """Return on one line what the model said of an answer on a second reading."""
    answer = f"the answer of node {opinion.node} was {_SAID[opinion.verdict]}"
    return f"Second opinion: {answer}: {one_line(opinion.reason, 400)}"


def shorten(response: Any, limit: int) -> tuple[Any, bool]:
    """Return a response as it is, or the head of its JSON text when that is over the limit."""
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    if len(text) <= limit:
        return response, False
    return f"{text[:limit]}… ({len(text):,} characters in all)", True


def _short_evidence(evidence: Evidence) -> Evidence:
    response, cut = shorten(evidence.response, EVIDENCE_LIMIT)
    return evidence.model_copy(update={"response": response}) if cut else evidence

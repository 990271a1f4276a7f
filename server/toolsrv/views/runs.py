"""Views of live and finished runs: one typed shape for ``--json`` and for MCP.

Text from models and APIs is made plain here. Built from the runtime's own types; nothing here
solves or waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from toolsrv.plain import compact_json, one_line, plain
from toolsrv.runs.queue import Run, RunStatus
from toolsrv.runs.records import RunRecord, record_of, response_text
from toolsrv.views.apis import shorten
from toolsrv_runtime.outcome import Claim, ConsentEvent, Evidence, Opinion, QuestionEvent, Usage

RUN_URI = "toolsrv://runs/{run_id}"
"""The resource of a whole run; its responses are below it."""
EVIDENCE_LIMIT = 4_000
CLAIMS_SHOWN = 20


class RunView(BaseModel):
    """A run: how far it is, or how it ended."""

    run_id: str
    status: RunStatus = Field(
        description="queued and working: not ended yet, ask again with get_run. answered: done. "
        "replied: done without a call, as a greeting needs none. "
        "partial: the search ended first, or the user declined a call; reason says why. "
        "needs_input: the user has to answer questions first. gave_up: "
        "the model found no way. cancelled, failed: ended without a full answer. interrupted: its "
        "server ended first."
    )
    answer: str = Field(default="", description="The answer, or the best partial one.")
    reason: str = Field(default="", description="Why it ended as it did.")
    missing: tuple[str, ...] = Field(default=(), description="What of the task is still open.")
    questions: tuple[str, ...] = Field(
        default=(), description="With needs_input: what to ask the user."
    )
    evidence: tuple[Evidence, ...] = Field(
        default=(), description="The calls made; used=true: the answer rests on it."
    )
    notes: tuple[str, ...] = Field(default=(), description="What prompts had no room for.")
    supported: int = Field(
        default=0,
        description="Statements of the answer that a response or the task says; show_run has them.",
    )
    unsupported: tuple[Claim, ...] = Field(
        default=(), description="Of the answer: what no response says, nor the task. Check it."
    )
    unread: int = Field(
        default=0, description="Of a very long answer: statements that were not looked at."
    )
    opinions: tuple[Opinion, ...] = Field(
        default=(), description="With verify: what the model said of answers on a second reading."
    )
    phase: str = Field(default="", description="What a run that has not ended does now.")
    queue_position: int = Field(default=0, description="Runs that come first.")
    usage: Usage = Usage()
    more: str = Field(default="", description="Where the whole of an ended run is.")
    next_step: str = Field(default="", description="What to do now.")


def run_view(run: Run, position: int) -> RunView:
    """Return the view of a run as it is now."""
    before = (_BEFORE.format(run.interrupted),) if run.interrupted else ()
    if not run.live:
        view = record_view(record_of(run))
        return view.model_copy(update={"usage": run.usage, "notes": (*view.notes, *before)})
    return RunView(
        run_id=run.id,
        status=run.status,
        usage=run.usage,
        queue_position=position,
        phase=phase(run, position),
        notes=before,
        next_step=f'call get_run with run_id "{run.id}" to wait for the answer',
    )


def record_view(record: RunRecord) -> RunView:
    """Return the view of a run that has ended, of today or kept since long."""
    view = RunView(run_id=record.id, status=record.status)
    view.more = _MORE.format(RUN_URI.format(run_id=record.id))
    if outcome := record.outcome:
        view.usage = outcome.usage
        view.answer, view.reason = plain(outcome.answer), plain(outcome.reason)
        view.missing = tuple(map(plain, outcome.missing))
        view.questions = tuple(plain(one.text) for one in outcome.questions)
        view.evidence = tuple(_short_evidence(one) for one in outcome.evidence)
        view.supported, view.unsupported = len(outcome.supported), outcome.unsupported
        view.unread = outcome.unread
        view.opinions, view.notes = outcome.opinions, outcome.notes
        if any(one.kind == "declined" for one in outcome.evidence):
            view.next_step = _DECLINED
        elif outcome.status == "interrupted":
            view.next_step = continue_step(record)
        elif outcome.status == "needs_input":
            view.next_step = _ANSWER.format(record.id)
        elif outcome.need_keys and outcome.status in {"gave_up", "partial"}:
            view.next_step = _KEYS.format(", ".join(map(plain, outcome.need_keys)))
        elif outcome.status not in {"answered", "replied"}:
            view.next_step = _NEXT_STEPS[outcome.status]
    else:
        view.reason = plain(record.error) or "stopped before it began"
        view.next_step = record.hint
    return view


_BEFORE = "an earlier run of this task was interrupted, and continues goes on from it: {}"


def continue_step(record: RunRecord) -> str:
    """Return what to do about an interrupted run; one that found nothing is begun again."""
    outcome = record.outcome
    if outcome is None or not (outcome.continues or any(one.ok for one in outcome.evidence)):
        return record.hint
    return (
        f'to go on call solve_task with the same task and options {{"continues": "{record.id}"}}: '
        "what it found is known then, and no such call is made again"
    )


_NEXT_STEPS = {
    "partial": "raise the budget (max_seconds, max_calls, ...) if that ended it, or go on with "
    "call_api",
    "gave_up": "rephrase the task, or use search_apis and call_api step by step",
    "cancelled": "start again with solve_task if the answer is still needed",
}
_MORE = "show_run has the tree and, with node, one whole response; as resources {0} and below it"
_KEYS = "tell the user which key {} needs; call solve_task again once the user has set it"
_DECLINED = "tell the user what was not done; what they declined is theirs to ask for again"


_ANSWER = (
    'ask the user the question, then call solve_task with answer_to "{}" and their answer as the task; '
    "never answer it yourself"
)


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
            case "consent":
                return consent_line(event)
            case "question":
                return question_line(event)
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


def consent_line(event: ConsentEvent) -> str:
    """Return on one line what a person is asked, or has said."""
    said = {None: "waiting for a person's consent:", True: "allowed:", False: "not allowed:"}
    return one_line(f"{said[event.allowed]} {event.method} {event.host}{event.path}", 200)


def question_line(event: QuestionEvent) -> str:
    """Return on one line what value a person is asked for, and whether they gave one."""
    said = {None: "waiting for a person's answer:", True: "answered:", False: "not answered:"}
    return one_line(f"{said[event.answered]} {event.text}", 300)


def response_summary(evidence: Evidence) -> str:
    """Return what a call brought as text: the error, the response, or both."""
    response = evidence.response
    if response not in (None, "") and not isinstance(response, str):
        response = compact_json(response)
    return ": ".join(part for part in (evidence.error, response) if part)


def status_words(evidence: Evidence) -> str:
    """Return the HTTP status of a call, and how often the model asked for it if more than once."""
    status = str(evidence.status) if evidence.status else "no response"
    return f"{status}, asked for {evidence.times} times" if evidence.times > 1 else status


def unsupported_line(claims: Sequence[Claim], unread: int = 0) -> str:
    """Return on one line what of an answer nothing supports, and how much was not looked at."""
    told = [one_line(one.text, 80) for one in claims[:CLAIMS_SHOWN]]
    told += [f"{len(claims) - CLAIMS_SHOWN} more"] * (len(claims) > CLAIMS_SHOWN)
    lines = ["No response says: " + ", ".join(dict.fromkeys(told))] if told else []
    if unread:
        more = f"{unread:,} more statement" + "s" * (unread != 1)
        lines.append(f"not looked at, as the answer is so long: {more}")
    line = "; ".join(lines)
    return line[:1].upper() + line[1:]


_SAID = {
    "accepted": "read again and accepted",
    "rejected": "read again and rejected",
    "none": "not read again",
}


def opinion_line(opinion: Opinion) -> str:
    """Return on one line what the model said of an answer on a second reading."""
    answer = f"the answer of node {opinion.node} was {_SAID[opinion.verdict]}"
    return f"Second opinion: {answer}: {one_line(opinion.reason, 400)}"


def _short_evidence(evidence: Evidence) -> Evidence:
    return cut_evidence(evidence, EVIDENCE_LIMIT)


def cut_evidence(evidence: Evidence, limit: int) -> Evidence:
    """Return a call with at most ``limit`` characters of its response, and its true size."""
    response, cut = shorten(evidence.response, limit)
    if not cut:
        return evidence
    characters = evidence.characters or len(response_text(evidence))
    return evidence.model_copy(update={"response": response, "characters": characters})

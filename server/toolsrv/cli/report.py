"""The end of a solve on stdout: the answer, then the evidence that it rests on."""

from __future__ import annotations

from toolsrv.cli.listing import listing
from toolsrv.cli.output import console, note
from toolsrv.plain import compact_json, one_line, plain
from toolsrv.run_views import opinion_line, returned, status_words, unsupported_line
from toolsrv_runtime.outcome import Evidence, Outcome

RETURNED_LIMIT = 300
WORDS = {
    "partial": "Only a partial answer",
    "needs_input": "A value is missing",
    "gave_up": "No answer",
    "cancelled": "Stopped",
}


def show_outcome(outcome: Outcome) -> None:
    """Print answer and evidence on stdout, and why there is no full answer on stderr."""
    out = console()
    if outcome.answer:
        out.print(plain(outcome.answer), soft_wrap=True)
    if outcome.status not in {"answered", "replied"}:
        note(_why(outcome))
    for one in outcome.notes:
        note(one_line(one))
    if line := unsupported_line(outcome.unsupported, outcome.unread):
        note(line)
    for file in (file for one in outcome.evidence for file in one.files):
        note(f"saved: {file.path} ({file.bytes:,} bytes, {plain(file.media_type)})")
    for opinion in outcome.opinions:
        note(opinion_line(opinion))
    if not outcome.evidence:
        return
    out.print()
    listing(
        ("", "API", "arguments", "returned", "source", "status"),
        [_row(one) for one in outcome.evidence],
        names=1,
        title="Evidence (* the answer rests on it)",
    )


def _why(outcome: Outcome) -> str:
    """Return why there is no full answer; an end that found nothing says so itself."""
    reason = one_line(outcome.reason) or "no reason is known"
    if outcome.status == "partial" and not outcome.answer:
        return reason[0].upper() + reason[1:]
    status = "partial" if outcome.status == "gave_up" and outcome.answer else outcome.status
    return f"{WORDS[status]}: {reason}"


def _row(one: Evidence) -> tuple[str, ...]:
    return (
        "*" if one.used else "",
        one.api_id,
        compact_json(one.arguments),
        one_line(returned(one), RETURNED_LIMIT),
        one.source,
        status_words(one),
    )

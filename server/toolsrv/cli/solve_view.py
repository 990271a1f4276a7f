"""Terminal view of a solve: events and budget on stderr, answer and evidence on stdout.

On a terminal the budget line moves; elsewhere every event is one plain line. What a model or an API
says is shown as plain text: no markup, no escape sequences.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from toolsrv.cli.output import StatusLine, console, listing, note
from toolsrv.plain import compact_json, one_line, plain
from toolsrv.views.runs import (
    consent_line,
    opinion_line,
    question_line,
    response_summary,
    status_words,
    unsupported_line,
)
from toolsrv_runtime.outcome import CandidatesEvent, Event, Evidence, Limits, Outcome, Usage

LINE_LIMIT = 400
STYLES = {
    "candidates": "cyan",
    "thought": "italic",
    "call": "bold green",
    "consent": "bold yellow",
    "question": "bold yellow",
    "observation": "",
    "backtrack": "yellow",
    "opinion": "magenta",
    "note": "dim",
}


def event_line(event: Event) -> str:
    """Return an event as one line, indented by its depth; ``""`` when it is not for the log."""
    match event.kind:
        case "candidates":
            return _candidates(event)
        case "thought":
            if not event.text.strip():
                return ""  # chat models seldom say what they do next
            return _indent(event.depth) + "thought  " + one_line(event.text, LINE_LIMIT)
        case "call":
            arguments = one_line(compact_json(event.arguments), LINE_LIMIT)
            return f"{_indent(event.depth)}call  {one_line(event.api_id)} {arguments}"
        case "consent":
            return _indent(event.depth) + consent_line(event)
        case "question":
            return _indent(event.depth) + question_line(event)
        case "observation":
            text = one_line(event.text, LINE_LIMIT)
            return f"{_indent(event.depth)}{event.status or 'failed'} ({event.source})  {text}"
        case "backtrack":
            return f"branch  back to node {event.to}: {one_line(event.reason, LINE_LIMIT)}"
        case "opinion":
            return _indent(event.depth) + opinion_line(event.opinion)
        case "note":
            return "note  " + one_line(event.text, LINE_LIMIT)
        case _:
            return ""


def _candidates(event: CandidatesEvent) -> str:
    said = [f"searched again, {one_line(event.reason, 80)}: "] if event.reason else []
    said.append(one_line(", ".join(event.api_ids), LINE_LIMIT))
    if event.dead_left_out and not event.reason:
        said.append(f" ({event.dead_left_out} left out: dead when last checked)")
    return "candidates  " + "".join(said)


def budget_line(usage: Usage, limits: Limits, seconds: float) -> str:
    """Return how much of the budget is used."""
    return (
        f"{seconds:.1f} of {limits.seconds:g} s · {usage.calls} of {limits.calls} calls · "
        f"{usage.generated_tokens} of {limits.tokens} tokens"
    )


class LiveView(StatusLine):
    """Shows events while a solve runs. ``quiet`` shows nothing."""

    def __init__(self, limits: Limits, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._limits = limits
        self._usage = Usage()
        self._phase = ""
        self._started = time.monotonic()

    def phase(self, text: str) -> None:
        """Say what is done before the first event."""
        self._phase = text

    def building(self, done: int, total: int) -> None:
        """Say how far the build of the index is; called from any thread."""
        if not self._phase.startswith("building") and self._live is None:
            self.say(f"building the index of {total} APIs, once")
        self._phase = f"building the index: {done} of {total} APIs"

    def say(self, text: str, style: str = "") -> None:
        """Log one line."""
        if not self._quiet:
            from rich.text import Text

            try:
                self._console.print(Text(text, style=style), soft_wrap=self._live is None)
            except OSError:  # nobody reads stderr, or its disk is full: the answer still counts
                self._quiet = True

    def on_event(self, event: Event) -> None:
        """Show an event; with the first one begins the budget."""
        if self._phase:
            self._phase = ""
            self._started = time.monotonic() - event.seconds
        if event.kind == "budget":
            self._usage = event.usage
        elif line := event_line(event):
            self.say(line, STYLES[event.kind])

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a person in the block; its time is not the budget's."""
        since = time.monotonic()
        try:
            with self.away():
                yield
        finally:
            self._started += time.monotonic() - since

    def finish(self, usage: Usage) -> None:
        """Log what the solve cost."""
        self.close()
        self.say(budget_line(usage, self._limits, usage.seconds), "dim")

    def status(self) -> str:
        """Return the phase, or how much of the budget is used."""
        if self._phase:
            return f"… {self._phase}"
        return budget_line(self._usage, self._limits, time.monotonic() - self._started)


def _indent(depth: int) -> str:
    return "  " * min(depth, 12)


RETURNED_LIMIT = 300
NOTE_LIMIT = 500
WORDS = {
    "partial": "Only a partial answer",
    "needs_input": "A value is missing",
    "gave_up": "No answer",
    "cancelled": "Stopped",
    "interrupted": "Interrupted",
}


def show_outcome(outcome: Outcome) -> None:
    """Print answer and evidence on stdout, and why there is no full answer on stderr."""
    out = console()
    if outcome.answer:
        out.print(plain(outcome.answer), soft_wrap=True)
    if outcome.status not in {"answered", "replied"}:
        note(_why(outcome))
    for one in outcome.notes:
        note(one_line(one, NOTE_LIMIT))
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
        one_line(response_summary(one), RETURNED_LIMIT),
        one.source,
        status_words(one),
    )

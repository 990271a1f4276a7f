"""Solve a task, watch its calls, check its evidence, and go on from it."""

from __future__ import annotations

from toolsrv import Event, Outcome, Toolbox


def show(event: Event) -> None:
    """Print the calls of a solve as they are made."""
    if event.kind == "call":
        print(f"calling {event.api_id} with {event.arguments}")
    elif event.kind == "observation":
        print(f"  status {event.status}, from {event.source}")


def report(outcome: Outcome) -> None:
    """Print an answer, what it rests on, and what of it nothing supports."""
    print(f"{outcome.status}: {outcome.answer}")
    for one in outcome.evidence:
        if one.used:
            print(f"  {one.api_id} said {one.response}")
    for claim in outcome.unsupported:
        print(f"  no response says {claim.text!r}")


with Toolbox() as toolbox:
    first = toolbox.solve("What is the national currency of Peru?", on_event=show)
    report(first)
    report(toolbox.solve("Which countries use that currency?", continues=first.run_id))

"""Record of a run that never came to its end, from the events that it had until then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from toolsrv.plain import one_line
from toolsrv.runs.records import RunRecord
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import (
    Event,
    Evidence,
    Outcome,
    TreeNode,
    Usage,
    call_text,
    total_usage,
)
from toolsrv_runtime.search.tree import Code, pre_order

ENDED = "the process that worked on this run ended before the run did"
UNFINISHED = "when it ended the call of {} was under way, and may have been carried out"
_TASK_LIMIT = 200


def interrupted_record(
    run_id: str,
    task: str,
    options: SolveOptions,
    events: Sequence[Event],
    ended: datetime,
    *,
    continues: str,
    model: str,
    toolsrv: str,
) -> RunRecord:
    """Return the record, with the calls that came to an end and the tree as far as it was grown.

    Of several solves that voted the calls of all are there, and their trees below one root.
    Without any event, and going on from no other run, it was never begun and has no outcome.
    """
    record = RunRecord(
        id=run_id, task=task, status="interrupted", ended=ended, error=ENDED, hint=_AGAIN
    )
    if not events and not continues:
        return record
    events = _one_tree(events)
    evidence = _evidence(events)
    under_way = (UNFINISHED.format(one) for one in _unfinished(events))
    outcome = Outcome(
        task=task,
        run_id=run_id,
        continues=continues,
        status="interrupted",
        answer="",
        reason="; ".join((ENDED, *under_way)),
        missing=(one_line(task, _TASK_LIMIT),),
        evidence=evidence,
        notes=tuple(dict.fromkeys(one.text for one in events if one.kind == "note")),
        candidates=tuple(_candidates(events)),
        tree=tuple(pre_order(_nodes(events).values())),
        usage=_usage(events, len(evidence)),
        limits=options.limits,
        strategy=options.strategy,
        width=options.width,
        depth=options.depth,
        chains=options.most_chains,
        switches=tuple(sorted(options.switches or ())),
        votes=options.votes,
        model=model,
        format="",
        seed=options.seed,
        versions={"toolsrv": toolsrv},
    )
    return record.model_copy(update={"outcome": outcome})


_AGAIN = "solve the task again"


def _one_tree(events: Sequence[Event]) -> list[Event]:
    """Return events whose nodes are of one tree: those of a vote are numbered behind the one before."""
    last: dict[int, int] = {}
    for one in events:
        last[one.vote] = max(last.get(one.vote, 0), *_nodes_named(one).values(), 0)
    behind, total = {}, 0
    for vote in sorted(last):
        behind[vote], total = total, total + last[vote]
    return [_moved(one, behind[one.vote]) for one in events]


def _nodes_named(event: Event) -> dict[str, int]:
    """Return the nodes that an event names, by the field; the root is the same in every tree."""
    named = {name: getattr(event, name, 0) for name in ("node", "parent", "to")}
    return {name: node for name, node in named.items() if node > 0}


def _moved(event: Event, by: int) -> Event:
    """Return an event with the numbers of its nodes raised."""
    if not by:
        return event
    update: dict[str, object] = {name: by + node for name, node in _nodes_named(event).items()}
    if event.kind == "observation" and event.evidence is not None:
        update["evidence"] = event.evidence.model_copy(update={"node": by + event.evidence.node})
    return event.model_copy(update=update)


def _evidence(events: Iterable[Event]) -> tuple[Evidence, ...]:
    """Return the calls, each once, in the order in which they came to an end."""
    found: dict[str, Evidence] = {}
    for event in events:
        if event.kind != "observation" or event.evidence is None:
            continue
        made = event.evidence
        key = call_text(made.api_id, made.arguments)
        before = found.get(key)
        times = 1 + (before.times if before else 0)
        best = made if before is None or (made.ok and not before.ok) else before
        found[key] = best.model_copy(update={"times": times})
    return tuple(found.values())


def _unfinished(events: Sequence[Event]) -> list[str]:
    """Return the APIs whose calls were begun and had no end."""
    ended = {one.node for one in events if one.kind == "observation"}
    begun = [one for one in events if one.kind == "call" and one.node not in ended]
    return list(dict.fromkeys(one.api_id for one in begun))


def _candidates(events: Iterable[Event]) -> list[str]:
    every = (api_id for one in events if one.kind == "candidates" for api_id in one.api_ids)
    return list(dict.fromkeys(every))


def _usage(events: Iterable[Event], calls: int) -> Usage:
    """Return what the run had cost at its last event; votes share their calls."""
    latest: dict[int, Usage] = {}
    seconds = 0.0
    for event in events:
        seconds = max(seconds, event.seconds)
        if event.kind == "budget":
            latest[event.vote] = event.usage
    costs = list(latest.values())
    if len(costs) == 1:
        calls = max(calls, costs[0].calls)
    return total_usage(costs, calls).model_copy(update={"seconds": seconds})


def _nodes(events: Iterable[Event]) -> dict[int, TreeNode]:
    """Return the nodes by id; ``order`` is that of their first events."""
    found = {0: TreeNode(id=0, parent=-1, depth=0, kind="root")}
    for event in events:
        match event.kind:
            case "thought" if event.node not in found:
                parent = found.get(event.parent, found[0])
                found[event.node] = TreeNode(
                    id=event.node, parent=parent.id, depth=parent.depth + 1, kind="thought",
                    thought=event.text, order=len(found), bare=not event.text,
                )  # fmt: skip
            case "call" if event.node in found:
                update = {"api_id": event.api_id, "function": event.function}
                _change(found, event.node, kind="call", arguments=event.arguments, **update)
            case "observation" if event.node in found:
                _change(found, event.node, status=event.status, observation=event.text)
                if (made := event.evidence) is not None:
                    code = int(Code.OK if made.ok else Code.ERROR)
                    _change(
                        found, event.node, kind="call", code=code, api_id=made.api_id,
                        function=made.function, arguments=made.arguments,
                    )  # fmt: skip
            case "backtrack" if event.node in found and event.node:
                _change(found, event.node, pruned=True)
    return found


def _change(found: dict[int, TreeNode], node: int, **update: object) -> None:
    found[node] = found[node].model_copy(update=update)

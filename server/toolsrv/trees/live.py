"""A run that has not ended as a tree: what its events say so far, in the shape of an ended one."""

from __future__ import annotations

from collections.abc import Iterable

from toolsrv.plain import compact_json, plain
from toolsrv.runs.queue import Run
from toolsrv.trees.shown import ShownNode, ShownRun
from toolsrv.views.runs import phase
from toolsrv_runtime.outcome import Event
from toolsrv_runtime.search.tree import pre_order


def shown_live(run: Run, position: int) -> ShownRun:
    """Return the tree of a run as far as it is; ``position``: runs that come first.

    Of a long run only the latest part is known: nodes whose parents are forgotten hang below the task.
    """
    usage = run.usage
    return ShownRun(
        name=run.id,
        task=plain(run.task),
        status=run.status,
        reason=phase(run, position),
        facts={
            "run": run.id,
            "time": f"{usage.seconds:.1f} s",
            "calls": f"{usage.calls:,}",
            "tokens": f"{usage.generated_tokens:,} generated",
        },
        nodes=tuple(pre_order(_nodes(run.events).values())),
    )


def _nodes(events: Iterable[Event]) -> dict[int, ShownNode]:
    """Return the nodes by id, in the order of their first event, the root first."""
    found = {0: ShownNode(id=0, parent=-1, kind="root")}
    for event in events:
        if event.kind == "thought" and event.node:
            parent = event.parent if event.parent in found else 0
            found[event.node] = ShownNode(
                id=event.node, parent=parent, kind="thought", thought=plain(event.text)
            )
        elif event.kind == "call" and event.node:
            update: dict[str, object] = {
                "kind": "call",
                "api_id": plain(event.api_id),
                "function": plain(event.function),
                "arguments": compact_json(event.arguments),
            }
            found[event.node] = _node(found, event.node).model_copy(update=update)
        elif event.kind == "observation" and event.node:
            update = {
                "status": event.status,
                "observation": plain(event.text),
                "source": event.source,
                "ok": 200 <= event.status < 300,
            }
            found[event.node] = _node(found, event.node).model_copy(update=update)
        elif event.kind == "backtrack" and event.node in found and event.node:
            found[event.node] = found[event.node].model_copy(update={"pruned": True})
    return found


def _node(found: dict[int, ShownNode], node: int) -> ShownNode:
    return found.get(node) or ShownNode(id=node, parent=0, kind="thought")

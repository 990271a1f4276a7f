"""Pages of runs: a part of a run's tree or of a response, and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field, RootModel

from toolsrv.plain import one_line, plain
from toolsrv.runs.queue import Run
from toolsrv.runs.records import ResponsePage
from toolsrv.runs.store import RunRow
from toolsrv.trees.shown import ShownNode, ShownRun
from toolsrv.views.runs import RUN_URI

CHARACTERS_OF_A_CLAIM = 20
"""A claim is shown for so many characters that each text of a node may have."""


class TreePart(ShownRun):
    """A part of a run's tree, from the place ``offset`` of its nodes on.

    From the beginning the path of the answer is there as well.
    """

    offset: int = Field(default=0, description="Nodes before this part.")
    total_nodes: int = 0
    next_offset: int | None = Field(default=None, description="offset of the next part.")
    resource: str = Field(default="", description="The whole run as a resource.")
    next_step: str = Field(default="", description="What to do now.")


class NodePart(ResponsePage):
    """A part of what the call of one node returned."""

    next_step: str = Field(default="", description="What to do now.")


class ShowView(RootModel[TreePart | NodePart]):
    """A part of a tree or of a response."""


def tree_part(run: ShownRun, offset: int, next_step: str = "") -> TreePart:
    """Return a run as a tree whose nodes before ``offset`` were shown already."""
    return TreePart(
        **{name: getattr(run, name) for name in ShownRun.model_fields},
        offset=offset,
        total_nodes=len(run.nodes),
        resource=RUN_URI.format(run_id=run.name),
        next_step=next_step,
    )


def node_part(page: ResponsePage) -> NodePart:
    """Return a page of a response, safe to show."""
    return NodePart(**page.model_dump() | {"text": plain(page.text)})


def cut_tree(run: TreePart, most: int, characters: int) -> TreePart:
    """Return a part of a tree that has at most ``most`` nodes and those of the answer's path.

    Each text has at most ``characters``. What is left out is said, with how to get it.
    """
    end = run.offset + most
    window = {node.id for node in run.nodes[run.offset : end]}
    nodes = tuple(
        _cut_node(node, characters)
        for node in run.nodes
        if node.id in window or (node.winning and not run.offset)
    )
    update: dict[str, Any] = {"nodes": nodes, "facts": dict(run.facts)}
    if any(node.has_response for node in nodes):
        place = f"{run.resource}/responses/NODE"
        update["facts"]["whole responses"] = f"show_run with node, or resource {place}"
    most_claims = max(4, characters // CHARACTERS_OF_A_CLAIM)
    for name in ("supported", "unsupported"):
        claims = getattr(run, name)
        update[name] = claims[:most_claims]
        if (left := len(claims) - most_claims) > 0:
            update["facts"][f"{name} statements left out"] = str(left)
    if end < run.total_nodes:
        update["next_offset"] = end
        update["next_step"] = f"show_run with offset {end} for the nodes that follow"
    return run.model_copy(update=update)


def cut_node(page: NodePart, characters: int) -> NodePart:
    """Return a part of a response that has at most ``characters``."""
    update: dict[str, Any] = {"text": page.text[:characters]}
    if len(page.text) > characters:
        update["next_offset"] = page.offset + characters
    following = update.get("next_offset", page.next_offset)
    if following is not None:
        update["next_step"] = f"show_run with node {page.node} and offset {following} for the rest"
    return page.model_copy(update=update)


def _cut_node(node: ShownNode, characters: int) -> ShownNode:
    cut = {
        name: text if len(text) <= characters else f"{text[:characters]}…"
        for name in ("thought", "arguments", "observation")
        for text in [getattr(node, name)]
    }
    seconds = None if node.seconds is None else round(node.seconds, 2)
    return node.model_copy(update={**cut, "seconds": seconds})


TASK_CHARACTERS = 400


class RunLine(BaseModel):
    """One run of a list. ``ended`` is ISO 8601 in UTC, "" while it has not ended."""

    run_id: str
    status: str
    task: str
    ended: str = ""


class RunsView(BaseModel):
    """Runs, the newest first."""

    runs: tuple[RunLine, ...]
    next_step: str = Field(default="", description="What to do now.")


def run_lines(runs: Iterable[Run], rows: Iterable[RunRow], words: str, limit: int) -> list[RunLine]:
    """Return live runs, then ended ones, the newest first; each once.

    ``runs`` are those in memory, oldest first, ``rows`` those on disk, newest first. Only runs whose
    task has all ``words`` are listed, ``limit`` at most. The order is the one in which runs ended and
    were kept, whatever the clock said then.
    """
    held = list(reversed(list(runs)))
    live = [_line(one) for one in held if one.live]
    kept = [_kept(row) for row in rows]
    known = {one.run_id for one in kept}
    unkept = [_line(one) for one in held if not one.live and one.id not in known]
    wanted = words.casefold().split()
    found = (
        one
        for one in (*live, *unkept, *kept)
        if all(word in one.task.casefold() for word in wanted)
    )
    lines = [one.model_copy(update={"task": one_line(one.task, TASK_CHARACTERS)}) for one in found]
    return lines[:limit]


def _kept(row: RunRow) -> RunLine:
    return RunLine(run_id=row.id, status=row.status, task=plain(row.task), ended=row.ended)


def _line(run: Run) -> RunLine:
    ended = "" if run.ended is None else run.ended.isoformat(timespec="seconds")
    return RunLine(run_id=run.id, status=run.status, task=plain(run.task), ended=ended)


def runs_view(lines: Iterable[RunLine]) -> RunsView:
    """Return a list with what to do with it."""
    runs = tuple(lines)
    return RunsView(runs=runs, next_step=_STEP if runs else "")


def cut_runs(view: RunsView, most: int, characters: int) -> RunsView:
    """Return the first ``most`` runs, with at most ``characters`` of each task."""
    runs = tuple(
        one.model_copy(update={"task": one_line(one.task, characters)}) for one in view.runs[:most]
    )
    step = view.next_step
    if left := len(view.runs) - len(runs):
        step = f"{left} older runs have no room here, find one by words of its task; {step}"
    return view.model_copy(update={"runs": runs, "next_step": step})


_STEP = "get_run for an answer, show_run for a tree, solve_task with continues to go on from one"

"""Task decomposition: each subtask has a small search of its own, the whole task the last one.

The second paper's "task decomposition" over any strategy, in one tree: a subtask's search begins
below the end of the one before, so that the path of the answer holds all calls. Where no subtask
was named the search is the plain strategy; where one was not solved the next begins behind its best
call. Same generator protocol as ``dfsdt``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from toolsrv_runtime.search.dfsdt import (
    EXHAUSTED,
    Answer,
    Begin,
    Divide,
    Findings,
    Rules,
    Wish,
)
from toolsrv_runtime.search.tree import Code, Node

PART_CALLS = 3
"""Calls on a path of one subtask."""

_PART_NODES = 3 * PART_CALLS + 1

Search = Callable[[Findings, Rules], Generator[Wish, Answer, int]]


def planned(
    findings: Findings, rules: Rules, part_search: Search, search: Search
) -> Generator[Wish, Answer, int]:
    """Search subtask by subtask with ``part_search``, then for the whole task with ``search``.

    Returns as ``dfsdt`` does. ``rules.depth`` is that of the last search, counted from its begin.
    """
    node = findings.tree.root
    parts = yield Divide(node)
    if not isinstance(parts, tuple):
        raise TypeError(f"Divide needs moves, not {parts!r}")
    findings.replies += 1
    solved = True
    for number, heading in enumerate(parts):
        left = rules.max_replies - findings.replies
        if left <= 0:
            return EXHAUSTED
        node = findings.tree.add(node, heading)
        yield Begin(node, number, solved)
        own = Findings(findings.tree, start=node, part=True)
        limits = replace(
            rules,
            depth=node.depth + _PART_NODES,
            max_replies=left,
            answers=1,
            retry_root=False,
        )
        yield from part_search(own, limits)
        findings.replies += own.replies
        end = own.answers[0] if own.answers else _furthest(node)
        solved, node = end is not node, end
    if parts:
        yield Begin(node, None, solved)
        findings.start = node
    return (yield from search(findings, replace(rules, depth=node.depth + rules.depth)))


def _furthest(start: Node) -> Node:
    """Return the node below ``start`` with the most successful calls above it, ``start`` for none."""
    best, most = start, 0
    stack = [(start, 0)]
    while stack:
        node, good = stack.pop()
        good += node is not start and node.code == Code.OK
        if good > most:
            best, most = node, good
        stack.extend((child, good) for child in reversed(node.children))
    return best

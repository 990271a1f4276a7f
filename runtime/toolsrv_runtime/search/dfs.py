"""Classical depth-first search with ranking: DFSDT's reference with its filter on (formats 5.2).

All children of a node are made first, calls included; the model then compares them in pairs, and
the search descends into the best first. Same generator protocol as ``dfsdt``. With width w it costs
w * (w - 1) comparisons a node beyond DFSDT's replies, and children that DFSDT would not make.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations

from toolsrv_runtime.search.dfsdt import (
    EXHAUSTED,
    FOUND,
    Answer,
    Compare,
    Findings,
    Left,
    Rules,
    Think,
    Wish,
    first_order,
    grow,
    leave,
    why,
)
from toolsrv_runtime.search.tree import Code, Node


def dfs(findings: Findings, rules: Rules) -> Generator[Wish, Answer, int]:
    """Search as ``dfsdt`` does, best child first; returns the same values."""
    visits = first_order(findings)

    def enter(node: Node) -> Generator[Wish, Answer, int]:
        nonlocal visits
        if node is not findings.start:
            node.order = visits
            visits += 1
        if node.depth >= rules.depth or findings.is_over(node):
            return leave(findings, node)
        leaves: list[Node] = []
        for _ in range(rules.width):
            move = yield Think(node)
            findings.replies += 1
            if findings.replies >= rules.max_replies:
                return EXHAUSTED
            leaves.append((yield from grow(findings, node, move)))
        ranked = yield from rank(findings, node, leaves)
        for index, leaf in enumerate(ranked):
            result = yield from enter(leaf)
            if len(findings.answers) >= rules.answers:
                return FOUND
            if result > 1 and not (rules.retry_root and node is findings.root):
                return result - 1
            if index + 1 < len(ranked):
                yield Left(leaf, node, why(leaf))
        return 1

    return (yield from enter(findings.root))


def rank(
    findings: Findings, node: Node, leaves: Sequence[Node]
) -> Generator[Wish, Answer, list[Node]]:
    """Return the ends of the replies below ``node``, best first; equals stay in the order they were made in.

    Each pair is asked about in both orders, as models favour a place; a win counts half. Every
    question counts as a reply. Replies that failed come last and are not asked about.
    """
    points = dict.fromkeys((leaf.id for leaf in leaves), 0)
    sound = [leaf for leaf in leaves if leaf.code != Code.FAILED]
    for one, other in combinations(sound, 2):
        for first, second in ((one, other), (other, one)):
            answer = yield Compare(node, first, second)
            if not isinstance(answer, bool):
                raise TypeError(f"Compare needs a bool, not {answer!r}")
            findings.replies += 1
            points[first.id if answer else second.id] += 1
    return sorted(leaves, key=lambda n: (n.code == Code.FAILED, -points[n.id]))

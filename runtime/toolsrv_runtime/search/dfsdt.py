"""DFSDT, the depth-first search-based decision tree of ToolLLM (paper 2.3, spec: formats 5.2).

A generator: it yields what it wants (``Think`` at a node, ``Act`` a node's call) and is sent the
outcome. Whoever drives it decides how long; closing the generator ends the search at once.
Replies are O(width ** rounds) at worst and bounded by ``max_replies``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from toolsrv_runtime.search.tree import Code, MoveLike, Node, Tree

BACK = 2
"""Levels a give-up (or a further answer) goes back: ToolBench's two constants of 5.2."""

_FOUND = 10_000
_EXHAUSTED = 100_000


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model for the next move at ``node``; answer with a move, or a reason for none."""

    node: Node


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out ``node``'s call; answer with its code and observation."""

    node: Node


@dataclass(frozen=True, slots=True)
class Left:
    """The search turned back at ``node`` and goes on with another child of ``to``; no answer."""

    node: Node
    to: Node
    reason: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What a call came to."""

    code: Code
    text: str


Wish = Think | Act | Left
Answer = MoveLike | Observed | str | None
"""A move (to Think), Observed (to Act), a reason (to Think that failed), None (to Left)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The search's constants, with ToolBench's defaults.

    ``depth`` counts tree nodes, not rounds: a reply with a thought and a call is three of them.
    ``retry_root``: a give-up as very first move costs the root one child, where the reference
    ends the whole search (spec: summary point 12).
    """

    width: int = 2
    depth: int = 12
    answers: int = 1
    max_replies: int = 200
    retry_root: bool = False


@dataclass(slots=True)
class Findings:
    """What a search has found so far; readable at any time."""

    tree: Tree = field(default_factory=Tree)
    answers: list[Node] = field(default_factory=list)
    give_ups: list[Node] = field(default_factory=list)
    replies: int = 0


def dfsdt(findings: Findings, rules: Rules) -> Generator[Wish, Answer, int]:
    """Search until ``rules.answers`` answers are found or nothing is left to try.

    Returns the reference's return value: 10000 found, near 100000 out of replies (one less per
    level), else 1.
    """
    visits = 0

    def enter(node: Node) -> Generator[Wish, Answer, int]:
        nonlocal visits
        node.order = visits
        visits += 1
        if node.depth >= rules.depth or node.pruned or node.terminal:
            return leave(node)
        for child in range(rules.width):
            move = yield Think(node)
            findings.replies += 1
            if findings.replies >= rules.max_replies:
                return _EXHAUSTED
            leaf = yield from grow(node, move)
            result = yield from enter(leaf)
            if len(findings.answers) >= rules.answers:
                return _FOUND
            if result > 1 and not (rules.retry_root and node.parent is None):
                return result - 1
            if child + 1 < rules.width:
                yield Left(leaf, node, _why(leaf))
        return 1

    def grow(node: Node, move: Answer) -> Generator[Wish, Answer, Node]:
        if isinstance(move, str):
            return findings.tree.fail(node, move)
        if move is None or isinstance(move, Observed):
            raise TypeError(f"Think needs a move or a reason, not {move!r}")
        leaf = findings.tree.add(node, move)
        if leaf.kind == "Action Input":
            seen = yield Act(leaf)
            if not isinstance(seen, Observed):
                raise TypeError(f"Act needs an observation, not {seen!r}")
            findings.tree.settle(leaf, seen.code, seen.text)
        return leaf

    def leave(node: Node) -> int:
        if node.terminal:
            findings.answers.append(node)
            return BACK
        node.pruned = True
        if node.code == Code.GIVE_UP:
            findings.give_ups.append(node)
            return BACK
        return 1

    return (yield from enter(findings.tree.root))


def _why(leaf: Node) -> str:
    if leaf.code == Code.GIVE_UP:
        return "gave up"
    if leaf.code == Code.FAILED:
        return leaf.description
    return "nothing better below" if leaf.children else "too deep"
